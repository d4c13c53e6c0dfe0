/* SPDX-License-Identifier: Apache-2.0 */
/* What check.c and cell.c compare with: the passes over a position. */
#ifndef ENGINE_SIM_PASSES_H
#define ENGINE_SIM_PASSES_H

#include "tests/system/engine_sim/sim.h"

/* The attempt that counts at a position, and the passes of it: one for each engine that has
 * the attempt, of these @pass[0] is what came first. */
struct truth {
	int32_t attempt;
	const struct sim_row *pass[SIM_ATTEMPTS];
	uint32_t passes;
	bool external;
	const struct sim_request *request;
	uint32_t position;
};

struct truth sim_truth_of(const struct sim *sim, const struct sim_request *request,
			  uint32_t position);

/* Tokens of the attempt that no later one threw away. */
uint32_t sim_limit_of(const struct sim_request *request, uint32_t attempt);

/* Of two engines that ran the attempt under different weights, the older ones are first. */
bool sim_counts_more(const struct sim *sim, const struct sim_row *pass,
		     const struct sim_row *other);

/* A pass of it that is not the last over its tokens chose the next one. What an engine that
 * only prefills chose, the one that decodes chooses again. */
bool sim_sampled_behind(const struct sim_request *request, uint32_t attempt, uint32_t position);

/* Passes over the position, one after the other; NULL: no more. @attempt: of that one. */
struct passes {
	const struct truth *truth;
	int32_t attempt; /* -1: of all */
	uint32_t life;
	const struct sim_row *next; /* of the same life */
};

const struct sim_row *sim_passes_next(struct passes *passes);
/* Whose the last one was. */
const struct sim_life *sim_passes_life(const struct passes *passes);

/* whose.c: whose rows it has, of the requests of its id. */
void sim_find_whose(struct sim *sim, struct sim_given *given);

/* mixed.c: whether it is mixed of several by what the reference says of it. */
bool sim_may_be_mixed(const struct sim *sim, const struct sim_given *given);

/* Whether its channel told no more of it since another of its id began there. */
bool sim_was_left(const struct sim_request *request);

/* Whether what came out of the requests of the id was mixed: parts of it may be in there. */
bool sim_one_is_mixed(const struct sim *sim, const struct sim_request *request);
/* Whether an attempt of one of those of its id may be another's, for all that was told: what may be mixed. */
bool sim_is_unclear(const struct sim *sim, const struct sim_request *request);

/* Whether so much was lost of those of its id that what was heard of them may be of one request: no attempt of
 * two was heard of. */
bool sim_seem_one(const struct sim *sim, const struct sim_request *request);

/* lost.c */
/* What readers can know of how much was kept of an attempt. */
struct kept {
	uint32_t least;
	bool cut_off; /* more may have been, where records were lost */
};

struct kept sim_kept_of(const struct sim *sim, const struct sim_request *request, int32_t attempt);
/* Whether the attempt, or a later one, may have thrown the token away, which nobody heard: neither its end, nor a prompt
 * that counts what it kept. */
bool sim_may_be_thrown_away(const struct sim *sim, const struct sim_request *request,
			    int32_t attempt, uint32_t position);
/* Whether an attempt may have kept the token, and run it, in records that were lost. */
bool sim_may_have_run(const struct sim *sim, const struct sim_request *request, int32_t attempt,
		      uint32_t position);

void sim_check_cell(struct sim *sim, const struct sim_given *given, const struct truth *truth,
		    uint32_t position, uint32_t layer);

#endif
