/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object a line and request, with the routes' bytes in base64 (RFC 4648, section 4)
 * where an engine's answer would have them: meta_info.routed_experts.
 */
#include <stdio.h>
#include <string.h>

#include "archive/export/json_text.h"
#include "archive/export/single.h"

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
	fprintf(out,
		",\"tokens\":%u,\"prompt_tokens\":%u,\"dtype\":\"%s\",\"shape\":[%u,%u,%u],"
		"\"meta_info\":{\"routed_experts\":\"",
		info->tokens, info->prompt_tokens, export_dtype_name(plan->dtype), request->rows,
		plan->layers, plan->top_k);
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

static void letters_of(char *to, const uint8_t *from)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	to[0] = letters[from[0] >> 2];
	to[1] = letters[(from[0] & 3) << 4 | from[1] >> 4];
	to[2] = letters[(from[1] & 15) << 2 | from[2] >> 6];
	to[3] = letters[from[2] & 63];
}

static int put_groups(struct export_writer *writer, const uint8_t *from, size_t groups,
		      struct r3ring_error *err)
{
	char text[GROUPS_AT_ONCE * 4];
	int rc = 0;

	while (!rc && groups) {
		size_t now = groups < GROUPS_AT_ONCE ? groups : GROUPS_AT_ONCE;

		for (size_t i = 0; i < now; i++)
			letters_of(text + i * 4, from + i * 3);
		rc = export_file_append(&writer->file, text, now * 4, err);
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
	const uint32_t rests = writer->rests;
	char last[4] = "";
	int rc = 0;

	if (rests) {
		memset(writer->rest + rests, 0, sizeof(writer->rest) - rests);
		letters_of(last, writer->rest);
		memset(last + 1 + rests, '=', 3 - rests);
		rc = export_file_append(&writer->file, last, sizeof(last), err);
	}
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
