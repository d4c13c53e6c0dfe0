/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `r3ring export`: an archive of many short requests to safetensors, from its beginning to its
 * end, with all its threads: beside memcpy of the routes that it writes, and beside what no
 * export can do without. Archive and output lie in memory, so nothing waits for a disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/export/export.h"
#include "archive/writer.h"
#include "tests/bench/bench.h"
#include "tests/bench/export_floors.h"
#include "tests/bench/made_lives.h"
#include "tests/support/remove_dir.h"

#define LIVES 8u /* of 256 requests and 64 steps each: 8 MB of routes */
#define COPY_NS 200000000ull
#define MEMORY "/dev/shm"

struct place {
	char archive[64], out[64];
	struct archive_writer *writer;
	uint8_t *payload;
	size_t room;
	uint16_t channel;
};

/* ---- floor -------------------------------------------------------------- */

static size_t routes_bytes(uint32_t lives)
{
	const struct lives_shape *shape = &lives_flash_decode;

	return lives_layer_bytes(shape) * shape->layers * shape->steps * lives;
}

static int copy_routes(const struct bench_row *row, double *value)
{
	const size_t bytes = routes_bytes(LIVES);
	uint8_t *from = malloc(bytes), *to = malloc(bytes);
	uint64_t start, passed = 0, laps = 0;
	int rc = from && to ? bench_unpin() : -ENOMEM;

	(void)row;
	if (!rc) {
		memset(from, 1, bytes);
		memset(to, 2, bytes);
	}
	start = bench_now_ns();
	for (; !rc && passed < COPY_NS; laps++) {
		memcpy(to, from, bytes);
		__asm__ __volatile__("" ::"r"(to) : "memory");
		passed = bench_now_ns() - start;
	}
	if (!rc)
		*value = (double)bytes * (double)laps / (double)passed;
	free(from);
	free(to);
	return rc;
}

/* ---- the archive -------------------------------------------------------- */

/* Each step's ids are others, or zstd would find the first step's again in all. */
static void change_ids(const struct r3ring_record *record, void *payload, size_t bytes)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	const size_t count = (size_t)head->rows * head->top_k;
	const uint16_t mask = (uint16_t)((head->step * 0x9E37u + head->layer_index * 0x79u) &
					 (lives_flash_decode.experts - 1));
	uint16_t *ids = (uint16_t *)(void *)((uint8_t *)payload + bytes - count * sizeof(*ids));

	for (size_t i = 0; i < count; i++)
		ids[i] ^= mask;
}

static int give(void *ctx, const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct place *place = ctx;
	const size_t bytes = r3ring_record_size(record);
	struct r3ring_view whole = *view;
	long done;

	if (bytes > place->room) {
		free(place->payload);
		place->room = bytes * 2;
		place->payload = aligned_alloc(64, (place->room + 63) / 64 * 64);
		if (!place->payload)
			return -ENOMEM;
	}
	done = r3ring_record_encode(record, place->payload, place->room, NULL);
	if (done < 0)
		return (int)done;
	if (record->type == R3RING_LAYER)
		change_ids(record, place->payload, (size_t)done);
	whole.data = place->payload;
	whole.len = (uint32_t)done;
	return archive_writer_record(place->writer, place->channel, &whole);
}

static int write_lives(struct place *place, uint32_t count)
{
	struct lives lives;
	int rc = lives_make(&lives, &lives_flash_decode, give, place);

	for (uint32_t life = 0; !rc && life < count; life++) {
		rc = lives_begin(&lives);
		for (uint32_t i = 0; !rc && i < lives.shape->steps; i++)
			rc = lives_step(&lives, i);
		if (!rc)
			rc = lives_end(&lives);
	}
	lives_free(&lives);
	return rc;
}

static int make_archive(struct place *place, uint32_t lives, int level)
{
	const uint8_t uuid[16] = {1};
	struct archive_writer_options options = {.dir = place->archive, .level = level};
	int rc, closed;

	snprintf(place->archive, sizeof(place->archive), MEMORY "/r3ring-bench-%d", getpid());
	snprintf(place->out, sizeof(place->out), MEMORY "/r3ring-bench-%d.out", getpid());
	rc = archive_writer_open(&place->writer, &options, NULL);
	if (rc)
		return rc;
	place->channel = (uint16_t)archive_writer_channel(place->writer, "bench/0");
	rc = archive_writer_generation(place->writer, place->channel, 1, uuid);
	if (!rc)
		rc = write_lives(place, lives);
	closed = archive_writer_close(place->writer, NULL);
	free(place->payload);
	return rc ? rc : closed;
}

static void remove_archive(const struct place *place)
{
	remove_dir(place->archive);
	unlink(place->out);
}

/* ---- exporting ---------------------------------------------------------- */

static int export_it(const struct place *place, uint32_t lives)
{
	const struct export_options options = {.format = "safetensors", .out = place->out};
	struct export_summary summary;
	struct r3ring_error err = {0};
	int rc = export_archive(place->archive, &options, NULL, NULL, &summary, &err);

	if (rc)
		fprintf(stderr, "%s\n", err.text);
	if (!rc && summary.cells * summary.top_k * sizeof(uint16_t) != routes_bytes(lives))
		rc = -EBADMSG;
	return rc;
}

