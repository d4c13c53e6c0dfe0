/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Race: one thread makes steps and captures, another announces requests, a third
 * is the daemon, which sleeps and wakes, stalls at random so that queue and buffer
 * fill up, and checks all that arrives: contents, order over both lanes, and that
 * every step which did not arrive was counted for its cause.
 *
 * usage: lane_race [SECONDS [SEED]]
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/host_stream.h>
#include <r3ring/producer.h>

#include "producer/producer.h"
#include "tests/support/fake_service.h"

#define LAYERS 4u
#define TOP_K 2u
#define EXPERTS 16u
#define ROWS_MAX 64u
#define SPANS_MAX 20u
#define STREAM_IDS 256u /* matrices that may be waiting on the stream */
#define WAIT_NS 2000000000ull

struct race {
	struct fake_service service;
	struct r3ring_producer *producer;
	struct r3ring_host_stream *stream;
	uint64_t end_ns;
	uint64_t seed;
	uint64_t requests_in_lane; /* newest handle that did not go to the spill; atomic */
	uint64_t requests;         /* handles given, once the side thread is done */
	uint32_t producing;        /* threads that still produce; atomic */
	int16_t ids[STREAM_IDS][ROWS_MAX * TOP_K];

	/* the daemon's findings */
	uint64_t faults;
	uint64_t last_step;
	uint64_t last_request;
	uint64_t newest_seen_by_request;
	uint64_t delivered, gaps, gap_rows, rows_seen;
	uint64_t dropped[R3RING_CAUSE_COUNT];
	uint64_t slept_out;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Source: Marsaglia, "Xorshift RNGs", 2003. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t mix(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ull;
	return value ^ (value >> 29);
}

static void fault(struct race *race, const char *what, uint64_t got, uint64_t wanted)
{
	if (race->faults++ < 10)
		fprintf(stderr, "lane_race: %s: %" PRIu64 ", not %" PRIu64 "\n", what, got, wanted);
}

static void check(struct race *race, const char *what, uint64_t got, uint64_t wanted)
{
	if (got != wanted)
		fault(race, what, got, wanted);
}

/* ---- what a step of a number is ---------------------------------------- */

static uint32_t rows_of(uint64_t step)
{
	return (uint32_t)(mix(step) % (ROWS_MAX + 1));
}

static uint32_t spans_of(uint64_t step)
{
	return (uint32_t)(mix(step + 1) % (SPANS_MAX + 1));
}

static int16_t id_of(uint64_t step, uint32_t element)
{
	return (int16_t)((step * 31 + element * 7) % EXPERTS);
}

/* ---- the step thread ---------------------------------------------------- */

static void fill_ids(struct race *race, uint64_t step)
{
	for (uint32_t i = 0; i < rows_of(step) * TOP_K; i++)
		race->ids[step % STREAM_IDS][i] = id_of(step, i);
}

static int run_step(struct race *race, uint64_t number)
{
	uint64_t request[SPANS_MAX];
	uint32_t position[SPANS_MAX], span_rows[SPANS_MAX] = {0};
	uint32_t rows = rows_of(number), spans = spans_of(number);
	struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
		.spans = spans,
		.span_request = request,
		.span_position = position,
		.span_rows = span_rows,
		/* Pairs with the release in announce_requests(). */
		.weight_version = r3ring_load_acquire_u64(&race->requests_in_lane),
	};
	struct r3ring_topk topk = {
		.ids = race->ids[number % STREAM_IDS],
		.type = R3RING_INT16,
		.rows = rows,
		.columns = TOP_K,
		.row_stride = TOP_K,
	};

	for (uint32_t i = 0; i < spans; i++) {
		request[i] = mix(number * SPANS_MAX + i);
		position[i] = (uint32_t)number + i;
	}
	if (r3ring_step_begin(race->producer, &step, race->stream) != (int64_t)number)
		return -1;
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		if (r3ring_capture_layer(race->producer, layer, &topk, race->stream))
			return -1;
	return r3ring_step_end(race->producer, race->stream);
}

/* Mostly as fast as it can; at times slower than the daemon, so that it sleeps. */
static void pace(uint64_t number)
{
	uint64_t spins = mix(number / 512) % 4 ? 0 : mix(number) % 4000;

	while (spins--)
		r3ring_cpu_relax();
	if (mix(number) % 8 == 0)
		sched_yield();
}

static void *make_steps(void *arg)
{
	struct race *race = arg;
	uint64_t number = 0;

	while (now_ns() < race->end_ns) {
		/* The ids of a step must stay until its captures have run. */
		if (++number % STREAM_IDS == 0)
			r3ring_host_stream_synchronize(race->stream);
		fill_ids(race, number);
		if (run_step(race, number)) {
			fprintf(stderr, "lane_race: step %" PRIu64 ": %s\n", number,
				r3ring_producer_error(race->producer));
			race->faults++;
			break;
		}
		pace(number);
	}
	r3ring_host_stream_synchronize(race->stream);
	r3ring_fetch_add_u32(&race->producing, UINT32_MAX);
	return NULL;
}

