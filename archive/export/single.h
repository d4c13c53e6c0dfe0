/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are one file from front to back: what their containers have in common. */
#ifndef ARCHIVE_EXPORT_SINGLE_H
#define ARCHIVE_EXPORT_SINGLE_H

#include "archive/export/file.h"
#include "archive/export/format.h"
#include "archive/export/text.h"

struct export_writer {
	const struct export_plan *plan;
	struct export_file file;
	uint64_t rows;   /* of the request at work */
	uint8_t rest[3]; /* base64: bytes that wait for their group to be full */
	uint32_t rests;
};

int export_single_open(struct export_writer **writer, const char *out, struct r3ring_error *err);
/* For what is only ever appended to. */
int export_single_stream(struct export_writer **writer, const char *out, struct r3ring_error *err);
void export_single_close(struct export_writer *writer);
int export_single_begin(struct export_writer *writer, const struct export_plan *plan,
			struct r3ring_error *err);
int export_single_request_end(struct export_writer *writer, struct r3ring_error *err);
int export_single_finish(struct export_writer *writer, uint64_t *bytes, struct r3ring_error *err);

/* For routes that are aligned in the file. */
void *export_single_room(struct export_writer *writer, size_t bytes);

/* The routes' bytes as they are. */
int export_single_rows(struct export_writer *writer, const struct export_chunk *chunk,
		       struct r3ring_error *err);

#endif
