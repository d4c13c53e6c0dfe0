/* SPDX-License-Identifier: Apache-2.0 */
/* What the causes of losses mean, and what to do about each, as docs/OPERATIONS.md tells. */
#ifndef MONITOR_CAUSES_H
#define MONITOR_CAUSES_H

#include <stdint.h>

/* What happened. Never NULL; any thread. */
const char *cause_meaning(uint32_t cause);

/* What to do about it. Never NULL; any thread. */
const char *cause_remedy(uint32_t cause);

#endif
