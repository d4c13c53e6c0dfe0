/* SPDX-License-Identifier: Apache-2.0 */
/* The rows: each peer with each size and number of readers, measured in turn. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/rows.h"

#define LATENCY_NS 250000000ull
#define THROUGHPUT_NS 200000000ull
#define DISAGREEMENT_MAX 0.25

static const struct peer *const peers[] = {
	&peer_r3ring, &peer_rte_ring, &peer_rte_ring_in_place,
	&peer_ck,     &peer_boost,    &peer_iceoryx,
	&peer_zeromq, &peer_redis,    &peer_seqpacket,
	&peer_pipe,
};
static const size_t sizes[] = {64, 1024, 32768};

#define PEER_COUNT (sizeof(peers) / sizeof(peers[0]))
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* ---- listing ------------------------------------------------------------------- */

static void list_row(struct peer_table *table, const char *filter, const struct peer *peer,
		     size_t size, unsigned int readers)
{
	struct peer_row *row = &table->rows[table->count];
	size_t shown = size < 1024 ? size : size / 1024;

	if (readers > peer->readers_max || table->count == ROWS_MAX)
		return;
	snprintf(row->name, sizeof(row->name), "%s, %zu %s, %u reader%s", peer->name, shown,
		 size < 1024 ? "B" : "KiB", readers, readers == 1 ? "" : "s");
	if (filter && !strstr(row->name, filter))
		return;
	row->peer = peer;
	row->size = size;
	row->readers = readers;
	table->count++;
}

void rows_list(struct peer_table *table, const char *filter)
{
	for (size_t s = 0; s < SIZE_COUNT; s++) {
		size_t before = table->count;

		for (size_t p = 0; p < PEER_COUNT; p++)
			list_row(table, filter, peers[p], sizes[s], 1);
		for (size_t p = 0; p < PEER_COUNT; p++)
			list_row(table, filter, peers[p], sizes[s], PEER_READERS_MAX);
		if (table->count != before)
			table->floors.sizes[table->floors.size_count++] = sizes[s];
	}
}

/* ---- measuring ----------------------------------------------------------------- */

int rows_floors(struct peer_table *table)
{
	struct peer_floors *floors = &table->floors;
	int rc = bench_clock_distance(&floors->clock_distance_ns);

	rc = rc ? rc : bench_futex_wake(&floors->futex_ns);
	for (size_t i = 0; !rc && i < floors->size_count; i++)
		rc = bench_memcpy(floors->sizes[i], PEER_BYTES, &floors->memcpy_ns[i]);
	return rc;
}

static void add_counts(struct peer_counts *sum, const struct peer_counts *counts)
{
	sum->sent += counts->sent;
	sum->received += counts->received;
	sum->lost += counts->lost;
	sum->wrong += counts->wrong;
}

static void run_row(struct peer_row *row)
{
	struct peer_plan plan = {.size = row->size,
				 .readers = row->readers,
				 .latency_ns = LATENCY_NS,
				 .throughput_ns = THROUGHPUT_NS};
	struct peer_sample *sample = &row->samples[row->kept];
	int rc = bench_line_one_way(50, &sample->before);

	rc = rc ? rc : peer_measure(row->peer, &plan, &sample->result);
	rc = rc ? rc : bench_line_one_way(50, &sample->after);
	row->code = rc;
	if (rc)
		return;
	add_counts(&row->counts, &sample->result.counts);
	row->kept++;
}

void rows_run(struct peer_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (!table->rows[i].code && table->rows[i].kept < BENCH_REPEATS_MAX)
			run_row(&table->rows[i]);
}

/* ---- sifting ------------------------------------------------------------------- */

static bool agree(double one, double other)
{
	double larger = one > other ? one : other;
	double smaller = one > other ? other : one;

	return larger - smaller <= DISAGREEMENT_MAX * larger;
}

static double median_line(const struct peer_table *table)
{
	static double lines[2 * ROWS_MAX * BENCH_REPEATS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct peer_row *row = &table->rows[i];

		for (unsigned int k = 0; k < row->kept; k++) {
			lines[count++] = row->samples[k].before;
			lines[count++] = row->samples[k].after;
		}
	}
	return count ? bench_percentile(lines, count, 50) : 0;
}

static void sift_row(struct peer_row *row, double line_ns)
{
	unsigned int all = row->kept;

	row->kept = 0;
	for (unsigned int i = 0; i < all; i++) {
		const struct peer_sample *sample = &row->samples[i];

		if (agree(sample->before, sample->after) && agree(sample->before, line_ns) &&
		    agree(sample->after, line_ns))
			row->samples[row->kept++] = *sample;
	}
	row->thrown = all - row->kept;
}

void rows_sift(struct peer_table *table)
{
	table->line_ns = median_line(table);
	for (size_t i = 0; i < table->count; i++)
		sift_row(&table->rows[i], table->line_ns);
}
