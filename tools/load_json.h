/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of load as JSON: what GET /v1/load answers and r3ring top --jsonl prints. */
#ifndef TOOLS_LOAD_JSON_H
#define TOOLS_LOAD_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <r3ring/load.h>

/* @counts: with the counts of each expert. A new reference, or NULL without memory. */
json_t *load_json(const struct r3ring_load_info *info, bool counts);

/* Cells that were lost, by cause, where any were. The same. */
json_t *load_json_losses(const struct r3ring_load_accounts *accounts);

/* Cells that are no load, by reason, where any were. The same. */
json_t *load_json_left_out(const struct r3ring_load_accounts *accounts);

/* Name of such a reason, enum r3ring_load_left_out. */
const char *load_left_out_name(uint32_t reason);

#endif
