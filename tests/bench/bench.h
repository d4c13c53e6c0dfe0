/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark's rows. A row measures something beside the floor that the
 * machine sets at that moment: floor, measured, floor, several times over. To
 * add rows, define a group in a file of its own and name it in main.c.
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench_row;

/*
 * Measures once, for a second or two at most.
 * Returns 0 and stores the value in the row's unit, -ENOTSUP (this machine
 * cannot: the row is shown as skipped), or another negative errno (failed).
 */
typedef int (*bench_measure_fn)(const struct bench_row *row, double *value);

enum bench_target {
	BENCH_RATIO_AT_MOST,  /* measured / floor <= target: times */
	BENCH_RATIO_AT_LEAST, /* measured / floor >= target: rates */
	BENCH_EXCESS_AT_MOST, /* measured - floor <= target: instructions */
	BENCH_VALUE_AT_MOST,  /* measured <= target; floor may be NULL */
};

struct bench_row {
	const char *name; /* what is measured, and beside what */
	const char *unit; /* of both values, e.g. "ns", "GB/s" */
	bench_measure_fn floor;
	bench_measure_fn measured;
	enum bench_target kind;
	double target;
	uint64_t size;  /* for the functions: bytes, rows, readers ... */
	double percent; /* for the functions: which percentile */
};

struct bench_group {
	const char *name;
	const struct bench_row *rows;
	size_t count;
};

extern const struct bench_group bench_ring, bench_copy, bench_step;
extern const struct bench_group bench_capture, bench_drain, bench_daemon, bench_wake;
extern const struct bench_group bench_unbound, bench_assemble, bench_export, bench_reserve,
	bench_load, bench_load_served, bench_load_memory;
extern const struct bench_group bench_record, bench_monitors;

/* ---- running (harness.c) ---------------------------------------------- */

struct bench_result {
	int code; /* 0 or what a function returned */
	double floor;
	double measured;
	double figure;       /* what is compared with the target, by row->kind */
	double disagreement; /* between the floors before and after, 0.25 is 25 % */
	int met;
	int reliable;
};

/* Measures a row @repeats times (odd; medians are taken). */
struct bench_result bench_run(const struct bench_row *row, unsigned int repeats);

/* ---- help for rows (process.c) ---------------------------------------- */

uint64_t bench_now_ns(void);
uint64_t bench_cpu_ns(void); /* CPU time of the calling thread */

/* Sorts @values and returns the one at @percent (0 to 100). */
double bench_percentile(double *values, size_t count, double percent);

/*
 * Pins the calling thread to the @index-th processor it may use, modulo their
 * number. Returns 0 or a negative errno.
 */
int bench_pin(unsigned int index);

/* How many those are. */
unsigned int bench_cpus(void);

/* Lets it run on all of them again, as do programs that it starts. */
int bench_unpin(void);

/* Memory shared with children, zeroed; NULL when there is none. */
void *bench_shared(size_t bytes);
void bench_unshare(void *memory, size_t bytes);

/*
 * Runs @body(@arg) in a child pinned to processor @cpu; it dies with its
 * parent. Its result (0 or negative errno) is the result of bench_join().
 * Rows that use a GPU must leave it to children: a process that has
 * initialised CUDA may not fork.
 */
pid_t bench_spawn(int (*body)(void *arg), void *arg, unsigned int cpu);
int bench_join(pid_t pid);

/* ---- floors of more than one row (floors.c) ----------------------------- */

/* All return 0 or a negative errno. */

/*
 * One way of a cache line from core to core, in ns: half of a round trip of one
 * word each way, at @percent of many.
 */
int bench_line_one_way(double percent, double *ns);

/* Copying @size bytes, warm in the source, to the next place of a lap of @lap bytes;
 * in ns. */
int bench_memcpy(size_t size, size_t lap, double *ns);

/* From before FUTEX_WAKE until the process that slept on another core runs, in ns,
 * the median of many. */
int bench_futex_wake(double *ns);

/* How far the clocks of the first two cores are apart, in ns: half of the difference
 * between the shortest ways of a stamp there and back. */
int bench_clock_distance(double *ns);

#ifdef __cplusplus
}
#endif

#endif
