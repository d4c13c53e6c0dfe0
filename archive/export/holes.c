/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "archive/export/holes.h"
#include "archive/export/ids.h"

#define ROWS_ALWAYS 64u

/* A trainer of one expert a token cannot tell a zero from a route, and does not try. */
static bool counts(const struct export_plan *plan)
{
	return plan->format->few_holes && plan->missing == EXPORT_FILL_ZEROS && plan->top_k > 1;
}

static void count_row(struct export_holes *holes, const struct export_plan *plan,
		      const uint8_t *valid, uint32_t position)
{
	uint32_t missing = 0, routing = 0;

	for (uint32_t layer = 0; layer < plan->layers; layer++) {
		routing += plan->layer[layer].bound;
		missing += plan->layer[layer].bound && !valid[layer];
	}
	if (missing && missing < routing && !holes->partial++)
		holes->first_partial = position;
	holes->whole += missing && missing == routing;
}

void export_holes_count(struct export_holes *holes, const struct export_plan *plan,
			const struct export_chunk *chunk)
{
	if (chunk->whole || !counts(plan))
		return;
	for (uint32_t row = 0; row < chunk->rows; row++)
		count_row(holes, plan, chunk->valid + (size_t)row * plan->layers,
			  chunk->position + row);
}

int export_holes_check(const struct export_holes *holes, const struct export_plan *plan,
		       const struct export_request *request, struct r3ring_error *err)
{
	const char *format = plan->format->name;
	char id[EXPORT_ID_WORDS];
	uint32_t most = request->rows / 100;

	most = most > ROWS_ALWAYS ? most : ROWS_ALWAYS;
	if (holes->partial)
		return r3ring_error_set(
			err, -ENODATA,
			"request '%s': %s refuses zeros in some layers only, which stand in %u "
			"rows, "
			"the first at position %u; nothing is written. Choose others with "
			"--request, or export safetensors",
			export_id_words(id, request->id), format, holes->partial,
			holes->first_partial);
	if (holes->whole && (holes->whole > most || holes->whole == request->rows))
		return r3ring_error_set(
			err, -ENODATA,
			"request '%s': %u of its %u rows are missing, and %s takes at most %u as "
			"zeros%s; nothing is written. Choose others with --request, or export "
			"safetensors",
			export_id_words(id, request->id), holes->whole, request->rows, format, most,
			holes->whole > most ? "" : ", and not all");
	return 0;
}
