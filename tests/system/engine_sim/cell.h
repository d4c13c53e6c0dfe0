/* SPDX-License-Identifier: Apache-2.0 */
/* One cell that came out, and what readers were given of it (known.c). */
#ifndef ENGINE_SIM_CELL_H
#define ENGINE_SIM_CELL_H

#include "tests/system/engine_sim/passes.h"

struct cell {
	struct sim *sim;
	const struct sim_given *given;
	const struct sim_request *request;
	uint32_t position, layer;
	const uint16_t *ids;
	uint8_t valid, cause;
	bool certain; /* readers can know which pass counts, */
	bool known;   /* and have that one */
	bool contradicted;
	bool either; /* a cache may have found one of several passes of which one was lost */
};

bool cell_ids_are(const struct cell *cell, const struct sim_row *row);
/* Whether readers were told that its engine ended the attempt before the token, and another
 * instance went on: by its own end, or by what the other sampled from there on. What it ran
 * past its end is nobody's. Of what was evicted it may not have been told yet. */
bool cell_is_cut(const struct cell *cell, const struct sim_life *life);
/* Whether the life's engine ran the token past its end, and no reader can know that: its end
 * was lost, and how much the other instance kept. Who is given such a row is told that not all
 * ends were heard. */
bool cell_is_past_unheard_end(const struct cell *cell, const struct sim_life *life);
/*
 * Whether a reader has a pass that must be taken for an earlier one than the pass that counts:
 * of the same attempt by another engine, where it is no first one, but what came before it was
 * lost; or one that lies past its engine's end, unheard of. Nobody can tell the two apart then.
 */
bool cell_seems_earlier(const struct cell *cell, const struct truth *truth);
void cell_find_known(struct cell *cell, const struct truth *truth);
/* In whatever attempt that may stand in. */
bool cell_is_contradicted(const struct cell *cell);
/* What was given when it was evicted later passes may hide from the account: it was right to
 * call it a conflict where both of the passes were told. */
bool cell_passes_contradict(const struct cell *cell, const struct truth *truth);
/* Whether any reader has these ids, of whatever attempt. The account leaves out spans that came
 * too late for their step, and those that a map lost and a later one has where nothing told
 * that it would come; it goes on with a request that was given before its end and is begun
 * again. There they must have been given to it at all. */
bool cell_is_told(const struct cell *cell);

#endif
