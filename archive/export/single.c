/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "archive/export/single.h"

static int open_writer(struct export_writer **to, const char *out,
		       int (*make)(struct export_file *, const char *, struct r3ring_error *),
		       struct r3ring_error *err)
{
	struct export_writer *writer = calloc(1, sizeof(*writer));
	int rc;

	if (!writer)
		return r3ring_error_set(err, -ENOMEM, "no memory");
	rc = make(&writer->file, out, err);
	if (rc) {
		free(writer);
		return rc;
	}
	export_file_behind(&writer->file);
	*to = writer;
	return 0;
}

int export_single_open(struct export_writer **writer, const char *out, struct r3ring_error *err)
{
	return open_writer(writer, out, export_file_create, err);
}

int export_single_stream(struct export_writer **writer, const char *out, struct r3ring_error *err)
{
	return open_writer(writer, out, export_file_stream, err);
}

void export_single_close(struct export_writer *writer)
{
	export_file_close(&writer->file);
	free(writer);
}

int export_single_begin(struct export_writer *writer, const struct export_plan *plan,
			struct r3ring_error *err)
{
	(void)err;
	writer->plan = plan;
	return 0;
}

int export_single_request_end(struct export_writer *writer, struct r3ring_error *err)
{
	(void)writer;
	(void)err;
	return 0;
}

int export_single_rows(struct export_writer *writer, const struct export_chunk *chunk,
		       struct r3ring_error *err)
{
	const size_t bytes = chunk->rows * writer->plan->row_bytes;

	if (!chunk->room)
		return export_file_append(&writer->file, chunk->routes, bytes, err);
	export_file_took(&writer->file, bytes);
	return 0;
}

void *export_single_room(struct export_writer *writer, size_t bytes)
{
	return export_file_room(&writer->file, bytes);
}

int export_single_finish(struct export_writer *writer, uint64_t *bytes, struct r3ring_error *err)
{
	*bytes = writer->file.size;
	return export_file_publish(&writer->file, err);
}
