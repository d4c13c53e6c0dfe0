/* SPDX-License-Identifier: Apache-2.0 */
/* An engine at rest: all of its steps are told, and all of its losses. */
#ifndef TESTS_SUPPORT_SETTLE_H
#define TESTS_SUPPORT_SETTLE_H

#include <stdint.h>

#include "tests/support/engine.h"

/* Steps until one was told, and so all that were lost before it; then there is room
 * for one more. Returns the number of that, or -1 after some 25 seconds. */
int64_t engine_settle(struct engine *engine, const char *dir, const char *channel, uint32_t rows);

#endif
