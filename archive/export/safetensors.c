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

#include "archive/export/file.h"
#include "archive/export/format.h"
#include "archive/export/json_text.h"
#include "archive/export/runs.h"
#include "archive/export/text.h"

#define ROOM 65536u /* for the header and its length; where the routes begin */
#define HEADER_MAX 100000000u

enum part { ROUTES, CU_SEQLENS, PROMPTS, LAYER_IDS, IDS, PATCHES, PARTS };
enum run { POSITIONS, VERSIONS, VALID, RUNS };

/* A row that was rewritten: its mask lies behind this. */
struct patch {
	uint64_t row, weight_version;
};

struct export_writer {
	const struct export_plan *plan;
	struct export_file part[PARTS];
	struct export_runs run[RUNS];
	uint64_t begin[RUNS];     /* where they are in the output */
	uint8_t *all;             /* [layers] the mask of a row that has all */
	struct export_file moved; /* the output, where the room did not do */
	uint64_t rows, requests;
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
	int rc = put_id(writer, request->id, err);

	return rc ? rc : put_number(&writer->part[PROMPTS], request->info->prompt_tokens, err);
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

/* ---- header ------------------------------------------------------------- */

static const char *dtype_name(enum export_dtype dtype)
{
	static const char *const names[EXPORT_DTYPES] = {
		[EXPORT_DTYPE_DEFAULT] = "", [EXPORT_U8] = "U8",   [EXPORT_I8] = "I8",
		[EXPORT_U16] = "U16",        [EXPORT_I16] = "I16", [EXPORT_I32] = "I32",
		[EXPORT_I64] = "I64",
	};

	return names[dtype];
}

static uint64_t routes_bytes(const struct export_writer *writer)
{
	return writer->part[ROUTES].size - ROOM;
}

static void put_kinds(FILE *out, const struct export_plan *plan)
{
	fputs(",\"layer_kinds\":\"[", out);
	for (uint32_t i = 0; i < plan->layers; i++) {
		fputs(i ? "," : "", out);
		export_json_nested(out, plan->layer[i].bound
						? r3ring_layer_kind_name(plan->layer[i].kind)
						: "dense");
	}
	fputs("]\"", out);
}

/* Cells that are filled, by cause: a JSON object as text. */
static void put_filled(FILE *out, const struct export_summary *summary)
{
	const char *separator = "";

	fprintf(out, ",\"filled\":\"%" PRIu64 "\",\"filled_by_cause\":\"{",
		export_summary_filled(summary));
	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++) {
		if (!summary->filled[cause])
			continue;
		fputs(separator, out);
		export_json_nested(out, r3ring_missing_cause_name(cause));
		fprintf(out, ":%" PRIu64, summary->filled[cause]);
		separator = ",";
	}
	fputs("}\"", out);
}

static void put_metadata(FILE *out, const struct export_writer *writer)
{
	const struct export_plan *plan = writer->plan;

	fputs("{\"__metadata__\":{\"format\":\"r3ring.routes\",\"version\":\"1\"", out);
	fprintf(out, ",\"writer\":\"r3ring %s\",\"for\":\"%s\"", R3RING_VERSION,
		plan->format->name);
	fputs(",\"model\":", out);
	export_json_string(out, plan->model);
	fprintf(out, ",\"id_space\":\"logical\",\"experts\":\"%u\",\"top_k\":\"%u\"", plan->experts,
		plan->top_k);
	fprintf(out, ",\"rows\":\"%s\",\"missing\":\"%s\",\"pad\":\"%s\",\"layers\":\"%s\"",
		export_rows_name(plan->rows), export_fill_name(plan->missing),
		export_fill_name(plan->pad), export_layers_name(plan->all));
	fprintf(out, ",\"policy\":\"%s\",\"requests\":\"%" PRIu64 "\"",
		plan->options->policy == R3RING_ROWS_LATEST ? "latest" : "first", writer->requests);
	put_filled(out, plan->summary);
	fprintf(out, ",\"gaps\":\"%" PRIu64 "\",\"repeated_ids\":\"%" PRIu64 "\"",
		plan->summary->losses.gaps, plan->summary->repeated_ids);
	fprintf(out, ",\"segments_rotated_out\":\"%" PRIu64 "\"",
		plan->summary->losses.rotated.segments);
	put_kinds(out, plan);
	fputs(",\"request_ids\":\"[", out);
}

