/* SPDX-License-Identifier: Apache-2.0 */
/* Load as monitors are sent it: counts as bytes in base64 (docs/API.md, "Counts"). */
#ifndef TOOLS_SERVE_FRAME_H
#define TOOLS_SERVE_FRAME_H

#include <jansson.h>

#include <r3ring/load.h>

#include "monitor/gpus.h"
#include "monitor/history.h"

/* Both: a new object, or NULL without memory. */
json_t *frame_of_load(const struct r3ring_load_info *info);
json_t *frame_of_past(const struct history_picture *picture);

/* null for NULL, too. */
json_t *frame_of_gpus(const struct gpus *gpus);

/*
 * All frames of the past behind @after, without their counts; @after becomes the newest one's.
 * A new object, or NULL without memory.
 */
json_t *frame_list(struct history *history, uint64_t *after);

/*
 * How counts are told: in one byte each where all are whole and below 256, else in two,
 * little-endian, of the unit that is told.
 *
 * @bytes: receives 2 * @count bytes at most.
 * Returns how many it is, and the code's name and unit.
 */
size_t frame_code(const double *counts, size_t count, uint8_t *bytes, const char **code,
		  double *unit);

#endif
