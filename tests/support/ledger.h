/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader that keeps the account of every single step of a channel, in every
 * generation: what it was told of it, and how often. Ids are checked against the
 * rule of engine.h.
 */
#ifndef TESTS_SUPPORT_LEDGER_H
#define TESTS_SUPPORT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader.h>

#define LEDGER_GENERATIONS 24u
#define LEDGER_STEPS 400000u /* of one generation, at most */

struct ledger_step {
	uint8_t announced, complete, partial, lost; /* how often */
	bool torn;        /* a gap of this reader may have had a part of it */
	uint32_t layers;  /* bit per layer index that came whole */
	uint32_t missing; /* likewise, that STEP_END named as missing */
	uint32_t rows;
};

struct ledger_generation {
	uint64_t number;
	uint64_t first_step;  /* that was told of in any way, and */
	uint64_t newest_step; /* the last */
	struct ledger_step *steps;
	uint64_t passed; /* records that this reader lost or skipped */
	uint64_t units;  /* rows x layers published, as of its newest record */
	uint64_t complete, partial;
	uint64_t begun, aborted;    /* requests */
	uint64_t ends_unknown;      /* of these */
	uint64_t attributed;        /* spans whose request is known */
	uint64_t newest_attributed; /* number at the end of the newest one's text id */
	uint64_t newest_begun;      /* the largest handle of a BEGIN */
	uint64_t disordered; /* requests that began twice, or after one with a larger handle */
	uint64_t foreign;    /* spans whose request was named for another generation */
	uint64_t lost_steps[R3RING_CAUSE_COUNT];
	uint64_t lost_rows[R3RING_CAUSE_COUNT];
	uint64_t lost_layer_rows[R3RING_CAUSE_COUNT];
	uint64_t vague_steps; /* lost in a range of more: which ones is not known */
	uint64_t vague_rows;
	uint64_t missing_layers[R3RING_CAUSE_COUNT];
	uint32_t closed;       /* reason, 0: not closed */
	uint32_t engine_lived; /* then, as CLOSED says */
	uint64_t next;         /* generation that CLOSED names */
};

/* Whether what was delivered, lost and skipped is what the writer says it published. */
struct ledger_sums {
	uint64_t units;  /* rows x layers delivered in the newest generation */
	uint64_t before; /* published in front of the first record read of it */
	bool begun;
	uint64_t wrong; /* how often something did not add up, or was not told */
};

struct ledger {
	struct r3ring_reader *reader;
	struct r3ring_requests *requests;
	uint32_t (*rows_of)(uint64_t step); /* what LOST is checked against; NULL: nothing */
	unsigned int count;                 /* of generations seen */
	struct ledger_generation generations[LEDGER_GENERATIONS];
	uint64_t wrong;  /* ids and rows against the rule, and records that do not decode */
	uint64_t twice;  /* steps that were told of more often, or otherwise, than can be */
	uint64_t gaps;   /* overruns of this reader */
	bool torn;       /* since the newest record */
	uint64_t passed; /* lost and skipped, as of the newest record of its generation */
	uint64_t jumped; /* generations between those that were seen */
	struct ledger_sums sums;
	struct r3ring_reader_stats stats; /* as of the newest record or gap */
};

/* Attaches from the oldest record, as listener_open(). */
void ledger_open(struct ledger *ledger, const char *dir, const char *channel);
void ledger_close(struct ledger *ledger);

/* The same as @options say, but returns a negative errno when it cannot. */
int ledger_try_open(struct ledger *ledger, const struct r3ring_reader_options *options,
		    struct r3ring_error *err);

/* Reads until @done says so, for at most twenty seconds; returns whether it did. */
bool ledger_read_until(struct ledger *ledger,
		       bool (*done)(const struct ledger *ledger, uint64_t argument),
		       uint64_t argument);

/* For ledger_read_until(): of the newest generation. */
bool ledger_has_closed(const struct ledger *ledger, uint64_t reason);
bool ledger_has_ended_step(const struct ledger *ledger, uint64_t step);
bool ledger_has_generations(const struct ledger *ledger, uint64_t count);

/* The one of that place, the first is 0; the newest. */
struct ledger_generation *ledger_newest(const struct ledger *ledger);

/*
 * Looks at steps [1, steps] over all generations. Right is: each was delivered
 * whole, in part, or told as lost; none was delivered whole twice; within one
 * generation none has two ends; a whole one has all layers. Returns how many are not
 * right and says which.
 */
uint64_t ledger_unaccounted(const struct ledger *ledger, uint64_t steps);

/* Whether the step was told of at most once in each way, and as it can be. */
bool ledger_step_fits(const struct ledger_step *step);

/*
 * The account of one generation: how many steps have two fates, or layers that do not
 * fit them; and how many of [1, @steps] were not told of in any way. Says which.
 */
uint64_t ledger_double(const struct ledger_generation *generation);
uint64_t ledger_untold(const struct ledger_generation *generation, uint64_t steps);

/*
 * The account of one engine: of steps [1, @steps] in generations [@first, @last], how
 * many were whole in two of them, or told of in none; and whether what was lost in
 * ranges of more makes up for these, in steps and in rows. Says which.
 */
uint64_t ledger_engine_wrong(const struct ledger *ledger, uint64_t first, uint64_t last,
			     uint64_t steps);

#endif
