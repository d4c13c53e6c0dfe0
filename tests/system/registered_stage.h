/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon, an engine, and readers of its channel in this process. */
#ifndef TESTS_SYSTEM_REGISTERED_STAGE_H
#define TESTS_SYSTEM_REGISTERED_STAGE_H

#include <r3ring/reader.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define REGISTERED "registered" /* the engine's name */
#define REGISTERED_ROWS 4u      /* of a step */

struct registered_stage {
	struct test_daemon daemon;
	struct engine engine;
	char channel[80];
};

extern struct registered_stage registered;

/* For .init and .fini. */
void registered_start(void);
void registered_stop(void);

/* Of a lossy reader of the channel; and opens one. */
struct r3ring_reader_options registered_options(void);
struct r3ring_reader *registered_open(void);

/* Reads all that is there; returns how many records. */
unsigned int registered_read_all(struct r3ring_reader *reader);

/* For reader_worker_wait(): how many readers the daemon knows of. */
bool registered_nobody(const void *unused);
bool registered_one(const void *unused);

#endif
