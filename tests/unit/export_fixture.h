/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of a small model's requests, fed as records: what a position's routes must be
 * is said by the step and row that they come from, as in tests of the assembler.
 */
#ifndef TESTS_EXPORT_FIXTURE_H
#define TESTS_EXPORT_FIXTURE_H

#include <limits.h>

#include "archive/export/export.h"
#include "tests/support/safetensors.h"
#include "tests/unit/record_feed.h"

struct trial {
	char dir[64], out[96];
	struct export_options options; /* to be changed before trial_begin() */
	struct exporter *exporter;
	struct feed feed; /* of channel test/0 */
	struct export_summary summary;
	struct r3ring_error err;
	struct safetensors file; /* once trial_read() has it */
	uint64_t now_ns;         /* when requests end */
};

extern struct trial trial;

/* A directory of its own; removed with all that is in it. For .init and .fini. */
void trial_open(void);
void trial_close(void);

/* Opens the exporter in @format, with the trial's options, and tells of the schema. */
void trial_begin(const char *format);

/* Request @id with handle @handle: a prompt of 3 in step @step, position 3 in step + 1, 5
 * tokens; of position 4 nothing is known. */
void trial_request(uint64_t handle, const char *id, uint64_t step);
/* The same, but step @step + 1 was lost. */
void trial_gapped_request(uint64_t handle, const char *id, uint64_t step);

struct r3ring_span trial_span(uint64_t request, uint32_t position, uint32_t rows);

/* Gives out what is ready; returns as export_take(). */
int trial_take(void);
/* Takes and finishes: must succeed; or must return @code and leave nothing in the directory. */
void trial_finish(void);
void trial_refused(int code, const char *why);
/* The same for opening. */
void trial_not_opened(const char *format, int code, const char *why);

/* Reads the output into trial.file. */
void trial_read(void);

/* What routes hold at a place: [row][layer][k], and whether it is what @step and @row ran. */
int64_t trial_id(const char *tensor, uint64_t row, uint32_t layer, uint32_t k);
bool trial_is(const char *tensor, uint64_t row, uint32_t layer, uint64_t step, uint32_t from_row,
	      uint32_t from_layer);

/* How many files the directory has. */
unsigned int trial_files(void);

#endif
