/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/behind.h"
#include "archive/export/convert.h"
#include "archive/export/ids.h"
#include "archive/export/rows.h"

#define FILLS_BYTES 64
#define REMEDY_BYTES 256
#define BUFFER_BYTES EXPORT_BEHIND_BYTES /* so that rows fit into what is written behind */

/* ---- buffers ------------------------------------------------------------ */

static bool converts(const struct export_plan *plan)
{
	return export_dtype_bytes(plan->dtype) != sizeof(uint16_t);
}

int export_reader_open(struct export_reader *reader, const struct export_plan *plan)
{
	const size_t cells = plan->layers;
	const size_t ids = cells * plan->top_k * sizeof(uint16_t);
	size_t rows = BUFFER_BYTES / (ids > plan->row_bytes ? ids : plan->row_bytes);

	*reader = (struct export_reader){.plan = plan};
	rows = rows ? rows : 1;
	reader->rows = (uint32_t)rows;
	reader->from = calloc(cells, sizeof(*reader->from));
	reader->run = calloc(cells, sizeof(*reader->run));
	reader->run_ids = malloc(rows * ids);
	reader->valid = malloc(rows * cells);
	reader->cause = malloc(rows * cells);
	reader->run_valid = malloc(rows * cells);
	reader->run_cause = malloc(rows * cells);
	reader->weight_version = malloc(rows * sizeof(*reader->weight_version));
	reader->own = malloc(rows * plan->row_bytes);
	if (converts(plan))
		reader->raw = malloc(rows * ids);
	if (reader->from && reader->run && reader->run_ids && reader->valid && reader->cause &&
	    reader->run_valid && reader->run_cause && reader->weight_version && reader->own &&
	    (reader->raw || !converts(plan)))
		return 0;
	export_reader_close(reader);
	return -ENOMEM;
}

void export_reader_close(struct export_reader *reader)
{
	free(reader->from);
	free(reader->run);
	free(reader->run_ids);
	free(reader->valid);
	free(reader->cause);
	free(reader->run_valid);
	free(reader->run_cause);
	free(reader->weight_version);
	free(reader->own);
	free(reader->raw);
	free(reader->cache.layer);
	*reader = (struct export_reader){0};
}

/* ---- layers ------------------------------------------------------------- */

static bool is_there(uint16_t from)
{
	return from != EXPORT_LAYER_DENSE && from != EXPORT_LAYER_ABSENT;
}

static void find_runs(struct export_reader *reader)
{
	const uint16_t *from = reader->from;

	reader->runs = 0;
	for (uint32_t i = 0; i < reader->plan->layers; i++) {
		struct export_run *last = reader->runs ? &reader->run[reader->runs - 1] : NULL;

		if (!is_there(from[i]))
			continue;
		if (last && last->to + last->layers == (int)i && from[i] == from[i - 1] + 1)
			last->layers++;
		else
			reader->run[reader->runs++] = (struct export_run){from[i], (uint16_t)i, 1};
	}
}

/* Requests of one engine have the same layers. */
static bool is_cached(const struct export_layer_cache *cache,
		      const struct r3ring_assembled_info *info)
{
	return cache->layer && cache->layers == info->layers &&
	       !memcmp(cache->layer, info->layer, info->layers * sizeof(*info->layer));
}

static void keep(struct export_layer_cache *cache, const struct r3ring_assembled_info *info)
{
	free(cache->layer);
	cache->layers = info->layers;
	cache->layer = malloc(info->layers * sizeof(*info->layer) + 1);
	if (cache->layer)
		memcpy(cache->layer, info->layer, info->layers * sizeof(*info->layer));
}

int export_reader_begin(struct export_reader *reader, const struct export_known_layers *known,
			const struct r3ring_assembled_info *info, struct r3ring_error *err)
{
	int rc;

	if (is_cached(&reader->cache, info))
		return 0;
	rc = export_plan_map(reader->plan, known, info, reader->from, err);
	if (rc)
		return rc;
	find_runs(reader);
	keep(&reader->cache, info);
	return 0;
}

/* ---- reading ------------------------------------------------------------ */

/* The cells of layers that the request does not have. */
static void put_absent(struct export_reader *reader, uint32_t rows)
{
	const struct export_plan *plan = reader->plan;
	const size_t cells = (size_t)rows * plan->layers;

	memset(reader->valid, 0, cells);
	memset(reader->cause, R3RING_MISSING_OTHER_LAYERS, cells);
}

