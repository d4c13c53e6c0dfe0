/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon, a producer of the real library and a reader of its channel, for tests
 * that run single steps. Whatever cannot be set up ends the process with a reason.
 */
#ifndef TESTS_SUPPORT_STEP_RIG_H
#define TESTS_SUPPORT_STEP_RIG_H

#include <stdint.h>

#include <r3ring/producer.h>

#include "tests/support/daemon.h"
#include "tests/support/step_reader.h"
#include "tests/support/step_source.h"

struct step_rig {
	struct test_daemon daemon;
	char instance[48], channel[64];
	struct r3ring_layer_entry layers[STEP_READER_LAYERS];
	struct r3ring_producer_options options; /* may be changed before the channel opens */
	struct r3ring_producer *producer;
	struct step_reader reader;
	struct step_source source; /* what step_rig_capture() hands over */
};

/* Starts a daemon and fills in the options: layers are moe layers 3, 4, ... of the
 * model. @args: the daemon's, or NULL. */
void step_rig_start(struct step_rig *rig, const char *const *args, uint32_t layers,
		    uint32_t experts, uint32_t top_k, uint32_t max_rows);

/* Opens the channel and a reader of it. */
void step_rig_open(struct step_rig *rig);

/* Opens one more channel with rank and draft as options say; the reader too when
 * it is not NULL. */
struct r3ring_producer *step_rig_open_channel(struct step_rig *rig,
					      const struct r3ring_producer_options *options,
					      struct step_reader *reader);

/* Ends everything; what was never started does not matter. */
void step_rig_close(struct step_rig *rig);

/* Begins a step of @rows valid rows that all are this rank's; no spans. Returns
 * what r3ring_step_begin() returns. */
int64_t step_rig_begin(struct step_rig *rig, uint32_t rows);

/* Captures all rows of @source at a layer (place in the table) by the rule. */
void step_rig_capture(struct step_rig *rig, int64_t step, uint32_t layer);

void step_rig_end(struct step_rig *rig);

/* A whole step of @rows rows, read to its end. */
void step_rig_step(struct step_rig *rig, uint32_t rows);

#endif
