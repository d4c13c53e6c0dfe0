/* SPDX-License-Identifier: Apache-2.0 */
/* Within the data plane: one step at work, and its copies into the ring. */
#ifndef DAEMON_DRAIN_COPY_H
#define DAEMON_DRAIN_COPY_H

#include "capture_daemon/drain.h"

/* What is known of a layer of the step at work. */
enum step_layer_state {
	STEP_LAYER_PENDING = 0,
	STEP_LAYER_COPIED = 1,      /* its records are published */
	STEP_LAYER_COPY_FAILED = 2, /* published with all ids missing */
};

/* A STEP entry, checked. */
struct step_work {
	struct r3ring_step_record head;
	const uint8_t *extent;
	const uint8_t *layers; /* in the extent: one behind another, */
	uint64_t layer_bytes;  /* each of so many bytes */
	uint32_t parts;        /* and records */
	struct extent_slot *slot;
	uint32_t rows;                 /* of this rank */
	uint32_t valid;                /* of them, tokens */
	const struct drain_said *said; /* what another daemon told of it; NULL: nothing */
	bool dropped;                  /* nothing of it is published */
};

/* What a bell says, read once. */
struct bell_counts {
	uint32_t rows;
	uint32_t missing;
	uint32_t out_of_range;
};

/* Why a step is worked on no longer. */
enum step_outcome {
	STEP_WAITING,
	STEP_ENDED,     /* its end bell rang */
	STEP_CUT_SHORT, /* the producer is gone */
	STEP_ABANDONED, /* the daemon ends */
};

/* Publishes the records of every layer whose bell rang with all of its rows.
 * Returns how many layers. */
uint32_t step_copy_ready(struct drain *drain, const struct step_work *work);

/* Publishes the step's layers as they become ready, nothing of one that is dropped.
 * Returns why it is over; never STEP_WAITING. */
enum step_outcome step_wait(struct drain *drain, const struct step_work *work);

/* Publishes ROWS of the step, where its positions or token ids were captured. */
void step_copy_rows(struct drain *drain, const struct step_work *work);

/* Whether the layer's bell rang for this step, and what it says. */
bool step_bell(const struct drain *drain, const struct step_work *work, uint32_t layer,
	       struct bell_counts *counts);

#endif