static void put_run(struct export_reader *reader, const struct export_run *run, uint32_t rows)
{
	const struct export_plan *plan = reader->plan;
	const size_t top_k = plan->top_k;

	for (uint32_t i = 0; i < rows; i++) {
		const size_t to = (size_t)i * plan->layers + run->to;
		const size_t from = (size_t)i * run->layers;

		memcpy(reader->ids + to * top_k, reader->run_ids + from * top_k,
		       run->layers * top_k * sizeof(uint16_t));
		memcpy(reader->valid + to, reader->run_valid + from, run->layers);
		memcpy(reader->cause + to, reader->run_cause + from, run->layers);
	}
}

static int read_run(struct export_reader *reader, const struct export_chunk *chunk,
		    const struct export_run *run, bool whole)
{
	const struct r3ring_assembled_rows rows = {
		.ids = whole ? reader->ids : reader->run_ids,
		.valid = whole ? reader->valid : reader->run_valid,
		.cause = whole ? reader->cause : reader->run_cause,
		.weight_version = reader->weight_version,
	};
	int rc = r3ring_assembled_read(reader->assembled, chunk->position, chunk->rows, run->from,
				       run->layers, &rows);

	if (!rc && !whole)
		put_run(reader, run, chunk->rows);
	return rc;
}

static int read_ids(struct export_reader *reader, const struct export_chunk *chunk)
{
	const struct export_plan *plan = reader->plan;
	bool whole = reader->runs == 1 && reader->run[0].layers == plan->layers;
	int rc = 0;

	if (!whole)
		put_absent(reader, chunk->rows);
	if (!reader->runs)
		memset(reader->weight_version, 0, chunk->rows * sizeof(*reader->weight_version));
	for (uint32_t i = 0; !rc && i < reader->runs; i++)
		rc = read_run(reader, chunk, &reader->run[i], whole);
	return rc;
}

/* ---- filling ------------------------------------------------------------ */

/* Where there was never anything to lose. */
static bool is_pad(const struct export_reader *reader, const struct export_chunk *chunk,
		   uint32_t row, uint32_t layer)
{
	const struct r3ring_assembled_info *info = chunk->request->info;

	if (reader->from[layer] == EXPORT_LAYER_DENSE)
		return true;
	return chunk->position + row + 1 == info->tokens &&
	       reader->cause[(size_t)row * reader->plan->layers + layer] == R3RING_MISSING_NOT_FED;
}

/* The fills that this format takes, as a user says them: "--missing -1 or zeros". */
static void fills_text(char text[FILLS_BYTES], const struct export_format *format)
{
	static const char *const between[] = {"--missing ", " or ", " or "};
	unsigned int named = 0;
	size_t used = 0;

	for (int fill = EXPORT_FILL_MINUS_ONE; fill < EXPORT_FILLS; fill++)
		if (!format->missing[fill].refused)
			used += (size_t)snprintf(text + used, FILLS_BYTES - used, "%s%s",
						 between[named++],
						 export_fill_name((enum export_fill)fill));
	if (!named)
		snprintf(text, FILLS_BYTES, "--format safetensors with --missing -1");
}

/* What can be done about a cell that is missing for @cause. */
static void remedy_text(char text[REMEDY_BYTES], const struct export_plan *plan, uint8_t cause)
{
	const struct archive_kept *kept = &plan->summary->kept;
	const bool whole = plan->format->whole;
	char fills[FILLS_BYTES];

	fills_text(fills, plan->format);
	if (cause == R3RING_MISSING_NOT_RECORDED)
		snprintf(text, REMEDY_BYTES,
			 "The archive has layers %u to %u only (record --layers): %s--layers %u:%u "
			 "takes those, %s fills the others",
			 kept->layer_first, kept->layer_end - 1,
			 whole ? "--format safetensors with " : "", kept->layer_first,
			 kept->layer_end, fills);
	else
		snprintf(text, REMEDY_BYTES, "%s fills them%s", fills,
			 whole ? "" : ", --positions leaves them out");
}

static uint64_t count_cause(const struct export_reader *reader, const struct export_chunk *chunk,
			    uint8_t cause)
{
	const size_t cells = (size_t)chunk->rows * reader->plan->layers;
	uint64_t count = 0;

	for (size_t cell = 0; cell < cells; cell++)
		count += !reader->valid[cell] && reader->cause[cell] == cause &&
			 !is_pad(reader, chunk, (uint32_t)(cell / reader->plan->layers),
				 (uint32_t)(cell % reader->plan->layers));
	return count;
}

