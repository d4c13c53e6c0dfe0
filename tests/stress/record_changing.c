/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads whose counts another process changes all the time, between the truth
 * and lies, and which end where memory ends. A decoder that reads a count twice
 * checks one value and believes another: it faults, or what it returns does not
 * fit the payload.
 *
 *	record_changing [SECONDS [SEED]]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/record.h>

#include "tests/support/guarded.h"
#include "tests/support/record_examples.h"

#define DECODES_BETWEEN_LOOKS 1000
#define TURN_SECONDS_MAX 60 /* for a first turn of the child's */

/* Where a type's head says how much follows: a word that is changed. */
struct victim {
	uint16_t type;
	size_t word;
	uint32_t truth;
	struct guarded memory;
	const uint8_t *payload;
	size_t len;
	unsigned long accepted, refused;
};

static struct victim victims[] = {
	{.type = R3RING_SCHEMA, .word = offsetof(struct r3ring_schema_record, layers)},
	{.type = R3RING_STEP, .word = offsetof(struct r3ring_step_record, spans)},
	{.type = R3RING_STEP, .word = offsetof(struct r3ring_step_record, keys)},
	{.type = R3RING_SPANS, .word = offsetof(struct r3ring_spans_record, spans)},
	{.type = R3RING_ROWS, .word = offsetof(struct r3ring_rows_record, rows)},
	{.type = R3RING_LAYER, .word = offsetof(struct r3ring_layer_record, rows)},
	{.type = R3RING_STEP_END, .word = offsetof(struct r3ring_step_end_record, missing)},
	{.type = R3RING_EPLB, .word = offsetof(struct r3ring_eplb_record, layers)},
	{.type = R3RING_KEY_COPY, .word = offsetof(struct r3ring_key_copy_record, pairs)},
	{.type = R3RING_REQUEST, .word = offsetof(struct r3ring_request_record, id_len)},
};

#define VICTIMS (sizeof(victims) / sizeof(victims[0]))

static uint32_t *word_of(const struct victim *victim)
{
	return (uint32_t *)(uintptr_t)(victim->payload + victim->word);
}

/* Heads end at multiples of 4, and so do payloads: the words are aligned. */
static void prepare(struct victim *victim)
{
	struct example_payload payload;
	struct r3ring_record record;

	example_record(&record, victim->type, EXAMPLE_TYPICAL);
	payload = example_payload(&record);
	victim->memory = guarded_create(payload.len);
	victim->payload = guarded_put(&victim->memory, payload.bytes, payload.len);
	victim->len = payload.len;
	victim->truth = *word_of(victim);
	free(payload.bytes);
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* The child: tells the truth every second time, so that some decodes succeed. */
static void change_for_ever(uint32_t seed)
{
	for (;;)
		for (size_t i = 0; i < VICTIMS; i++) {
			uint32_t lie = next_random(&seed) >> (next_random(&seed) % 32);

			r3ring_store_relaxed_u32(word_of(&victims[i]), lie);
			r3ring_cpu_relax();
			r3ring_store_relaxed_u32(word_of(&victims[i]), victims[i].truth);
		}
}

/* What was accepted must lie exactly within the payload. */
static int fits(const struct victim *victim, const struct r3ring_record *record)
{
	struct example_part parts[EXAMPLE_PARTS_MAX];
	const uint8_t *at = victim->payload + example_head_bytes(victim->type);
	unsigned int n = example_parts(record, parts);

	for (unsigned int i = 0; i < n; i++) {
		if (parts[i].data != at)
			return 0;
		at += parts[i].bytes;
	}
	return at == victim->payload + victim->len;
}

static int decode_many(struct victim *victim)
{
	struct r3ring_record record;

	for (int i = 0; i < DECODES_BETWEEN_LOOKS; i++) {
		if (r3ring_record_decode(&record, victim->type, victim->payload, victim->len,
					 NULL)) {
			victim->refused++;
			continue;
		}
		victim->accepted++;
		if (!fits(victim, &record)) {
			printf("%s: what was decoded does not fit its payload\n",
			       r3ring_record_type_name(victim->type));
			return 1;
		}
	}
	return 0;
}

static int all_tested(void)
{
	for (size_t i = 0; i < VICTIMS; i++)
		if (!victims[i].accepted || !victims[i].refused)
			return 0;
	return 1;
}

/* On a busy machine the child may get no turn for long: it is waited for. */
static int run(time_t seconds)
{
	time_t end = time(NULL) + seconds;

	while (time(NULL) < end || (!all_tested() && time(NULL) < end + TURN_SECONDS_MAX))
		for (size_t i = 0; i < VICTIMS; i++)
			if (decode_many(&victims[i]))
				return 1;
	for (size_t i = 0; i < VICTIMS; i++)
		printf("%-8s accepted %lu, refused %lu\n", r3ring_record_type_name(victims[i].type),
		       victims[i].accepted, victims[i].refused);
	return !all_tested(); /* else nothing was put to the test */
}

int main(int argc, char **argv)
{
	time_t seconds = argc > 1 ? atoi(argv[1]) : 3;
	uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : (uint32_t)getpid();
	pid_t changer;
	int failed;

	printf("seed %u\n", seed);
	fflush(stdout);
	for (size_t i = 0; i < VICTIMS; i++)
		prepare(&victims[i]);
	changer = fork();
	if (changer < 0) {
		perror("fork");
		return 1;
	}
	if (changer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		change_for_ever(seed | 1);
	}
	failed = run(seconds);
	kill(changer, SIGKILL);
	return failed;
}
