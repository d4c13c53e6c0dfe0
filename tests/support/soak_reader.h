/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader in a process of its own that keeps an exact account of a channel as
 * engine.h runs it, and publishes it whole after every record, so that it holds at
 * whatever moment the process is killed.
 */
#ifndef TESTS_SUPPORT_SOAK_READER_H
#define TESTS_SUPPORT_SOAK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader.h>

#include "tests/support/worker.h"

struct soak_account {
	struct r3ring_cursor_stats stats;
	uint64_t generations;
	uint32_t demoted;
	uint64_t units;                          /* rows x layers delivered */
	uint64_t units_before;                   /* running total in front of the first record */
	uint64_t newest_units;                   /* running total as of the newest record */
	uint64_t newest_end;                     /* step of the newest STEP_END */
	uint64_t steps_ended;                    /* STEP_END records */
	uint64_t missing_units;                  /* rows x layers that STEP_END named as missing */
	uint64_t lost_steps[R3RING_CAUSE_COUNT]; /* as LOST records tell */
	uint64_t lost_rows;
	uint64_t wrong_ids, corrupt;
	uint64_t wrong_accounts; /* times that the figures above did not add up */
};

struct soak_page {
	uint64_t version; /* atomic; the account of that parity is whole */
	struct soak_account accounts[2];
};

struct soak_reader {
	struct worker worker;
	struct soak_page *page;
};

struct soak_job {
	const char *dir, *channel;
	enum r3ring_cursor_mode mode;
	uint32_t dawdle_us; /* after each record */
	uint32_t stall_ms;  /* lossless: how long it is to be waited for; 0: as the daemon says */
};

/* Starts it and waits until it is attached. Returns whether it is. */
bool soak_reader_start(struct soak_reader *reader, const struct soak_job *job);

/* The newest whole account. */
struct soak_account soak_reader_account(const struct soak_reader *reader);

/* Whether it adds up; says in what not. */
bool soak_account_holds(const struct soak_account *account, const char *who);

/* Ends it: in good order, or by SIGKILL. Frees its pages. Returns its exit code. */
int soak_reader_finish(struct soak_reader *reader);
void soak_reader_kill(struct soak_reader *reader);

#endif
