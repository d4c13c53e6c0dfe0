/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a look at what is there: one JSON object a line and position. As large as JSON is;
 * nothing reads it but people and scripts of theirs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "archive/export/json_text.h"
#include "archive/export/single.h"

const struct export_format export_jsonl = {
	.name = "jsonl",
	.summary = "a JSON object a position, for a look",
	.tensor = "routes",
	.dtype = EXPORT_I32,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_MOE,
	.pad = EXPORT_FILL_MINUS_ONE,
	.container = &export_jsonl_container,
};

static int jsonl_request(struct export_writer *writer, const struct export_request *request,
			 struct r3ring_error *err)
{
	(void)writer;
	(void)request;
	(void)err;
	return 0;
}

static int64_t id_at(const struct export_plan *plan, const void *routes, size_t place)
{
	switch (plan->dtype) {
	case EXPORT_U8:
		return ((const uint8_t *)routes)[place];
	case EXPORT_I8:
		return ((const int8_t *)routes)[place];
	case EXPORT_U16:
		return ((const uint16_t *)routes)[place];
	case EXPORT_I16:
		return ((const int16_t *)routes)[place];
	case EXPORT_I32:
		return ((const int32_t *)routes)[place];
	default:
		return ((const int64_t *)routes)[place];
	}
}

/* "mtp:1" for a layer that is no layer of the model proper. */
static void put_layer(FILE *out, const struct r3ring_layer_entry *layer)
{
	fprintf(out, "\"%s%d\":", layer->kind == R3RING_LAYER_MTP ? "mtp:" : "", layer->layer_id);
}

static void put_routes(FILE *out, const struct export_plan *plan, const struct export_chunk *chunk,
		       uint32_t row)
{
	for (uint32_t layer = 0; layer < plan->layers; layer++) {
		const size_t cell = (size_t)row * plan->layers + layer;

		fputs(layer ? "," : "", out);
		put_layer(out, &plan->layer[layer]);
		for (uint32_t k = 0; k < plan->top_k; k++)
			fprintf(out, "%c%" PRId64, k ? ',' : '[',
				id_at(plan, chunk->routes, cell * plan->top_k + k));
		fputc(']', out);
	}
}

static void put_missing(FILE *out, const struct export_plan *plan, const struct export_chunk *chunk,
			uint32_t row)
{
	bool any = false;

	for (uint32_t layer = 0; layer < plan->layers; layer++) {
		const size_t cell = (size_t)row * plan->layers + layer;

		if (chunk->valid[cell])
			continue;
		fputs(any ? "," : ",\"missing\":{", out);
		any = true;
		put_layer(out, &plan->layer[layer]);
		fprintf(out, "\"%s\"",
			plan->layer[layer].bound ? r3ring_missing_cause_name(chunk->cause[cell])
						 : "dense");
	}
	if (any)
		fputc('}', out);
}

static void put_row(FILE *out, const struct export_plan *plan, const struct export_chunk *chunk,
		    uint32_t row)
{
	fputs("{\"request_id\":", out);
	export_json_string(out, chunk->request->id);
	fprintf(out, ",\"position\":%u,\"weight_version\":%" PRIu64 ",\"%s\":{",
		chunk->position + row, chunk->weight_version[row], plan->format->tensor);
	put_routes(out, plan, chunk, row);
	fputc('}', out);
	put_missing(out, plan, chunk, row);
	fputs("}\n", out);
}

static int jsonl_rows(struct export_writer *writer, const struct export_chunk *chunk,
		      struct r3ring_error *err)
{
	struct export_text text;

	export_text_open(&text);
	for (uint32_t row = 0; text.stream && row < chunk->rows; row++)
		put_row(text.stream, writer->plan, chunk, row);
	return export_text_append(&text, &writer->file, err);
}

const struct export_container export_jsonl_container = {
	.open = export_single_stream,
	.begin = export_single_begin,
	.request = jsonl_request,
	.rows = jsonl_rows,
	.request_end = export_single_request_end,
	.finish = export_single_finish,
	.close = export_single_close,
};
