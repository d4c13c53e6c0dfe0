/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline stages by what channels' schemas say of themselves: which of them there are, and which
 * of the model's layers each has. A layer of a stage that is not there looks like one that does
 * not route.
 */
#ifndef ARCHIVE_EXPORT_STAGES_H
#define ARCHIVE_EXPORT_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>

struct export_stages {
	struct export_stage *stage; /* [stages] by size, then index; of all ranks of the model */
	uint32_t stages;
};

struct export_stage {
	uint16_t index, size;
	int32_t first, last; /* its layers; last -1: it has none but of multi-token prediction */
};

void export_stages_free(struct export_stages *stages);

/* What a channel's schema tells. Returns 0 or -ENOMEM. */
int export_stages_note(struct export_stages *stages, const struct r3ring_record *schema);

/* Whether all layers that route are known: every stage of some pipeline of the model is there.
 * True where nothing is known. */
bool export_stages_whole(const struct export_stages *stages);

/* Whether the stages that are there have all layers of [first, end) that route. */
bool export_stages_cover(const struct export_stages *stages, int32_t first, int32_t end);

/* The last one of some pipeline is there, which has the layers of multi-token prediction. */
bool export_stages_end(const struct export_stages *stages);

/* "0 and 2 to 5 of 8", those that are missing of the first pipeline that is not whole. */
void export_stages_missing(const struct export_stages *stages, char *text, size_t bytes);

#endif
