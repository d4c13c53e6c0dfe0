/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon, an engine of channel "lossless", and readers in processes of their own. */
#ifndef TESTS_SYSTEM_LOSSLESS_STAGE_H
#define TESTS_SYSTEM_LOSSLESS_STAGE_H

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"

#define BASE "lossless"
#define OTHER "other"
#define ROWS 8u
#define STALL_MS "300"

extern struct test_daemon daemon_a;
extern struct engine engine_a, engine_b; /* the second one is the test's to open, as OTHER */
extern struct reader_worker keen, lazy;
extern char channel_a[80], channel_b[80]; /* of the two engines */

void lossless_start(const char *const *args);
void lossless_finish(void);

/* Of the first engine's channel. */
struct reader_job lossless_job(enum r3ring_cursor_mode mode);
int64_t lossless_figure(const char *key);
bool lossless_has_waited(const void *ctx); /* for readers */

/* Steps as fast as they are computed; then until one comes through, whose number is returned. */
void lossless_flood(unsigned int steps);
int64_t lossless_settle(void);

/* A reader of all of so many steps, none of which was lost but by the engine. */
void lossless_expect_whole(const struct reader_page *page, uint64_t steps);

#endif
