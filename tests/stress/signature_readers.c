/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures that are copied by several threads while their requests run, end, and make
 * room for others: a copy is of the request that was asked for and has nothing of another.
 * ThreadSanitizer judges the rest (make check-tsan).
 *
 * Request n sends all its rows to expert n % EXPERTS, and to the one behind it.
 *
 *	signature_readers [SECONDS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/signature.h>

#define SECONDS 2u
#define READERS 3u
#define LAYERS 3u
#define EXPERTS 11u
#define TOP_K 2u
#define ROWS 2u
#define LIVE 8u  /* requests at a time */
#define KEPT 12u /* signatures */
#define LIFE 5u  /* steps of a request */

static struct r3ring_signatures *signatures;
static uint64_t seq;
static uint64_t newest; /* request; read by others */
static uint32_t over;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "%s (%llu, %llu)\n", what, (unsigned long long)a, (unsigned long long)b);
	exit(1);
}

/* ---- feeding -------------------------------------------------------------- */

static void feed(const struct r3ring_record *record)
{
	const struct r3ring_view view = {.seq = ++seq, .generation = 1, .type = record->type};

	if (r3ring_signatures_feed(signatures, 0, &view, record) != 0)
		fail("a record was refused", record->type, seq);
}

static void feed_schema(void)
{
	struct r3ring_layer_entry layers[LAYERS] = {0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < LAYERS; i++)
		layers[i].layer_id = (int32_t)i;
	record.u.schema.head = (struct r3ring_schema_record){.layers = LAYERS,
							     .experts = EXPERTS,
							     .top_k = TOP_K,
							     .max_rows = LIVE * ROWS,
							     .rows_per_record = LIVE * ROWS,
							     .model = "stress"};
	record.u.schema.layers = layers;
	feed(&record);
}

static void feed_request(uint64_t number, enum r3ring_request_event event)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	char id[24];
	int len = snprintf(id, sizeof(id), "r%llu", (unsigned long long)number);

	record.u.request.head = (struct r3ring_request_record){
		.handle = number,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.event = (uint8_t)event,
		.reason = event == R3RING_REQUEST_END ? R3RING_END_FINISHED : 0,
		.id_len = event == R3RING_REQUEST_BEGIN ? (uint16_t)len : 0,
	};
	record.u.request.id = id;
	record.u.request.session = record.u.request.turn = record.u.request.sample = "";
	feed(&record);
}

/* Requests [first, first + LIVE) run rows; @position of the oldest. */
static void feed_step(uint64_t step, uint64_t first, const uint32_t *position)
{
	struct r3ring_record record = {.type = R3RING_STEP};
	struct r3ring_span spans[LIVE] = {{0}};
	uint16_t ids[LIVE * ROWS * TOP_K];

	for (uint32_t i = 0; i < LIVE; i++) {
		spans[i] = (struct r3ring_span){.request = first + i,
						.position = position[(first + i) % LIVE],
						.row = i * ROWS,
						.rows = ROWS};
		for (uint32_t j = 0; j < ROWS * TOP_K; j++)
			ids[i * ROWS * TOP_K + j] = (uint16_t)((first + i + j % TOP_K) % EXPERTS);
	}
	record.u.step.head = (struct r3ring_step_record){.step = step,
							 .total_rows = LIVE * ROWS,
							 .row_end = LIVE * ROWS,
							 .valid_end = LIVE * ROWS,
							 .spans = LIVE};
	record.u.step.spans = spans;
	feed(&record);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		record = (struct r3ring_record){.type = R3RING_LAYER};
		record.u.layer.head = (struct r3ring_layer_record){.step = step,
								   .layer_id = (int32_t)layer,
								   .layer_index = (uint16_t)layer,
								   .rows = LIVE * ROWS,
								   .total_rows = LIVE * ROWS,
								   .valid_rows = LIVE * ROWS,
								   .top_k = TOP_K};
		record.u.layer.ids = ids;
		feed(&record);
	}
	record = (struct r3ring_record){.type = R3RING_STEP_END};
	record.u.step_end.head.step = step;
	record.u.step_end.head.status = R3RING_STEP_COMPLETE;
	feed(&record);
}