/* ---- the side thread ---------------------------------------------------- */

static bool is_in_lane(struct r3ring_producer *producer)
{
	bool empty;

	pthread_mutex_lock(&producer->side_lock);
	empty = !producer->spill.first;
	pthread_mutex_unlock(&producer->side_lock);
	return empty;
}

static void *announce_requests(void *arg)
{
	struct race *race = arg;
	uint64_t state = race->seed;
	char id[32];

	while (now_ns() < race->end_ns) {
		struct r3ring_producer_stats stats;
		struct r3ring_request request = {.size = sizeof(request), .id = id};
		int64_t handle;

		r3ring_producer_get_stats(race->producer, &stats);
		request.prompt_tokens = (uint32_t)stats.steps;
		snprintf(id, sizeof(id), "request-%" PRIu64, race->requests + 1);
		handle = r3ring_request_begin(race->producer, &request);
		if (handle != (int64_t)race->requests + 1) {
			fprintf(stderr, "lane_race: request: %s\n",
				r3ring_producer_error(race->producer));
			break;
		}
		race->requests++;
		/* Pairs with the acquire in run_step(). */
		if (is_in_lane(race->producer))
			r3ring_store_release_u64(&race->requests_in_lane, race->requests);
		for (uint64_t spin = draw(&state) % 20000; spin; spin--)
			r3ring_cpu_relax();
	}
	r3ring_fetch_add_u32(&race->producing, UINT32_MAX);
	return NULL;
}

/* ---- the daemon --------------------------------------------------------- */

static void check_spans(struct race *race, const struct r3ring_record *record)
{
	uint64_t step = record->u.step.head.step;

	check(race, "spans", record->u.step.head.spans, spans_of(step));
	for (uint32_t i = 0; i < record->u.step.head.spans; i++) {
		check(race, "span's request", record->u.step.spans[i].request,
		      mix(step * SPANS_MAX + i));
		check(race, "span's position", record->u.step.spans[i].position,
		      (uint32_t)step + i);
	}
}

/* Waits for the step's end bell, then compares every id of every layer. */
static void check_ids(struct race *race, const struct lane_step *lane_step, uint64_t step)
{
	struct extent_slot *slot = pages_slot(&race->service.pages, lane_step->slot);
	const struct extent_geometry *geometry = &race->producer->geometry;
	const uint8_t *extent = race->service.buffer + lane_step->extent_offset;
	uint64_t deadline = now_ns() + WAIT_NS;

	/* Pairs with the release in the end kernel. */
	while (r3ring_load_acquire_u64(&slot->end_step) != step) {
		if (now_ns() > deadline) {
			fault(race, "end bell of step", slot->end_step, step);
			return;
		}
		sched_yield();
	}
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		check(race, "bell's step", pages_bell(slot, layer)->step, step);
		check(race, "bell's rows", pages_bell(slot, layer)->rows, rows_of(step));
		for (uint32_t row = 0; row < rows_of(step); row++) {
			uint32_t part = row / geometry->rows_per_record;
			const uint8_t *at =
				extent + extent_part_offset(geometry, rows_of(step), layer, part) +
				EXTENT_HEAD;
			const uint16_t *ids = (const void *)at;
			uint32_t first = (row - part * geometry->rows_per_record) * TOP_K;

			for (uint32_t k = 0; k < TOP_K; k++)
				check(race, "id", ids[first + k],
				      (uint16_t)id_of(step, row * TOP_K + k));
		}
	}
}

static void take_step(struct race *race, const uint8_t *payload, uint32_t bytes)
{
	struct lane_step lane_step;
	struct r3ring_record record;
	const struct r3ring_step_record *head = &record.u.step.head;

	memcpy(&lane_step, payload, sizeof(lane_step));
	if (r3ring_record_decode(&record, R3RING_STEP, payload + sizeof(lane_step),
				 bytes - sizeof(lane_step), NULL)) {
		fault(race, "undecodable step after", race->last_step, 0);
		return;
	}
	if (head->step <= race->newest_seen_by_request)
		fault(race, "step after a request that saw", head->step,
		      race->newest_seen_by_request);
	if (head->weight_version > race->last_request)
		fault(race, "step before a request that it saw", race->last_request,
		      head->weight_version);
	race->gaps += head->step - race->last_step - 1;
	race->gap_rows += lane_step.rows_before - race->rows_seen;
	race->last_step = head->step;
	race->rows_seen = lane_step.rows_before + rows_of(head->step);
	check(race, "rows", head->total_rows, rows_of(head->step));
	check_spans(race, &record);
	if (lane_step.extent_offset == EXTENT_NONE) {
		race->dropped[lane_step.cause % R3RING_CAUSE_COUNT]++;
		return;
	}
	race->delivered++;
	check_ids(race, &lane_step, head->step);
	fake_service_release(&race->service, 1);
}