/* Of all that is to be written of a request: reads it once more, over what was read before. */
static uint64_t count_missing(struct export_reader *reader, const struct export_request *request,
			      uint8_t cause)
{
	uint64_t count = 0;

	reader->ids = reader->raw ? reader->raw : reader->own;
	for (uint32_t done = 0; done < request->rows;) {
		struct export_chunk chunk = {
			.request = request,
			.position = request->position + done,
			.rows = request->rows - done,
		};

		if (chunk.rows > reader->rows)
			chunk.rows = reader->rows;
		done += chunk.rows;
		if (!read_ids(reader, &chunk))
			count += count_cause(reader, &chunk, cause);
	}
	return count;
}

static int refuse(struct export_reader *reader, const struct export_chunk *chunk, uint32_t row,
		  uint32_t layer, uint8_t cause, struct r3ring_error *err)
{
	const struct export_request *request = chunk->request;
	uint32_t end = row + 1;
	char remedy[REMEDY_BYTES], id[EXPORT_ID_WORDS];

	remedy_text(remedy, reader->plan, cause);
	while (end < chunk->rows &&
	       reader->cause[(size_t)end * reader->plan->layers + layer] == cause)
		end++;
	return r3ring_error_set(
		err, -ENODATA,
		"request '%s': positions %u to %u of layer %d are missing: %s (of the %llu cells "
		"to be written %llu are missing for that); nothing is written. %s",
		export_id_words(id, request->id), chunk->position + row, chunk->position + end - 1,
		reader->plan->layer[layer].layer_id, r3ring_missing_cause_name(cause),
		(unsigned long long)request->rows * reader->plan->layers,
		(unsigned long long)count_missing(reader, request, cause), remedy);
}

static int fill_cell(struct export_reader *reader, const struct export_chunk *chunk, size_t cell,
		     struct export_summary *summary, struct r3ring_error *err)
{
	const struct export_plan *plan = reader->plan;
	const uint32_t row = (uint32_t)(cell / plan->layers),
		       layer = (uint32_t)(cell % plan->layers);
	const uint8_t cause = reader->cause[cell];

	if (is_pad(reader, chunk, row, layer)) {
		summary->padded++;
		export_fill(reader->out, plan->dtype, cell * plan->top_k, plan->top_k, plan->pad);
		return 0;
	}
	if (plan->missing == EXPORT_FILL_ERROR)
		return refuse(reader, chunk, row, layer, cause, err);
	summary->filled[cause]++;
	export_fill(reader->out, plan->dtype, cell * plan->top_k, plan->top_k, plan->missing);
	return 0;
}

static int fill_missing(struct export_reader *reader, struct export_chunk *chunk,
			struct export_summary *summary, struct r3ring_error *err)
{
	const size_t cells = (size_t)chunk->rows * reader->plan->layers;
	const uint8_t *next = reader->valid, *end = next + cells;
	int rc = 0;

	chunk->whole = true;
	while (!rc && next < end && (next = memchr(next, 0, (size_t)(end - next)))) {
		rc = fill_cell(reader, chunk, (size_t)(next - reader->valid), summary, err);
		chunk->whole = false;
		next++;
	}
	return rc;
}

int export_reader_read(struct export_reader *reader, const struct r3ring_assembled *assembled,
		       struct export_chunk *chunk, struct export_summary *summary,
		       struct r3ring_error *err)
{
	const struct export_plan *plan = reader->plan;
	char id[EXPORT_ID_WORDS];
	int rc;

	reader->out = chunk->room ? chunk->room : reader->own;
	reader->ids = reader->raw ? reader->raw : reader->out;
	reader->assembled = assembled;
	rc = read_ids(reader, chunk);
	if (rc)
		return r3ring_error_set(err, rc, "request '%s': position %u is beyond its end",
					export_id_words(id, chunk->request->id), chunk->position);
	if (reader->raw)
		export_convert(reader->out, plan->dtype, reader->raw,
			       (size_t)chunk->rows * plan->layers * plan->top_k);
	chunk->routes = reader->out;
	chunk->valid = reader->valid;
	chunk->cause = reader->cause;
	chunk->weight_version = reader->weight_version;
	return fill_missing(reader, chunk, summary, err);
}
