/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy's file of one array: a magic, a header that says type and shape, the numbers.
 * Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version
 * 1.0. It has no place for a mask: whoever fills what is missing keeps no trace of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/export/single.h"

#define HEAD_BYTES 128u /* a multiple of 64, so that the numbers are aligned */

const struct export_format export_npy = {
	.name = "npy",
	.summary = "the routes of one request, for numpy.load()",
	.tensor = "routes",
	.dtype = EXPORT_U16,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_MOE,
	.pad = EXPORT_FILL_MINUS_ONE,
	.missing =
		{
			[EXPORT_FILL_ZEROS] = {.why = "npy has no mask: they read as expert 0; "
						      "--format safetensors has "
						      "one"},
			[EXPORT_FILL_ARANGE] =
				{.why = "npy has no mask: they read as experts 0, 1, ...; --format "
					"safetensors has one"},
		},
	.one_request = true,
	.container = &export_npy_container,
};

static int npy_begin(struct export_writer *writer, const struct export_plan *plan,
		     struct r3ring_error *err)
{
	static const uint8_t room[HEAD_BYTES];

	export_single_begin(writer, plan, err);
	return export_file_append(&writer->file, room, sizeof(room), err);
}

static int npy_request(struct export_writer *writer, const struct export_request *request,
		       struct r3ring_error *err)
{
	(void)err;
	writer->rows = request->rows;
	return 0;
}

static int npy_patch(struct export_writer *writer, uint64_t number,
		     const struct export_chunk *chunk, struct r3ring_error *err)
{
	const size_t bytes = writer->plan->row_bytes;

	return export_file_write(&writer->file, HEAD_BYTES + number * bytes, chunk->routes, bytes,
				 err);
}

static const char *descr(enum export_dtype dtype)
{
	static const char *const names[EXPORT_DTYPES] = {
		[EXPORT_DTYPE_DEFAULT] = "", [EXPORT_U8] = "|u1",  [EXPORT_I8] = "|i1",
		[EXPORT_U16] = "<u2",        [EXPORT_I16] = "<i2", [EXPORT_I32] = "<i4",
		[EXPORT_I64] = "<i8",
	};

	return names[dtype];
}

static int npy_finish(struct export_writer *writer, uint64_t *bytes, struct r3ring_error *err)
{
	const struct export_plan *plan = writer->plan;
	char head[HEAD_BYTES + 1];
	const size_t start = 10; /* magic, version, length of what follows */
	int length;
	int rc;

	memset(head, ' ', sizeof(head));
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	head[8] = (char)(HEAD_BYTES - start);
	head[9] = 0;
	length = snprintf(head + start, sizeof(head) - start,
			  "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64
			  ", %u, %u), }",
			  descr(plan->dtype), writer->rows, plan->layers, plan->top_k);
	head[start + (size_t)length] = ' ';
	head[HEAD_BYTES - 1] = '\n';
	rc = export_file_write(&writer->file, 0, head, HEAD_BYTES, err);
	return rc ? rc : export_single_finish(writer, bytes, err);
}

const struct export_container export_npy_container = {
	.open = export_single_open,
	.begin = npy_begin,
	.request = npy_request,
	.room = export_single_room,
	.rows = export_single_rows,
	.request_end = export_single_request_end,
	.patch = npy_patch,
	.finish = npy_finish,
	.close = export_single_close,
};