static void take_request(struct race *race, const uint8_t *payload, uint32_t bytes)
{
	struct r3ring_record record;
	char id[32];

	if (r3ring_record_decode(&record, R3RING_REQUEST, payload, bytes, NULL)) {
		fault(race, "undecodable request after", race->last_request, 0);
		return;
	}
	check(race, "request", record.u.request.head.handle, ++race->last_request);
	snprintf(id, sizeof(id), "request-%" PRIu64, race->last_request);
	if (record.u.request.head.id_len != strlen(id) ||
	    memcmp(record.u.request.id, id, strlen(id)))
		fault(race, "text of request", race->last_request, 0);
	race->newest_seen_by_request = record.u.request.head.prompt_tokens;
}

static bool is_idle(void *ctx)
{
	struct race *race = ctx;
	const struct pages_words *words = race->service.pages.words;

	return r3ring_load_relaxed_u64(&words->step_head.position) ==
		       race->service.steps.position &&
	       r3ring_load_relaxed_u64(&words->side_head.position) ==
		       race->service.sides.position &&
	       r3ring_load_relaxed_u32(&race->producing) != 0;
}

/* Returns whether an entry was taken. */
static bool take_entry(struct race *race)
{
	int error = 0;
	const uint8_t *payload = fake_service_next(&race->service, &error);

	if (error)
		fault(race, "lanes are corrupt after step", race->last_step, 0);
	if (!payload)
		return false;
	if (race->service.entry.type == LANE_STEP)
		take_step(race, payload, race->service.entry.payload_bytes);
	else
		take_request(race, payload, race->service.entry.payload_bytes);
	return true;
}

static void rest(struct race *race)
{
	uint64_t before = now_ns();

	/* The last of the two threads to end wakes nobody, so the sleep is short. */
	pages_sleep(&race->service.pages, is_idle, race, WAIT_NS);
	if (now_ns() - before >= WAIT_NS && r3ring_load_relaxed_u32(&race->producing) == 2)
		race->slept_out++;
}

/* Takes entries until both threads are done and nothing is left; stalls at times. */
static void serve(struct race *race)
{
	uint64_t state = race->seed * 3 + 1;

	while (!race->faults) {
		/* Pairs with the last fetch_add of each thread: all is submitted. */
		bool done = !r3ring_load_acquire_u32(&race->producing) &&
			    is_in_lane(race->producer);

		if (!take_entry(race)) {
			if (done)
				return;
			rest(race);
		}
		if (draw(&state) % 2000 == 0)
			for (uint64_t spin = 100000; spin; spin--)
				r3ring_cpu_relax();
	}
}

/* ---- all together ------------------------------------------------------- */

static void settle(struct race *race)
{
	struct r3ring_producer_stats stats;
	struct pages_begun begun = pages_read_begun(&race->service.pages);

	r3ring_producer_get_stats(race->producer, &stats);
	race->gaps += begun.step - race->last_step;
	race->gap_rows += begun.rows - race->rows_seen;
	check(race, "steps begun", begun.step, stats.steps);
	check(race, "rows begun", begun.rows, stats.rows);
	check(race, "requests delivered", race->last_request, race->requests);
	check(race, "steps lost for want of queue", race->gaps,
	      stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL]);
	check(race, "rows lost for want of queue", race->gap_rows,
	      stats.dropped_rows[R3RING_CAUSE_QUEUE_FULL]);
	check(race, "steps lost for want of buffer", race->dropped[R3RING_CAUSE_BUFFER_FULL],
	      stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL]);
	check(race, "steps accounted for",
	      race->delivered + race->gaps + race->dropped[R3RING_CAUSE_BUFFER_FULL], stats.steps);
	check(race, "sleeps that nobody ended", race->slept_out, 0);
	printf("lane_race: %" PRIu64 " steps (%" PRIu64 " delivered, %" PRIu64
	       " queue_full, %" PRIu64 " buffer_full), %" PRIu64 " requests, %" PRIu64 " faults\n",
	       stats.steps, race->delivered, race->gaps, race->dropped[R3RING_CAUSE_BUFFER_FULL],
	       race->requests, race->faults);
}

static int open_all(struct race *race)
{
	struct r3ring_producer_options options;
	struct r3ring_error err = {0};

	if (fake_service_start(&race->service))
		return -1;
	options = fake_service_options(&race->service);
	options.queue_bytes = 128 << 10;
	if (fake_service_open(&race->service, &race->producer, &options, &err)) {
		fprintf(stderr, "lane_race: %s\n", err.text);
		return -1;
	}
	return r3ring_host_stream_create(&race->stream);
}

int main(int argc, char **argv)
{
	static struct race race;
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	pthread_t stepper, announcer;

	race.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : now_ns() | 1;
	printf("lane_race: seed %" PRIu64 "\n", race.seed);
	if (open_all(&race)) {
		fake_service_stop(&race.service);
		return 1;
	}
	race.producing = 2;
	race.end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	pthread_create(&stepper, NULL, make_steps, &race);
	pthread_create(&announcer, NULL, announce_requests, &race);
	serve(&race);
	pthread_join(stepper, NULL);
	pthread_join(announcer, NULL);
	settle(&race);
	r3ring_producer_close(race.producer);
	r3ring_host_stream_destroy(race.stream);
	fake_service_stop(&race.service);
	return race.faults ? 1 : 0;
}
