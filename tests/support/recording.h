/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded routing in ../shared/data as tests expect to find it again: read
 * straight from its files, by nothing of what is under test.
 */
#ifndef TESTS_SUPPORT_RECORDING_H
#define TESTS_SUPPORT_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#define RECORDING_HEADER "../shared/data/gptoss20b/gptoss20b_many.json"
#define RECORDING_ABSENT "no ../shared/data/gptoss20b beside the project"

struct recording_request {
	char id[64];
	uint32_t first_row;
	uint32_t rows;
	uint32_t prompt_tokens; /* row 0 is the forward at this position */
};

struct recording {
	uint32_t rows, layers, top_k, experts;
	uint16_t *ids;    /* [rows][layers][top_k] */
	uint64_t *counts; /* [layers][experts], as the file beside it has them */
	struct recording_request *requests;
	uint32_t request_count;
};

/* Whether the files are there; a test without them is to be skipped. */
bool recording_is_there(void);

/* Reads them; ends the process when they are not as they should be. */
void recording_read(struct recording *recording);
void recording_free(struct recording *recording);

/* The request with that text id; NULL: none. */
const struct recording_request *recording_find(const struct recording *recording, const char *id);

/* Ids of one row (numbered over the file) and layer: [top_k]. */
const uint16_t *recording_ids(const struct recording *recording, uint32_t row, uint32_t layer);

#endif