/* The tensor that comes next: offsets go up by what it holds. @shape: behind the first number. */
static void put_tensor(FILE *out, const char *name, const char *dtype, const char *shape,
		       uint64_t rows, uint64_t bytes, uint64_t *offset)
{
	fprintf(out,
		",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 "%s],\"data_offsets\":[%" PRIu64
		",%" PRIu64 "]}",
		name, dtype, rows, shape, *offset, *offset + bytes);
	*offset += bytes;
}

static void put_numbers(FILE *out, const struct export_file *part, const char *name,
			uint64_t *offset)
{
	put_tensor(out, name, "I64", "", part->size / sizeof(uint64_t), part->size, offset);
}

static void put_run(FILE *out, const struct export_runs *run, const char *name, const char *dtype,
		    const char *shape, uint64_t *offset)
{
	put_tensor(out, name, dtype, shape, run->all, export_runs_bytes(run), offset);
}

static void put_tensors(FILE *out, const struct export_writer *writer)
{
	const struct export_plan *plan = writer->plan;
	const struct export_file *part = writer->part;
	char layers[16], cells[32];
	uint64_t offset = 0;

	snprintf(layers, sizeof(layers), ",%u", plan->layers);
	snprintf(cells, sizeof(cells), ",%u,%u", plan->layers, plan->top_k);
	fputs("]\"}", out);
	put_tensor(out, plan->format->tensor, dtype_name(plan->dtype), cells, writer->rows,
		   routes_bytes(writer), &offset);
	put_run(out, &writer->run[POSITIONS], "positions", "I64", "", &offset);
	put_run(out, &writer->run[VERSIONS], "weight_version", "U64", "", &offset);
	put_numbers(out, &part[CU_SEQLENS], "cu_seqlens", &offset);
	put_numbers(out, &part[PROMPTS], "prompt_tokens", &offset);
	put_numbers(out, &part[LAYER_IDS], "layer_ids", &offset);
	put_run(out, &writer->run[VALID], "valid", "BOOL", layers, &offset);
	fputc('}', out);
}

/* The header's two ends; the request ids, of which there may be many, stand between. */
struct header {
	char *head, *tail;
	size_t head_bytes, tail_bytes;
};

static int header_make(struct header *header, const struct export_writer *writer,
		       struct r3ring_error *err)
{
	FILE *head = open_memstream(&header->head, &header->head_bytes);
	FILE *tail = open_memstream(&header->tail, &header->tail_bytes);
	bool failed = !head || !tail;

	if (head) {
		put_metadata(head, writer);
		failed |= fclose(head) != 0;
	}
	if (tail) {
		put_tensors(tail, writer);
		failed |= fclose(tail) != 0;
	}
	return failed ? r3ring_error_set(err, -ENOMEM, "no memory") : 0;
}

/* ---- the end ------------------------------------------------------------ */

/* Length, header and spaces, up to where the routes begin. */
static int put_header(struct export_writer *writer, struct export_file *file,
		      const struct header *header, uint64_t begin, struct r3ring_error *err)
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
static int fill_room(struct export_writer *writer, const struct header *header,
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
static uint64_t begin_of_routes(const struct export_writer *writer, const struct header *header)
{
	const uint64_t least =
		sizeof(uint64_t) + header->head_bytes + writer->part[IDS].size + header->tail_bytes;
	const uint64_t shift = (8 - routes_bytes(writer) % 8) % 8;

	if (least <= ROOM && !shift)
		return ROOM;
	return (least + 7) / 8 * 8 + shift;
}

static int move_routes(struct export_writer *writer, const struct header *header, uint64_t begin,
		       struct r3ring_error *err)
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

static int publish(struct export_writer *writer, const struct header *header, uint64_t *bytes,
		   struct r3ring_error *err)
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
	struct header header = {0};
	int rc = header_make(&header, writer, err);

	if (!rc)
		rc = publish(writer, &header, bytes, err);
	free(header.head);
	free(header.tail);
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
