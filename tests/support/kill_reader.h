/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader in a process of its own that is there to be killed: it keeps a ledger, and
 * publishes its account whole after every record, so that it can be looked at
 * whatever becomes of the process.
 */
#ifndef TESTS_SUPPORT_KILL_READER_H
#define TESTS_SUPPORT_KILL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/ledger.h"
#include "tests/support/test_points.h"
#include "tests/support/worker.h"

enum kill_kind {
	KILL_LOSSY,
	KILL_LATEST,
	KILL_UNREGISTERED,
	KILL_LOSSLESS,
	KILL_HASTY, /* lossless, and waited for shortly */
	KILL_KINDS,
};

struct kill_account {
	uint64_t records; /* got, of the newest generation */
	uint64_t wrong, twice, wrong_sums, disordered;
	uint64_t lost;        /* records, of all generations */
	uint64_t unkept;      /* of these: as the reader itself says it */
	uint64_t unexplained; /* of these: while lossless, and neither demoted nor unkept */
	uint64_t unexplained_from, unexplained_to; /* the newest gap of these */
	uint64_t demotions;
	uint64_t generation, newest_step; /* the newest of which it was told */
	uint32_t closed;                  /* how that generation ended; 0: not */
};

/* What one generation published, as a reader that saw its end knows it. */
struct kill_published {
	uint64_t generation;
	uint64_t units; /* rows x layers */
};

struct kill_page {
	uint64_t version; /* atomic; the account of that parity is whole */
	struct kill_account accounts[2];
	uint64_t published_count; /* atomic */
	struct kill_published published[LEDGER_GENERATIONS];
	uint64_t final_generation; /* the test's, before worker.page->stop; 0: not known yet */
};

struct kill_reader {
	struct worker worker;
	bool stood_still; /* once, maybe longer than it is waited for */
	struct kill_page *page;
	struct test_points *points; /* NULL: it is never struck */
	enum kill_kind kind;
	const char *dir, *channel;
	uint32_t (*rows_of)(uint64_t step);
	/* In the process, when all was read; returns its exit code. NULL: 0. */
	int (*at_end)(const struct ledger *ledger, void *ctx);
	void *ctx;
};

/* Starts it; its page is made at the first time, and emptied at others. */
void kill_reader_start(struct kill_reader *reader);

/* The newest whole account. */
struct kill_account kill_reader_account(const struct kill_reader *reader);

/* Whether nothing was wrong, doubled or unexplained; says what was. */
bool kill_reader_sound(const struct kill_reader *reader, const char *when);

/* Lets it read up to the end of @generation. Returns its exit code. */
int kill_reader_finish(struct kill_reader *reader, uint64_t generation);

const char *kill_kind_name(enum kill_kind kind);

#endif
