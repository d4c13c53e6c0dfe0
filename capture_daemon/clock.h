/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's clock, and the units of its patience. */
#ifndef DAEMON_CLOCK_H
#define DAEMON_CLOCK_H

#include "channel/clock.h"

#define NS_PER_SECOND 1000000000ull
#define NS_PER_MS 1000000ull

#endif
