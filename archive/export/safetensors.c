/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: a length, a JSON header, tensors without gaps between them. Source:
 * https://github.com/huggingface/safetensors, section Format (a header of at most 100 MB,
 * which may end in spaces; each tensor's dtype, shape and offsets behind the header).
 *
 * Routes go to where they will lie in the output, behind room for the header; the smaller
 * tensors to files of their own, which are appended at the end, and those that go on row for
 * row alike as runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/json_text.h"
#include "archive/export/safetensors.h"
#include "archive/export/text.h"

#define HEADER_MAX 100000000u

/* A row that was rewritten: its mask lies behind this. */
struct patch {
	uint64_t row, weight_version;
};

const struct export_format export_safetensors = {
	.name = "safetensors",
	.summary = "all that is known, for torch, numpy and others",
	.tensor = "routes",
	.dtype = EXPORT_U16,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_MOE,
	.pad = EXPORT_FILL_MINUS_ONE,
	.container = &export_safetensors_container,
};

/* ---- opening ------------------------------------------------------------ */

static void safetensors_close(struct export_writer *writer)
{
	for (uint32_t i = 0; i < PARTS; i++)
		export_file_close(&writer->part[i]);
	for (uint32_t i = 0; i < RUNS; i++)
		export_runs_close(&writer->run[i]);
	export_file_close(&writer->moved);
	free(writer->all);
	free(writer);
}

static int safetensors_open(struct export_writer **to, const char *out, struct r3ring_error *err)
{
	struct export_writer *writer = calloc(1, sizeof(*writer));
	int rc = 0;

	if (!writer)
		return r3ring_error_set(err, -ENOMEM, "no memory");
	writer->moved = EXPORT_FILE_NONE;
	for (uint32_t i = 0; i < PARTS; i++)
		writer->part[i] = EXPORT_FILE_NONE;
	for (uint32_t i = 0; i < RUNS; i++)
		writer->run[i].file = EXPORT_FILE_NONE;
	for (uint32_t i = 0; !rc && i < PARTS; i++)
		rc = export_file_create(&writer->part[i], out, err);
	for (uint32_t i = 0; !rc && i < RUNS; i++)
		rc = export_runs_create(&writer->run[i], out, err);
	if (rc) {
		safetensors_close(writer);
		return rc;
	}
	export_file_behind(&writer->part[ROUTES]);
	*to = writer;
	return 0;
}

static int put_number(struct export_file *file, uint64_t number, struct r3ring_error *err)
{
	return export_file_append(file, &number, sizeof(number), err);
}

static int begin_runs(struct export_writer *writer)
{
	const size_t layers = writer->plan->layers;

	writer->all = malloc(layers);
	if (!writer->all || export_runs_begin(&writer->run[POSITIONS], sizeof(uint64_t), true) ||
	    export_runs_begin(&writer->run[VERSIONS], sizeof(uint64_t), false) ||
	    export_runs_begin(&writer->run[VALID], layers, false))
		return -ENOMEM;
	memset(writer->all, 1, layers);
	return 0;
}

static int safetensors_begin(struct export_writer *writer, const struct export_plan *plan,
			     struct r3ring_error *err)
{
	static const uint8_t room[ROOM];
	int rc = export_file_append(&writer->part[ROUTES], room, sizeof(room), err);

	writer->plan = plan;
	if (!rc && begin_runs(writer))
		return r3ring_error_set(err, -ENOMEM, "no memory");
	if (!rc)
		rc = put_number(&writer->part[CU_SEQLENS], 0, err);
	for (uint32_t i = 0; !rc && i < plan->layers; i++)
		rc = put_number(&writer->part[LAYER_IDS], (uint64_t)plan->layer[i].layer_id, err);
	return rc;
}

/* ---- requests and rows -------------------------------------------------- */

static int put_id(struct export_writer *writer, const char *id, struct r3ring_error *err)
{
	struct export_text text;

	export_text_open(&text);
	if (text.stream && writer->requests)
		fputc(',', text.stream);
	if (text.stream)
		export_json_nested(text.stream, id);
	return export_text_append(&text, &writer->part[IDS], err);
}

static int safetensors_request(struct export_writer *writer, const struct export_request *request,
			       struct r3ring_error *err)
{
	const uint32_t prompt = request->info->prompt_tokens;
	int rc = put_id(writer, request->id, err);

