/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way into the output, and the rows that turns of a session supply. */
#include <errno.h>
#include <string.h>

#include "archive/export/export_internal.h"
#include "archive/export/holes.h"

/* ---- a request's rows --------------------------------------------------- */

static int begin(struct exporter *exporter, const struct r3ring_assembled_info *info,
		 struct r3ring_error *err)
{
	int rc = export_layers_add(&exporter->known, info->layer, info->layers);

	if (rc)
		return r3ring_error_set(err, rc, "no memory");
	exporter->plan.format = exporter->format;
	exporter->plan.options = &exporter->options;
	exporter->plan.summary = &exporter->summary;
	rc = export_plan_make(&exporter->plan, &exporter->known, info, err);
	if (!rc)
		rc = export_plan_check_stages(&exporter->plan, &exporter->stages, err);
	if (rc)
		return rc;
	if (export_reader_open(&exporter->reader, &exporter->plan))
		return r3ring_error_set(err, -ENOMEM, "no memory");
	exporter->begun = true;
	return exporter->format->container->begin(exporter->writer, &exporter->plan, err);
}

/* Which of its positions are written. */
static struct export_request range_of(const struct exporter *exporter,
				      const struct r3ring_assembled_info *info)
{
	const struct export_options *options = &exporter->options;
	uint32_t first = options->position_first, end = info->tokens;

	if (exporter->plan.rows == EXPORT_ROWS_MINUS_ONE && end)
		end--;
	if (options->position_end && options->position_end < end)
		end = options->position_end;
	if (first > end)
		first = end;
	return (struct export_request){info, info->id, first, end - first};
}

static int write_rows(struct exporter *exporter, const struct r3ring_assembled *assembled,
		      const struct export_request *request, struct r3ring_error *err)
{
	const struct export_container *container = exporter->format->container;
	struct export_holes holes = {0};
	int rc = 0;

	for (uint32_t done = 0; !rc && done < request->rows;) {
		struct export_chunk chunk = {
			.request = request,
			.position = request->position + done,
			.rows = request->rows - done,
		};

		if (chunk.rows > exporter->reader.rows)
			chunk.rows = exporter->reader.rows;
		done += chunk.rows;
		if (container->room)
			chunk.room = container->room(exporter->writer,
						     chunk.rows * exporter->plan.row_bytes);
		rc = export_reader_read(&exporter->reader, assembled, &chunk, &exporter->summary,
					err);
		if (!rc)
			rc = container->rows(exporter->writer, &chunk, err);
		if (!rc)
			export_holes_count(&holes, &exporter->plan, &chunk);
	}
	return rc ? rc : export_holes_check(&holes, &exporter->plan, request, err);
}

static void count_rows(struct exporter *exporter, const struct export_request *request)
{
	struct export_summary *summary = &exporter->summary;
	uint32_t all = request->info->tokens;

	if (exporter->plan.rows == EXPORT_ROWS_MINUS_ONE && all)
		all--;
	summary->longest = all > summary->longest ? all : summary->longest;
	summary->rowless += !request->rows;
	summary->requests++;
	summary->rows += request->rows;
}

static int write_it(struct exporter *exporter, const struct r3ring_assembled *assembled,
		    const char *id, struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	const struct export_container *container = exporter->format->container;
	struct export_request request;
	char words[EXPORT_ID_WORDS];
	int rc = exporter->begun ? 0 : begin(exporter, info, err);

	if (rc)
		return rc;
	if (exporter->format->one_request && exporter->summary.requests)
		return r3ring_error_set(err, -EFBIG,
					"%s holds one request, and '%s' is a second; nothing is "
					"written. Choose one with --request ID (ID#1 where several "
					"have the id), or export safetensors, which holds all",
					exporter->format->name, export_id_words(words, id));
	request = range_of(exporter, info);
	request.id = id;
	rc = export_reader_begin(&exporter->reader, &exporter->known, info, err);
	if (!rc)
		rc = container->request(exporter->writer, &request, err);
	if (!rc)
		rc = write_rows(exporter, assembled, &request, err);
	if (!rc)
		rc = container->request_end(exporter->writer, err);
	count_rows(exporter, &request);
	return rc;
}

/* ---- turns of a session -------------------------------------------------- */

/* The last token's row, read from the turn that consumed it. */
static int supply(struct exporter *exporter, const struct r3ring_assembled *next,
		  const struct export_turn *turn, struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(next);
	const struct export_request request = {info, info->id, turn->tokens - 1, 1};
	struct export_chunk chunk = {.request = &request, .position = request.position, .rows = 1};
	struct export_summary unused = {0};
	struct r3ring_error ignored;
	int rc = export_reader_begin(&exporter->reader, &exporter->known, info, err);

	if (rc)
		return rc;
	/* What is missing there, or was run with other weights, supplies nothing. */
	if (export_reader_read(&exporter->reader, next, &chunk, &unused, &ignored) ||
	    memchr(chunk.cause, R3RING_MISSING_NOT_FED, exporter->plan.layers) ||
	    chunk.weight_version[0] != turn->weight_version)
		return 0;
	for (uint32_t cause = 1; cause < R3RING_MISSING_CAUSES; cause++)
		if (unused.filled[cause])
			return 0;
	exporter->summary.joined++;
	exporter->summary.padded -= exporter->plan.layers - unused.padded;
	return exporter->format->container->patch(exporter->writer, turn->row, &chunk, err);
}

/* Before the turn itself is written. */
int export_join_before(struct exporter *exporter, const struct r3ring_assembled *assembled,
		       struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	struct export_turn turn;

	if (!exporter->sessions || !info->session[0] ||
	    !export_sessions_take(exporter->sessions, info->session, &turn))
		return 0;
	/* A turn that the next one does not go on from, or not for all that is known. */
	if (info->prompt_tokens == R3RING_UNKNOWN_U32 || info->prompt_tokens < turn.tokens)
		return 0;
	return supply(exporter, assembled, &turn, err);
}

/* After it: it waits for the next one if its last row is there and was not fed back. */
static int join_after(struct exporter *exporter, const struct r3ring_assembled *assembled,
		      struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	const struct export_request range = range_of(exporter, info);
	struct export_turn turn = {.tokens = info->tokens, .row = exporter->summary.rows - 1};
	uint8_t cause = 0;
	const struct r3ring_assembled_rows last = {.cause = &cause};
	const struct r3ring_assembled_rows before = {.weight_version = &turn.weight_version};
	int rc;

	if (!exporter->sessions || !info->session[0] || info->tokens < 2 || !range.rows ||
	    range.position + range.rows != info->tokens)
		return 0;
	if (r3ring_assembled_read(assembled, info->tokens - 1, 1, 0, 1, &last) ||
	    cause != R3RING_MISSING_NOT_FED ||
	    r3ring_assembled_read(assembled, info->tokens - 2, 1, 0, 1, &before))
		return 0;
	rc = export_sessions_put(exporter->sessions, info->session, &turn);
	if (rc < 0)
		return r3ring_error_set(err, rc, "no memory");
	exporter->summary.turns_forgotten += (uint64_t)rc;
	return 0;
}

int export_write_request(struct exporter *exporter, const struct r3ring_assembled *assembled,
			 const char *id, struct r3ring_error *err)
{
	int rc = write_it(exporter, assembled, id, err);

	return rc ? rc : join_after(exporter, assembled, err);
}
