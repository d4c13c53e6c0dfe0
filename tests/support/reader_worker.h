/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that is a process of its own, so that it can be stopped and killed. */
#ifndef TESTS_SUPPORT_READER_WORKER_H
#define TESTS_SUPPORT_READER_WORKER_H

#include <stdint.h>

#include <r3ring/reader.h>

#include "tests/support/engine.h"
#include "tests/support/worker.h"

struct reader_job {
	struct r3ring_reader_options options;
	uint32_t dawdle_us; /* asleep after each record: longer where others want the processor */
	uint32_t busy_us;   /* of the processor's time, likewise: not longer than that */
	uint32_t spins;     /* 1: never sleeps */
	uint32_t polls;     /* 1: as listener.polls */
};

/* Shared with the process; as of its newest record or loss. */
struct reader_page {
	uint64_t turns; /* how often it has looked; atomic */
	struct listener seen;
	uint64_t accounted;
	uint64_t seq_breaks; /* records that followed no predecessor and no told loss */
};

struct reader_worker {
	struct worker worker;
	struct reader_page *page;
};

/* Starts it and waits until it is attached. Ends this process when it cannot. */
void reader_worker_start(struct reader_worker *reader, const struct reader_job *job);

/* Waits until it has accounted for @steps; false after twenty seconds. */
bool reader_worker_accounts(const struct reader_worker *reader, uint64_t steps);

/* SIGSTOP, and waits until it stands still; SIGCONT. */
void reader_worker_pause(const struct reader_worker *reader);
void reader_worker_go_on(const struct reader_worker *reader);

/* Lets it end in good order; its page stays readable. */
void reader_worker_finish(struct reader_worker *reader);
void reader_worker_kill(struct reader_worker *reader);

/* Whether @done(ctx) comes true within @ms. */
bool reader_worker_wait(bool (*done)(const void *ctx), const void *ctx, int ms);

#endif
