/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of requests that were begun and have not ended. */
#ifndef PRODUCER_LIVE_HANDLES_H
#define PRODUCER_LIVE_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct live_handles; /* NULL: none */

/* Returns 0 or -ENOMEM. @handle: not among them. */
int live_handles_add(struct live_handles **handles, uint64_t handle);

bool live_handles_have(const struct live_handles *handles, uint64_t handle);

/* One that is not among them: nothing. */
void live_handles_remove(struct live_handles **handles, uint64_t handle);

void live_handles_clear(struct live_handles **handles);

#endif
