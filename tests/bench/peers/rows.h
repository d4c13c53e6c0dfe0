/* SPDX-License-Identifier: Apache-2.0 */
/* The rows: each peer with each size and number of readers, measured in turn. */
#ifndef TESTS_BENCH_PEERS_ROWS_H
#define TESTS_BENCH_PEERS_ROWS_H

#include <stddef.h>

#include "tests/bench/options.h"
#include "tests/bench/peers/measure.h"

#define ROWS_MAX 64
#define SIZES_MAX 8

/* One repeat of a row, and the way of a cache line before and after it, in ns. */
struct peer_sample {
	double before, after;
	struct peer_result result;
};

struct peer_row {
	char name[96]; /* "PEER, SIZE, READERS" */
	const struct peer *peer;
	size_t size;
	unsigned int readers;
	int code; /* what its first failure returned */
	struct peer_sample samples[BENCH_REPEATS_MAX];
	unsigned int kept;         /* the first of them, once sifted */
	unsigned int thrown;       /* the others */
	struct peer_counts counts; /* of all repeats */
};

struct peer_floors {
	double clock_distance_ns, futex_ns;
	size_t sizes[SIZES_MAX];
	double memcpy_ns[SIZES_MAX];
	size_t size_count;
};

struct peer_table {
	struct peer_row rows[ROWS_MAX];
	size_t count;
	struct peer_floors floors;
	double line_ns; /* the median of the run, once sifted */
};

/* Lists the rows whose names hold @filter (NULL: all). */
void rows_list(struct peer_table *table, const char *filter);

/* Measures all floors but the line's. Returns 0 or a negative errno. */
int rows_floors(struct peer_table *table);

/* Measures each row once, with the way of a cache line before and after it. */
void rows_run(struct peer_table *table);

/*
 * Throws away, for once all repeats are measured, what was measured between floors
 * that disagree by more than a quarter with each other, or with most floors of the
 * run: then the host has moved a core in the meantime, and rows would be compared
 * that ran on different machines.
 */
void rows_sift(struct peer_table *table);

#endif
