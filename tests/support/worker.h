/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of its own that a test can watch, stop and kill: it and the test
 * share a page of counters.
 */
#ifndef TESTS_SUPPORT_WORKER_H
#define TESTS_SUPPORT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <r3ring/producer.h>

struct worker_page {
	uint64_t progress; /* the worker's; atomic */
	uint64_t stop;     /* the test's: to end in good order; atomic */
	uint64_t slowest_ns;
	uint64_t counts[4];
	struct r3ring_producer_stats stats;
	struct r3ring_error err;
};

struct worker {
	pid_t pid; /* 0: none */
	struct worker_page *page;
};

/*
 * Starts a process that runs @body and exits with what it returns. It is killed
 * with this one. Ends this process when it cannot.
 */
void worker_start(struct worker *worker, int (*body)(struct worker_page *page, const void *ctx),
		  const void *ctx);

/* Waits until it ends, for at most a minute, then kills it. Returns its exit
 * code, or -signal. */
int worker_wait(struct worker *worker);

/* SIGKILL, and waits. */
void worker_kill(struct worker *worker);

/* Waits until its progress is at least @value; false after a minute or when
 * it has ended. */
bool worker_reaches(const struct worker *worker, uint64_t value);

/* Between the steps of a worker: as if a model computed. */
void worker_compute(void);

#endif
