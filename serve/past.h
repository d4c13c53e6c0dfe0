/* SPDX-License-Identifier: Apache-2.0 */
/* The last minutes of the engines that are served: a thread looks at each once a second. */
#ifndef SERVE_PAST_H
#define SERVE_PAST_H

#include "monitor/history.h"
#include "serve/served.h"

#define PAST_INTERVAL_MS 1000u

struct past;

/*
 * @served: [count], outlive it.
 *
 * Each has as much memory as every other: 32 MiB at most, 256 MiB together. Returns 0 or
 * -ENOMEM, with a message. Pairs with past_stop(); NULL is fine there.
 */
int past_start(struct past **past, struct served *const *served, uint32_t count,
	       struct r3ring_error *err);
void past_stop(struct past *past);

/* Of one that is served. Any thread. */
struct history *past_of(const struct past *past, const struct served *served);

#endif
