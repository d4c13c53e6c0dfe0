/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer and several lossless readers, threads of one process, so that
 * ThreadSanitizer sees both ends: what a reader reads in place and what the writer
 * overwrites are ordered by the cursor in the reader's page alone. Readers come one
 * after the other, read at their own pace, and must get every record, whole.
 *
 * usage: lossless_threads [SECONDS [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/reader_page.h>
#include <r3ring/ring.h>

#include "consumer/internal.h"
#include "ring/gate.h"

#define READERS 3u
#define DEPTH 64u
#define ARENA 65536u
#define WORDS_MOST (ARENA / 8 / sizeof(uint64_t))

struct reader {
	struct r3ring_reader_page page;
	struct r3ring_reader shipped; /* knows page and cursor alone */
	const struct r3ring_segment *segment;
	pthread_t thread;
	uint64_t seed;
	uint64_t got;
	const char *failure; /* NULL: none */
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static uint64_t word_of(uint64_t seq, uint64_t index)
{
	return (seq + 1) * 0x9e3779b97f4a7c15ull + index * 0xbf58476d1ce4e5b9ull;
}

/* ---- reading ---------------------------------------------------------------- */

static bool holds(const struct r3ring_view *view)
{
	for (uint64_t i = 0; i < view->len / sizeof(uint64_t); i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)view->data + i * sizeof(word), sizeof(word));
		if (word != word_of(view->seq, i))
			return false;
	}
	return true;
}

static const char *take(struct reader *reader, const struct r3ring_view *view)
{
	if (view->seq != reader->got + 1)
		return "a record was passed over";
	if (!holds(view))
		return "a record changed while it was kept";
	if (next_random(&reader->seed) % 64 == 0)
		sched_yield();
	if (r3ring_cursor_check(reader->shipped.cursor))
		return "a record that was kept failed its check";
	reader->got++;
	reader_tell_cursor(&reader->shipped);
	return NULL;
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	struct r3ring_cursor *cursor;
	struct r3ring_view view;
	int rc = r3ring_cursor_open(&cursor, reader->segment, R3RING_LOSSY, R3RING_FROM_SEQ, 1);

	reader->shipped.cursor = cursor;
	reader->shipped.now.page = &reader->page;
	while (!reader->failure && (rc == 0 || rc == 1)) {
		rc = r3ring_cursor_next(cursor, &view);
		if (rc == 1)
			reader->failure = take(reader, &view);
		else if (rc == 0)
			reader_sleep(&reader->page, cursor, 1000000000u);
	}
	if (!reader->failure && rc != -EPIPE)
		reader->failure = "records were lost";
	r3ring_cursor_close(cursor);
	return NULL;
}

/* ---- writing ---------------------------------------------------------------- */

static int put(struct r3ring_writer *writer, uint64_t *seed)
{
	static uint64_t payload[WORDS_MOST];
	uint64_t seq = r3ring_writer_next_seq(writer), words = next_random(seed) % WORDS_MOST;
	struct r3ring_record_spec spec = {.type = 1};
	int rc;

	if (next_random(seed) % 4)
		words %= 16;
	spec.len = (uint32_t)(words * sizeof(uint64_t));
	for (uint64_t i = 0; i < words; i++)
		payload[i] = word_of(seq, i);
	while ((rc = r3ring_writer_put(writer, &spec, payload)) == -EAGAIN) {
		r3ring_writer_wake(writer);
		sched_yield();
	}
	return rc;
}

static uint64_t write_all(struct r3ring_writer *writer, uint64_t seconds, uint64_t seed)
{
	uint64_t end = clock_now_ns() + seconds * 1000000000u;

	while (clock_now_ns() < end) {
		for (int i = 0; i < 16; i++) {
			if (put(writer, &seed))
				return 0;
		}
		r3ring_writer_wake(writer);
	}
	return r3ring_writer_next_seq(writer) - 1;
}

/* ---- all together ------------------------------------------------------------ */

static int judge(const struct reader *reader, uint64_t written)
{
	const char *failure = reader->failure;

	if (!failure && reader->got != written)
		failure = "not all came";
	if (!failure && written < DEPTH * 4)
		failure = "the ring was hardly used: nothing was tried";
	printf("reader got %" PRIu64 " of %" PRIu64 ": %s\n", reader->got, written,
	       failure ? failure : "ok");
	return failure != NULL;
}

/* All at the same addresses, so that ThreadSanitizer knows them as the same. */
static int run(struct r3ring_segment *segment, uint64_t seconds, uint64_t seed)
{
	static struct reader readers[READERS];
	const struct gate_terms terms = {.lossless = true, .stall_ns = UINT64_MAX};
	struct gate *gate = gate_create(segment, false);
	struct r3ring_writer *writer;
	uint64_t written;
	int failed = 0;

	if (!gate || r3ring_writer_open(&writer, segment))
		return 1;
	writer_set_gate(writer, gate);
	for (unsigned int i = 0; i < READERS; i++) {
		readers[i].segment = segment;
		readers[i].seed = seed + i;
		gate_add(gate, &readers[i].page, &terms);
		pthread_create(&readers[i].thread, NULL, read_all, &readers[i]);
	}
	written = write_all(writer, seconds, seed);
	r3ring_writer_finish(writer);
	for (unsigned int i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		failed |= judge(&readers[i], written);
	}
	r3ring_writer_close(writer);
	gate_destroy(gate);
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 3;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : clock_now_ns();
	char name[64];
	struct r3ring_segment_options options = {
		.size = sizeof(options), .name = name, .arena_bytes = ARENA, .depth = DEPTH};
	struct r3ring_segment *segment;
	struct r3ring_error err;
	int failed;

	if (argc > 3 || !seconds || seconds > 3600) {
		fputs("usage: lossless_threads [SECONDS [SEED]]\n", stderr);
		return 2;
	}
	printf("lossless_threads: %" PRIu64 " s, seed %" PRIu64 "\n", seconds, seed);
	snprintf(name, sizeof(name), "/r3ring-lossless.%d", getpid());
	if (r3ring_segment_create(&segment, &options, &err)) {
		fprintf(stderr, "lossless_threads: %s\n", err.text);
		return 1;
	}
	r3ring_segment_unlink(segment);
	failed = run(segment, seconds, seed);
	r3ring_segment_close(segment);
	return failed;
}
