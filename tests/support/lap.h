/* SPDX-License-Identifier: Apache-2.0 */
/* A ring that is written until its beginning is gone, however slow the daemon may be. */
#ifndef TESTS_SUPPORT_LAP_H
#define TESTS_SUPPORT_LAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/engine.h"

/* Steps until all that the channel's ring has by now is overwritten, and @records that came
 * behind it. False after some sixty seconds. */
bool engine_lap(struct engine *engine, const char *dir, const char *channel, uint32_t rows,
		uint64_t records);

#endif
