/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object a line and request, with the routes' bytes in base64 (RFC 4648, section 4)
 * where an engine's answer would have them: meta_info.routed_experts.
 */
#include <stdio.h>
#include <string.h>

#include "archive/export/json_text.h"
#include "archive/export/single.h"
#include "channel/base64.h"

#define GROUPS_AT_ONCE 4096u /* of 3 bytes, 4 letters */

static void put_head(FILE *out, const struct export_plan *plan,
		     const struct export_request *request)
{
	const struct r3ring_assembled_info *info = request->info;

	fputs("{\"request_id\":", out);
	export_json_string(out, request->id);
	fputs(",\"session\":", out);
	export_json_string(out, info->session);
	fputs(",\"turn\":", out);
	export_json_string(out, info->turn);
	fputs(",\"sample\":", out);
	export_json_string(out, info->sample);
	fprintf(out, ",\"tokens\":%u,\"prompt_tokens\":", info->tokens);
	if (info->prompt_tokens == R3RING_UNKNOWN_U32)
		fputs("null", out);
	else
		fprintf(out, "%u", info->prompt_tokens);
	fprintf(out,
		",\"dtype\":\"%s\",\"shape\":[%u,%u,%u],"
		"\"meta_info\":{\"routed_experts\":\"",
		export_dtype_name(plan->dtype), request->rows, plan->layers, plan->top_k);
}

static int base64_request(struct export_writer *writer, const struct export_request *request,
			  struct r3ring_error *err)
{
	struct export_text text;

	export_text_open(&text);
	if (text.stream)
		put_head(text.stream, writer->plan, request);
	return export_text_append(&text, &writer->file, err);
}

/* ---- letters ------------------------------------------------------------ */

static int put_groups(struct export_writer *writer, const uint8_t *from, size_t groups,
		      struct r3ring_error *err)
{
	char text[BASE64_LENGTH(GROUPS_AT_ONCE * 3) + 1];
	int rc = 0;

	while (!rc && groups) {
		size_t now = groups < GROUPS_AT_ONCE ? groups : GROUPS_AT_ONCE;

		base64_encode(from, now * 3, text);
		rc = export_file_append(&writer->file, text, BASE64_LENGTH(now * 3), err);
		from += now * 3;
		groups -= now;
	}
	return rc;
}

static int base64_rows(struct export_writer *writer, const struct export_chunk *chunk,
		       struct r3ring_error *err)
{
	const uint8_t *from = chunk->routes;
	size_t bytes = chunk->rows * writer->plan->row_bytes;
	int rc = 0;

	while (writer->rests && writer->rests < 3 && bytes) {
		writer->rest[writer->rests++] = *from++;
		bytes--;
	}
	if (writer->rests == 3) {
		rc = put_groups(writer, writer->rest, 1, err);
		writer->rests = 0;
	}
	if (!rc)
		rc = put_groups(writer, from, bytes / 3, err);
	if (!writer->rests && bytes % 3) {
		writer->rests = (uint32_t)(bytes % 3);
		memcpy(writer->rest, from + bytes / 3 * 3, writer->rests);
	}
	return rc;
}

static int base64_request_end(struct export_writer *writer, struct r3ring_error *err)
{
	char last[BASE64_LENGTH(sizeof(writer->rest)) + 1];
	int rc = 0;

	base64_encode(writer->rest, writer->rests, last);
	if (writer->rests)
		rc = export_file_append(&writer->file, last, BASE64_LENGTH(writer->rests), err);
	writer->rests = 0;
	return rc ? rc : export_file_append(&writer->file, "\"}}\n", 4, err);
}

const struct export_container export_base64_container = {
	.open = export_single_stream,
	.begin = export_single_begin,
	.request = base64_request,
	.rows = base64_rows,
	.request_end = base64_request_end,
	.finish = export_single_finish,
	.close = export_single_close,
};
