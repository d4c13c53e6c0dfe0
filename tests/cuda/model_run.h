/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `r3ring produce --device cuda`, r3ringd and a reader, three processes of a machine: a
 * model's routes over a real text, each id compared with a reference that shares nothing
 * with the producer (tests/support/slow_moe.h).
 */
#ifndef TESTS_CUDA_MODEL_RUN_H
#define TESTS_CUDA_MODEL_RUN_H

#include <stdbool.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"

struct model_run {
	struct test_daemon daemon; /* `prepare` is the caller's */
	struct command produce;
	bool (*prepare)(void *ctx); /* the engine's, as the daemon's */
	void *prepare_ctx;
	char instance[32], channel[40];
};

/* Makes the machine, unless that is done, and starts the daemon. */
void model_run_start(struct model_run *run);

/* Starts the engine with two more words of its command line, or one; the test may do as it
 * likes until model_run_check(). */
void model_run_serve(struct model_run *run, const char *model, const char *const options[2]);

/* Reads to its end what the engine does; every id came and is right. Ends the daemon. */
void model_run_check(struct model_run *run, const char *model);

/* Ends what still runs; fails when something was found on the machine. */
void model_run_finish(struct model_run *run);

#endif
