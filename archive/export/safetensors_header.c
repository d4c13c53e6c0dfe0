/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a safetensors file: what is known of all, and where the tensors lie. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/export/json_text.h"
#include "archive/export/safetensors.h"

/* ---- metadata ------------------------------------------------------------ */

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

/* ---- tensors --------------------------------------------------------------- */

static const char *dtype_name(enum export_dtype dtype)
{
	static const char *const names[EXPORT_DTYPES] = {
		[EXPORT_DTYPE_DEFAULT] = "", [EXPORT_U8] = "U8",   [EXPORT_I8] = "I8",
		[EXPORT_U16] = "U16",        [EXPORT_I16] = "I16", [EXPORT_I32] = "I32",
		[EXPORT_I64] = "I64",
	};

	return names[dtype];
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
		   safetensors_routes_bytes(writer), &offset);
	put_run(out, &writer->run[POSITIONS], "positions", "I64", "", &offset);
	put_run(out, &writer->run[VERSIONS], "weight_version", "U64", "", &offset);
	put_numbers(out, &part[CU_SEQLENS], "cu_seqlens", &offset);
	put_numbers(out, &part[PROMPTS], "prompt_tokens", &offset);
	put_numbers(out, &part[LAYER_IDS], "layer_ids", &offset);
	put_run(out, &writer->run[VALID], "valid", "BOOL", layers, &offset);
	fputc('}', out);
}

/* ---- the whole ------------------------------------------------------------ */

int safetensors_header_make(struct safetensors_header *header, const struct export_writer *writer,
			    struct r3ring_error *err)
{
	FILE *head, *tail;
	bool failed;

	*header = (struct safetensors_header){0};
	head = open_memstream(&header->head, &header->head_bytes);
	tail = open_memstream(&header->tail, &header->tail_bytes);
	failed = !head || !tail;

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

void safetensors_header_free(struct safetensors_header *header)
{
	free(header->head);
	free(header->tail);
}