static int export_rate(const struct bench_row *row, double *value)
{
	struct place place = {0};
	int rc = make_archive(&place, LIVES, (int)row->size);
	uint64_t start;

	if (!rc)
		rc = bench_unpin();
	if (!rc)
		rc = export_it(&place, LIVES);
	unlink(place.out); /* what is replaced has to be taken apart */
	start = bench_now_ns();
	if (!rc)
		rc = export_it(&place, LIVES);
	if (!rc)
		*value = (double)routes_bytes(LIVES) / (double)(bench_now_ns() - start);
	remove_archive(&place);
	return rc;
}

/* ---- floors that need the archive --------------------------------------- */

static int pass_rate(const struct bench_row *row, double *value)
{
	struct place place = {0};
	uint64_t ns = 0;
	int rc = make_archive(&place, LIVES, (int)row->size);

	for (unsigned int lap = 0; !rc && lap < 2; lap++)
		rc = export_floor_pass(place.archive, place.out, routes_bytes(LIVES), &ns);
	if (!rc)
		*value = (double)routes_bytes(LIVES) / (double)ns;
	remove_archive(&place);
	return rc;
}

/* Routes are nearly all that there is in it. */
static int decompress_rate(const struct bench_row *row, double *value)
{
	struct place place = {0};
	uint64_t ns = 0, raw;
	int rc = make_archive(&place, LIVES, (int)row->size);

	if (!rc)
		rc = export_floor_decompress(place.archive, &raw, &ns);
	if (!rc)
		*value = (double)routes_bytes(LIVES) / (double)ns;
	remove_archive(&place);
	return rc;
}

/* The least that an export does with a file at its end. */
static int write_rate(const struct bench_row *row, double *value)
{
	char out[64];
	uint64_t ns = 0;
	int rc;

	(void)row;
	snprintf(out, sizeof(out), MEMORY "/r3ring-bench-%d.out", getpid());
	rc = export_floor_write(out, routes_bytes(LIVES), &ns);
	if (!rc)
		*value = (double)routes_bytes(LIVES) / (double)ns;
	unlink(out);
	return rc;
}

/* ---- memory ------------------------------------------------------------- */

struct watched {
	const struct place *place;
	uint32_t lives;
	double *peak; /* MiB, shared */
};

/* A line of /proc/self/status, in MiB. */
static double status_of(const char *name)
{
	char line[128];
	double kib = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)))
			kib = strtod(line + strlen(name), NULL);
	if (status)
		fclose(status);
	return kib / 1024;
}

/* The peak begins anew at what is there now. */
static int forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);
	int rc = fd >= 0 && write(fd, "5", 1) == 1 ? 0 : -ENOTSUP;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int export_watched(void *arg)
{
	const struct watched *watched = arg;
	double before;
	int rc = bench_unpin();

	if (rc)
		return rc;
	malloc_trim(0);
	rc = forget_peak();
	if (rc)
		return rc;
	before = status_of("VmRSS:");
	rc = export_it(watched->place, watched->lives);
	*watched->peak = status_of("VmHWM:") - before;
	return rc;
}

/* What a child needs at most beyond what it has from its parent. */
static int peak_of(uint32_t lives, double *peak)
{
	struct place place = {0};
	double *shared = bench_shared(sizeof(*shared));
	struct watched watched = {&place, lives, shared};
	int rc = shared ? make_archive(&place, lives, 3) : -ENOMEM;

	if (!rc)
		rc = bench_join(bench_spawn(export_watched, &watched, 0));
	if (!rc)
		*peak = *shared;
	remove_archive(&place);
	bench_unshare(shared, sizeof(*shared));
	return rc;
}

static int peak_of_size(const struct bench_row *row, double *value)
{
	return peak_of((uint32_t)row->size, value);
}

static int peak_of_four_times(const struct bench_row *row, double *value)
{
	return peak_of((uint32_t)row->size * 4, value);
}

static const struct bench_row rows[] = {
	{.name = "archive without compression exported to safetensors, beside memcpy",
	 .unit = "GB/s",
	 .floor = copy_routes,
	 .measured = export_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.5,
	 .size = 0},
	{.name = "archive at zstd's level 3 exported to safetensors, beside memcpy",
	 .unit = "GB/s",
	 .floor = copy_routes,
	 .measured = export_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.5,
	 .size = 3},
	/* While this holds, half of memcpy is not to be had. */
	{.name = "writing as much to a new file and nothing else, beside memcpy",
	 .unit = "GB/s",
	 .floor = copy_routes,
	 .measured = write_rate,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 0.5},
	{.name = "archive without compression exported, beside reading, hashing and writing",
	 .unit = "GB/s",
	 .floor = pass_rate,
	 .measured = export_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.5,
	 .size = 0},
	{.name = "archive at zstd's level 3, beside that and decompressing, in one thread",
	 .unit = "GB/s",
	 .floor = pass_rate,
	 .measured = export_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.5,
	 .size = 3},
	{.name = "archive at zstd's level 3, beside decompressing alone, in one thread",
	 .unit = "GB/s",
	 .floor = decompress_rate,
	 .measured = export_rate,
	 .kind = BENCH_RATIO_AT_LEAST,
	 .target = 0.5,
	 .size = 3},
	{.name = "memory of an export of 4 times the archive, beside that of once",
	 .unit = "MiB",
	 .floor = peak_of_size,
	 .measured = peak_of_four_times,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.1,
	 .size = 8},
};

const struct bench_group bench_export = {"export", rows, sizeof(rows) / sizeof(*rows)};
