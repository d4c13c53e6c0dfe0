/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load that is read by several threads while it is fed: every snapshot must be of whole
 * steps, the same in all layers, exactly those that it says, and never older than the one
 * before; every map must be of the epoch that was asked for. ThreadSanitizer judges the
 * rest (make check-tsan).
 *
 * Step s sends all its rows to expert s % EXPERTS, and to the one behind it; it runs with
 * epoch s / EPOCH_STEPS + 1, whose map begins at physical expert epoch % EXPERTS.
 *
 *	load_readers [SECONDS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/load.h>

#define SECONDS 2u
#define READERS 3u
#define LAYERS 5u
#define EXPERTS 7u
#define TOP_K 2u
#define ROWS 3u
#define WINDOW 24u
#define EPOCH_STEPS 40u

static struct r3ring_load *load;
static uint64_t seq;
static uint32_t over; /* 1: readers may end */

static void fail(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "%s (%llu, %llu)\n", what, (unsigned long long)a, (unsigned long long)b);
	exit(1);
}

/* ---- feeding -------------------------------------------------------------- */

static void feed(const struct r3ring_record *record)
{
	const struct r3ring_view view = {.seq = ++seq, .generation = 1, .type = record->type};

	if (r3ring_load_feed(load, 0, &view, record) != 0)
		fail("a record was refused", record->type, seq);
}

static void feed_schema(void)
{
	struct r3ring_layer_entry layers[LAYERS] = {0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < LAYERS; i++)
		layers[i].layer_id = (int32_t)i;
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = LAYERS, .experts = EXPERTS, .top_k = TOP_K, .model = "stress"};
	record.u.schema.layers = layers;
	feed(&record);
}

static void feed_map(uint64_t epoch)
{
	uint16_t map[LAYERS * EXPERTS];
	struct r3ring_record record = {.type = R3RING_EPLB};

	for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
		map[i] = (uint16_t)((i % EXPERTS + epoch) % EXPERTS);
	record.u.eplb.head = (struct r3ring_eplb_record){
		.epoch = epoch,
		.layers = LAYERS,
		.experts = EXPERTS,
		.replicas = 1,
		.physical = EXPERTS,
		.gpus = 1,
	};
	record.u.eplb.map = map;
	feed(&record);
}

static uint64_t epoch_of(uint64_t step)
{
	return step / EPOCH_STEPS + 1;
}

static void feed_step(uint64_t step)
{
	struct r3ring_record record = {.type = R3RING_STEP};
	uint16_t ids[ROWS * TOP_K];

	for (uint32_t i = 0; i < ROWS * TOP_K; i++)
		ids[i] = (uint16_t)((step + i % TOP_K) % EXPERTS);
	record.u.step.head = (struct r3ring_step_record){.step = step,
							 .total_rows = ROWS,
							 .row_end = ROWS,
							 .valid_end = ROWS,
							 .eplb_epoch = epoch_of(step)};
	feed(&record);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		record = (struct r3ring_record){.type = R3RING_LAYER};
		record.u.layer.head = (struct r3ring_layer_record){.step = step,
								   .layer_id = (int32_t)layer,
								   .layer_index = (uint16_t)layer,
								   .rows = ROWS,
								   .total_rows = ROWS,
								   .valid_rows = ROWS,
								   .top_k = TOP_K};
		record.u.layer.ids = ids;
		feed(&record);
	}
	record = (struct r3ring_record){.type = R3RING_STEP_END};
	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = step, .status = R3RING_STEP_COMPLETE, .publish_ns = step * 1000};
	feed(&record);
}

/* ---- reading ---------------------------------------------------------------- */