/* ---- reading ---------------------------------------------------------------- */

struct reading {
	struct r3ring_signature *signature;
	uint64_t seed;
	uint64_t found;
};

static void expect(const struct r3ring_signature_info *info, uint64_t number, const char *id)
{
	if (strcmp(info->id, id) != 0)
		fail("another request's signature", number, 0);
	for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++)
		for (uint32_t i = 0; i < info->layers * info->experts; i++) {
			uint32_t e = i % info->experts;
			uint32_t count = info->counts[phase][i];

			if (count > ROWS * LIFE * LIVE)
				fail("more than it ever ran", number, count);
			if (count && e != number % EXPERTS && e != (number + 1) % EXPERTS)
				fail("another request's rows", number, e);
		}
}

static void *read_all(void *argument)
{
	struct reading *reading = argument;

	while (!r3ring_load_relaxed_u32(&over)) {
		uint64_t last = r3ring_load_relaxed_u64(&newest), number;
		char id[24];

		reading->seed = reading->seed * 6364136223846793005u + 1442695040888963407u;
		number = last - (reading->seed >> 33) % (LIVE + KEPT);
		snprintf(id, sizeof(id), "r%llu", (unsigned long long)number);
		if (r3ring_signatures_get(signatures, id, reading->signature) != 0)
			continue;
		expect(r3ring_signature_get_info(reading->signature), number, id);
		reading->found++;
	}
	return NULL;
}

/* ---- all --------------------------------------------------------------------- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* At each fifth step the oldest request ends and another begins. */
static void live_and_die(double end)
{
	uint32_t position[LIVE] = {0};
	uint64_t first = 100, step = 0;

	for (uint32_t i = 0; i < LIVE; i++)
		feed_request(first + i, R3RING_REQUEST_BEGIN);
	while (now() < end) {
		feed_step(++step, first, position);
		for (uint32_t i = 0; i < LIVE; i++)
			position[i] += ROWS;
		if (step % LIFE)
			continue;
		feed_request(first, R3RING_REQUEST_END);
		position[first % LIVE] = 0;
		feed_request(first + LIVE, R3RING_REQUEST_BEGIN);
		first++;
		r3ring_store_relaxed_u64(&newest, first + LIVE - 1);
	}
	printf("%llu requests\n", (unsigned long long)first);
}

static void run(double seconds)
{
	struct reading reading[READERS] = {{0}};
	pthread_t thread[READERS];

	r3ring_store_relaxed_u64(&newest, 100 + LIVE);
	for (uint32_t i = 0; i < READERS; i++) {
		reading[i].seed = i + 1;
		if (r3ring_signature_create(&reading[i].signature) < 0 ||
		    pthread_create(&thread[i], NULL, read_all, &reading[i]) != 0)
			fail("no thread", i, 0);
	}
	live_and_die(now() + seconds);
	r3ring_store_relaxed_u32(&over, 1);
	for (uint32_t i = 0; i < READERS; i++) {
		pthread_join(thread[i], NULL);
		printf("reader %u: %llu signatures\n", i, (unsigned long long)reading[i].found);
		if (!reading[i].found)
			fail("a reader found nothing", i, 0);
		r3ring_signature_free(reading[i].signature);
	}
}

int main(int argc, char **argv)
{
	const struct r3ring_signatures_options options = {
		.size = sizeof(options), .max_requests = KEPT, .max_ended = KEPT - LIVE};

	if (r3ring_signatures_create(&signatures, &options, NULL) < 0 ||
	    r3ring_signatures_channel(signatures, "stress/0") != 0)
		fail("no signatures", 0, 0);
	feed_schema();
	run(argc > 1 ? strtod(argv[1], NULL) : SECONDS);
	r3ring_signatures_destroy(signatures);
	return 0;
}
