/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a channel itself lost, by who reads its records: LOST records tell it, and the totals
 * of keyframes prove it where LOST records fell into a gap of the reader's own.
 */
#ifndef CONSUMER_CHANNEL_LOSSES_H
#define CONSUMER_CHANNEL_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>

/* The account, of one channel or of several. */
struct lost_account {
	uint64_t steps[R3RING_CAUSE_COUNT], rows[R3RING_CAUSE_COUNT];
	/* Of these: by totals only, no LOST of them was read. */
	uint64_t unheard_steps[R3RING_CAUSE_COUNT], unheard_rows[R3RING_CAUSE_COUNT];
	uint64_t unproved;   /* gaps whose losses no two keyframes tell: more may be lost */
	uint64_t unfollowed; /* ends of generations behind which an engine may have run on, and
			      * no later generation tells what: more may be lost */
};

/* The end of a generation that its engine lived on behind. */
struct open_end {
	uint64_t generation, former; /* 0: there is none */
	bool counts;
	bool of_reader; /* nothing but its reader says so: more of the generation may follow */
};

/* A channel's. Zeroed it is a new one, of which no generation has begun. */
struct channel_losses {
	struct lost_account account;
	/* Of the generation: */
	bool based; /* @base is known: of the newest keyframe, or zeros at its beginning */
	uint64_t base_steps[R3RING_CAUSE_COUNT], base_rows[R3RING_CAUSE_COUNT];
	uint64_t told_steps[R3RING_CAUSE_COUNT], told_rows[R3RING_CAUSE_COUNT]; /* since then */
	uint64_t gaps;                                                          /* since then */
	uint64_t gaps_counted; /* of these, those that count */
	uint64_t generation;
	uint64_t former;        /* where its engine was last before; the same: it began anew */
	struct open_end end;    /* of the one before, and then its own */
	struct open_end passed; /* the newest that another engine came behind */
};

/*
 * Whoever reads only a part of time says of each call whether it counts. What keyframes prove
 * counts where a gap in front of them does.
 */

/* Generation @number begins. @whole: it is read from its beginning on; else what it lost before
 * its first keyframe is known by LOST records alone. */
void channel_losses_generation(struct channel_losses *losses, uint64_t number, bool whole);

/* Records are missing. */
void channel_losses_gap(struct channel_losses *losses, bool counts);

/* The reader came late, to a generation that had records: their losses are not of its time. */
void channel_losses_late(struct channel_losses *losses);

/* Who read it ended with nobody there to tell what the engine ran since. */
void channel_losses_unfollowed(struct channel_losses *losses, bool counts);

/* More of the generation follows. */
void channel_losses_more(struct channel_losses *losses);

/* Whether records of the type say anything of losses. */
bool channel_losses_takes(uint16_t type);

/* The next record; what keyframes say again is not to be given. */
void channel_losses_record(struct channel_losses *losses, const struct r3ring_record *record,
			   bool counts);

/* Adds an account to another. */
void lost_account_add(struct lost_account *to, const struct lost_account *from);

/* Steps of all causes, and those of them that are known by totals only. */
uint64_t lost_account_steps(const struct lost_account *account);
uint64_t lost_account_unheard(const struct lost_account *account);

/* Whether more may be lost than it says. */
bool lost_account_more(const struct lost_account *account);

#endif