	/* -1: unknown */
	return rc ? rc
		  : put_number(&writer->part[PROMPTS],
			       prompt == R3RING_UNKNOWN_U32 ? UINT64_MAX : prompt, err);
}

static int put_valid(struct export_writer *writer, const struct export_chunk *chunk,
		     struct r3ring_error *err)
{
	const size_t layers = writer->plan->layers;
	int rc = 0;

	if (chunk->whole)
		return export_runs_put(&writer->run[VALID], writer->all, chunk->rows, err);
	for (uint32_t i = 0; !rc && i < chunk->rows; i++)
		rc = export_runs_put(&writer->run[VALID], chunk->valid + i * layers, 1, err);
	return rc;
}

static int put_versions(struct export_writer *writer, const struct export_chunk *chunk,
			struct r3ring_error *err)
{
	const uint64_t *version = chunk->weight_version;
	int rc = 0;

	for (uint32_t first = 0, end; !rc && first < chunk->rows; first = end) {
		for (end = first + 1; end < chunk->rows && version[end] == version[first];)
			end++;
		rc = export_runs_put(&writer->run[VERSIONS], &version[first], end - first, err);
	}
	return rc;
}

static void *safetensors_room(struct export_writer *writer, size_t bytes)
{
	return export_file_room(&writer->part[ROUTES], bytes);
}

static int put_routes(struct export_writer *writer, const struct export_chunk *chunk,
		      struct r3ring_error *err)
{
	const size_t bytes = chunk->rows * writer->plan->row_bytes;

	if (!chunk->room)
		return export_file_append(&writer->part[ROUTES], chunk->routes, bytes, err);
	export_file_took(&writer->part[ROUTES], bytes);
	return 0;
}

static int safetensors_rows(struct export_writer *writer, const struct export_chunk *chunk,
			    struct r3ring_error *err)
{
	const uint64_t position = chunk->position;
	int rc = put_routes(writer, chunk, err);

	if (!rc)
		rc = put_valid(writer, chunk, err);
	if (!rc)
		rc = put_versions(writer, chunk, err);
	writer->rows += chunk->rows;
	return rc ? rc : export_runs_put(&writer->run[POSITIONS], &position, chunk->rows, err);
}

static int safetensors_request_end(struct export_writer *writer, struct r3ring_error *err)
{
	writer->requests++;
	return put_number(&writer->part[CU_SEQLENS], writer->rows, err);
}

/* The routes are there already; the runs are not, until the end. */
static int safetensors_patch(struct export_writer *writer, uint64_t number,
			     const struct export_chunk *chunk, struct r3ring_error *err)
{
	const struct export_plan *plan = writer->plan;
	const struct patch patch = {number, chunk->weight_version[0]};
	int rc = export_file_write(&writer->part[ROUTES], ROOM + number * plan->row_bytes,
				   chunk->routes, plan->row_bytes, err);

	if (!rc)
		rc = export_file_append(&writer->part[PATCHES], &patch, sizeof(patch), err);
	return rc ? rc
		  : export_file_append(&writer->part[PATCHES], chunk->valid, plan->layers, err);
}

/* ---- the end ------------------------------------------------------------ */

/* Length, header and spaces, up to where the routes begin. */
static int put_header(struct export_writer *writer, struct export_file *file,
		      const struct safetensors_header *header, uint64_t begin,
		      struct r3ring_error *err)
{
	const uint64_t length = begin - sizeof(length);
	int rc = export_file_append(file, &length, sizeof(length), err);

	if (!rc)
		rc = export_file_append(file, header->head, header->head_bytes, err);
	if (!rc)
		rc = export_file_copy(file, &writer->part[IDS], 0, err);
	if (!rc)
		rc = export_file_append(file, header->tail, header->tail_bytes, err);
	while (!rc && file->size < begin)
		rc = export_file_append(file, " ", 1, err);
	return rc;
}

/* The room does: the header is made apart and copied into it. */
static int fill_room(struct export_writer *writer, const struct safetensors_header *header,
		     struct r3ring_error *err)
{
	struct export_file *routes = &writer->part[ROUTES];
	const uint64_t size = routes->size;
	int rc = export_file_seek(routes, 0, err);