static void expect_counts(const struct r3ring_load_info *info)
{
	double expected[EXPERTS] = {0};

	if (info->steps != info->to_step - info->from_step + 1)
		fail("a snapshot has not the steps that it says", info->steps, info->to_step);
	for (uint64_t step = info->from_step; step <= info->to_step; step++)
		for (uint32_t k = 0; k < TOP_K; k++)
			expected[(step + k) % EXPERTS] += ROWS;
	for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
		if (info->counts[i] < expected[i % EXPERTS] ||
		    info->counts[i] > expected[i % EXPERTS])
			fail("a count is not that of the snapshot's steps", i, info->to_step);
}

static void expect_map(uint64_t epoch)
{
	struct r3ring_eplb_map *map;
	int r = r3ring_load_map(load, 0, epoch, &map);

	if (r == -ENOENT)
		return; /* being replaced, or four newer ones came */
	if (r < 0 || map->epoch != epoch)
		fail("a map is not of the epoch", epoch, (uint64_t)-r);
	for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
		if (map->map[i] != (i % EXPERTS + epoch) % EXPERTS)
			fail("a map has another's places", epoch, i);
	r3ring_eplb_map_free(map);
}

struct reading {
	struct r3ring_load_snapshot *snapshot;
	uint64_t newest;
	uint64_t read;
};

static void read_one(struct reading *reading, uint32_t channel, enum r3ring_load_over which)
{
	const struct r3ring_load_info *info;
	int r = r3ring_load_read(load, channel, which, R3RING_LOAD_ANY_EPOCH, reading->snapshot);
	uint64_t epoch;

	if (r == -ENODATA)
		return;
	info = r3ring_load_snapshot_info(reading->snapshot);
	if (r < 0 || info->to_step < reading->newest)
		fail("a snapshot is older than the one before", info->to_step, reading->newest);
	reading->newest = info->to_step;
	reading->read++;
	epoch = info->epoch;
	if (which == R3RING_LOAD_AVERAGE)
		return;
	expect_counts(info);
	r = r3ring_load_read(load, channel, which, epoch, reading->snapshot);
	if (r == 0 && epoch_of(info->from_step) != epoch)
		fail("a step of another epoch is in it", info->from_step, epoch);
	if (r == 0)
		expect_counts(info);
	expect_map(epoch);
}

static void *read_all(void *argument)
{
	struct reading *reading = argument;

	while (!r3ring_load_relaxed_u32(&over)) {
		read_one(reading, 0, R3RING_LOAD_STEPS);
		read_one(reading, R3RING_LOAD_MERGED, R3RING_LOAD_TIME);
		read_one(reading, 0, R3RING_LOAD_AVERAGE);
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

static void run(double seconds)
{
	struct reading reading[READERS] = {{0}};
	pthread_t thread[READERS];
	double end = now() + seconds;
	uint64_t step = 0;

	for (uint32_t i = 0; i < READERS; i++)
		if (r3ring_load_snapshot_create(&reading[i].snapshot) < 0 ||
		    pthread_create(&thread[i], NULL, read_all, &reading[i]) != 0)
			fail("no thread", i, 0);
	while (now() < end) {
		step++;
		if (step == 1 || epoch_of(step) != epoch_of(step - 1))
			feed_map(epoch_of(step));
		feed_step(step);
	}
	r3ring_store_relaxed_u32(&over, 1);
	for (uint32_t i = 0; i < READERS; i++) {
		pthread_join(thread[i], NULL);
		printf("reader %u: %llu snapshots of %llu steps\n", i,
		       (unsigned long long)reading[i].read, (unsigned long long)step);
		if (!reading[i].read)
			fail("a reader read nothing", i, step);
		r3ring_load_snapshot_free(reading[i].snapshot);
	}
}

int main(int argc, char **argv)
{
	const struct r3ring_load_options options = {
		.size = sizeof(options), .window_steps = WINDOW, .window_ns = 20000};

	if (r3ring_load_create(&load, &options, NULL) < 0 ||
	    r3ring_load_channel(load, "stress/0") != 0)
		fail("no load", 0, 0);
	feed_schema();
	run(argc > 1 ? strtod(argv[1], NULL) : SECONDS);
	r3ring_load_destroy(load);
	return 0;
}
