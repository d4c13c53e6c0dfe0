/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, as text and as JSON. */
#ifndef TESTS_BENCH_PEERS_REPORT_H
#define TESTS_BENCH_PEERS_REPORT_H

#include <stdbool.h>

#include "tests/bench/peers/rows.h"

void report_print(const struct peer_table *table);

/* Writes machine, floors and rows to @path. Returns 0 or a negative errno. */
int report_write(const struct peer_table *table, const char *path);

/* Whether a row failed, lost messages or got wrong ones. */
bool report_failed(const struct peer_table *table);

#endif