	if (!rc)
		rc = put_header(writer, routes, header, ROOM, err);
	return rc ? rc : export_file_seek(routes, size, err);
}

/* Numbers of 8 bytes follow the routes, and are to be aligned in the file. */
static uint64_t begin_of_routes(const struct export_writer *writer,
				const struct safetensors_header *header)
{
	const uint64_t least =
		sizeof(uint64_t) + header->head_bytes + writer->part[IDS].size + header->tail_bytes;
	const uint64_t shift = (8 - safetensors_routes_bytes(writer) % 8) % 8;

	if (least <= ROOM && !shift)
		return ROOM;
	return (least + 7) / 8 * 8 + shift;
}

static int move_routes(struct export_writer *writer, const struct safetensors_header *header,
		       uint64_t begin, struct r3ring_error *err)
{
	int rc = export_file_create(&writer->moved, writer->part[ROUTES].out, err);

	if (!rc)
		rc = put_header(writer, &writer->moved, header, begin, err);
	return rc ? rc : export_file_copy(&writer->moved, &writer->part[ROUTES], ROOM, err);
}

static int expand(struct export_writer *writer, enum run run, struct export_file *output,
		  struct r3ring_error *err)
{
	writer->begin[run] = output->size;
	return export_runs_expand(&writer->run[run], output, err);
}

static int put_patches(struct export_writer *writer, struct export_file *output,
		       struct r3ring_error *err)
{
	struct export_file *patches = &writer->part[PATCHES];
	const uint32_t layers = writer->plan->layers;
	struct patch patch = {0};
	int rc = 0;

	for (uint64_t at = 0; !rc && at < patches->size; at += sizeof(patch) + layers) {
		rc = export_file_read(patches, at, &patch, sizeof(patch), err);
		if (!rc)
			rc = export_file_read(patches, at + sizeof(patch), writer->all, layers,
					      err);
		if (!rc)
			rc = export_file_write(output, writer->begin[VALID] + patch.row * layers,
					       writer->all, layers, err);
		if (!rc)
			rc = export_file_write(
				output, writer->begin[VERSIONS] + patch.row * sizeof(uint64_t),
				&patch.weight_version, sizeof(patch.weight_version), err);
	}
	return rc;
}

/* In the order of put_tensors(). */
static int put_small_tensors(struct export_writer *writer, struct export_file *output,
			     struct r3ring_error *err)
{
	int rc = expand(writer, POSITIONS, output, err);

	if (!rc)
		rc = expand(writer, VERSIONS, output, err);
	for (enum part part = CU_SEQLENS; !rc && part <= LAYER_IDS; part++)
		rc = export_file_copy(output, &writer->part[part], 0, err);
	if (!rc)
		rc = expand(writer, VALID, output, err);
	return rc ? rc : put_patches(writer, output, err);
}

static int publish(struct export_writer *writer, const struct safetensors_header *header,
		   uint64_t *bytes, struct r3ring_error *err)
{
	const uint64_t begin = begin_of_routes(writer, header);
	struct export_file *output = begin == ROOM ? &writer->part[ROUTES] : &writer->moved;
	int rc;

	if (begin > HEADER_MAX)
		return r3ring_error_set(
			err, -EFBIG,
			"a header of %" PRIu64 " bytes for %" PRIu64
			" requests: readers of safetensors take 100 MB; export fewer "
			"at a time, with --since and --until",
			begin, writer->requests);
	rc = begin == ROOM ? fill_room(writer, header, err)
			   : move_routes(writer, header, begin, err);
	if (!rc)
		rc = put_small_tensors(writer, output, err);
	*bytes = output->size;
	return rc ? rc : export_file_publish(output, err);
}

static int safetensors_finish(struct export_writer *writer, uint64_t *bytes,
			      struct r3ring_error *err)
{
	struct safetensors_header header;
	int rc = safetensors_header_make(&header, writer, err);

	if (!rc)
		rc = publish(writer, &header, bytes, err);
	safetensors_header_free(&header);
	return rc;
}

const struct export_container export_safetensors_container = {
	.open = safetensors_open,
	.begin = safetensors_begin,
	.request = safetensors_request,
	.room = safetensors_room,
	.rows = safetensors_rows,
	.request_end = safetensors_request_end,
	.patch = safetensors_patch,
	.finish = safetensors_finish,
	.close = safetensors_close,
};
