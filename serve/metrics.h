/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told to Prometheus: of the daemon's channels, and of the engines that are
 * followed. docs/OPERATIONS.md has the table.
 *
 * Labels are bounded: at most TOTALS_CHANNELS_MAX channels, causes, layers of the engines
 * that were named; never experts, processes or requests.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdio.h>

#include <r3ring/error.h>

#include "monitor/daemon_watch.h"
#include "serve/served.h"

struct metrics;

/*
 * Begins to add up what the daemon's pictures say.
 *
 * @watch, @served: until metrics_stop(), before which the watch must have stopped.
 *
 * Returns 0 or -ENOMEM. Pairs with metrics_stop(); NULL is fine.
 */
int metrics_start(struct metrics **metrics, struct daemon_watch *watch,
		  struct served *const *served, uint32_t count, struct r3ring_error *err);
void metrics_stop(struct metrics *metrics);

/* All of them. Returns 0 or -ENOMEM. Any thread. */
int metrics_write(struct metrics *metrics, FILE *out);

/* ---- parts --------------------------------------------------------------------- */

struct daemon_totals;

/* @now may be NULL: no picture yet. */
void metrics_of_daemon(FILE *out, const struct daemon_picture *now,
		       const struct daemon_totals *totals);
int metrics_of_engines(FILE *out, struct served *const *served, uint32_t count);
/* Nothing of engines whose routes are not kept. */
void metrics_of_routes(FILE *out, struct served *const *served, uint32_t count);

/* The @quantile-th of [count] values that ascend: the smallest that so large a share of them
 * is not above. */
double metrics_quantile(const double *ascending, uint32_t count, double quantile);

#endif
