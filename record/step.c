/* SPDX-License-Identifier: Apache-2.0 */
/* STEP, SPANS and KEY_COPY: which rows belong to which request and position. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

#define STEP_FLAGS_KNOWN                                                                           \
	(R3RING_STEP_WARMUP | R3RING_STEP_GRAPH | R3RING_STEP_SPANS_FOLLOW | R3RING_STEP_DROPPED | \
	 R3RING_STEP_MAP_CONTINUED)
#define SPANS_FLAGS_KNOWN (R3RING_SPANS_MORE | R3RING_SPANS_REPLACE | R3RING_SPANS_CONTINUED)

/* ---- spans and keys, common to STEP and SPANS ---- */

/* The token map of a record: private counts, arrays as trustworthy as the payload. */
struct token_map {
	const char *record;
	uint32_t rows; /* rows that there can be in the step */
	uint32_t spans;
	uint32_t keys;
	const struct r3ring_span *span;
};

static int check_keys(const char *record, uint32_t keys, uint32_t key_kind, uint32_t tokens_per_key,
		      struct r3ring_error *err)
{
	if (key_kind > R3RING_KEYS_SLOT)
		return RECORD_REFUSE(err, "%s record: unknown kind of keys %u", record, key_kind);
	if (keys && key_kind == R3RING_KEYS_NONE)
		return RECORD_REFUSE(err, "%s record: %u keys, but of no kind", record, keys);
	if (keys && tokens_per_key == 0)
		return RECORD_REFUSE(err, "%s record: keys of 0 tokens", record);
	return 0;
}

static int check_span(const struct token_map *map, uint32_t index, const struct r3ring_span *span,
		      struct r3ring_error *err)
{
	if (span->kind > R3RING_SPAN_EXTERNAL)
		return RECORD_REFUSE(err, "%s record: span %u has unknown kind %u", map->record,
				     index, span->kind);
	if (span->flags & ~(uint32_t)R3RING_SPAN_DRAFT)
		return RECORD_REFUSE(err, "%s record: span %u has unknown flags 0x%x", map->record,
				     index, span->flags);
	if ((uint64_t)span->position + span->rows > R3RING_UNKNOWN_U32)
		return RECORD_REFUSE(err, "%s record: span %u ends beyond the last position",
				     map->record, index);
	if (span->kind == R3RING_SPAN_COMPUTED && (uint64_t)span->row + span->rows > map->rows)
		return RECORD_REFUSE(err, "%s record: span %u has %u rows from row %u on, of %u",
				     map->record, index, span->rows, span->row, map->rows);
	if (span->flags & R3RING_SPAN_DRAFT && span->accepted != R3RING_UNKNOWN_U32 &&
	    span->accepted > span->rows)
		return RECORD_REFUSE(err, "%s record: span %u has %u accepted of %u draft rows",
				     map->record, index, span->accepted, span->rows);
	return 0;
}

static int check_token_map(const struct token_map *map, struct r3ring_error *err)
{
	uint64_t keys = 0;

	for (uint32_t i = 0; i < map->spans; i++) {
		struct r3ring_span span;
		int rc;

		memcpy(&span, &map->span[i], sizeof(span));
		rc = check_span(map, i, &span, err);
		if (rc)
			return rc;
		keys += span.keys;
	}
	if (keys != map->keys)
		return RECORD_REFUSE(err, "%s record: spans have %llu keys, the record has %u",
				     map->record, (unsigned long long)keys, map->keys);
	return 0;
}

/* ---- STEP ---- */

static int step_check_rows(const struct r3ring_step_record *head, struct r3ring_error *err)
{
	if (head->total_rows > R3RING_ROWS_MAX)
		return RECORD_REFUSE(err, "STEP record: %u rows, at most %u", head->total_rows,
				     R3RING_ROWS_MAX);
	if (head->row_begin > head->row_end || head->row_end > head->total_rows)
		return RECORD_REFUSE(err,
				     "STEP record: the rank's rows [%u,%u) do not lie within the "
				     "step's %u",
				     head->row_begin, head->row_end, head->total_rows);
	if (head->valid_end > head->total_rows)
		return RECORD_REFUSE(err, "STEP record: valid_end %u of %u rows", head->valid_end,
				     head->total_rows);
	return 0;
}

/* Only a step that is lost says why. */
static int step_check_dropped(const struct r3ring_step_record *head, struct r3ring_error *err)
{
	if (head->cause > R3RING_CAUSE_CONFLICT || head->spans_unknown > 1)
		return RECORD_REFUSE(err,
				     "STEP record: unknown cause %u, or %u for whether spans "
				     "are unknown",
				     head->cause, head->spans_unknown);
	if ((head->cause || head->spans_unknown) && !(head->flags & R3RING_STEP_DROPPED))
		return RECORD_REFUSE(err, "STEP record: cause %u of a step that was not dropped",
				     head->cause);
	return 0;
}

static int step_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	int rc;

	if (head->step == 0)
		return RECORD_REFUSE(err, "STEP record: step 0; steps are numbered from 1");
	if (head->flags & ~(uint32_t)STEP_FLAGS_KNOWN)
		return RECORD_REFUSE(err, "STEP record: unknown flags 0x%x", head->flags);
	rc = step_check_dropped(head, err);
	if (!rc)
		rc = step_check_rows(head, err);
	if (rc)
		return rc;
	return check_keys("STEP", head->keys, head->key_kind, head->tokens_per_key, err);
}

static unsigned int step_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_step_record *head = &record->u.step.head;

	arrays[0] = (struct record_array){RECORD_POINTER(step.spans),
					  head->spans * (uint64_t)sizeof(struct r3ring_span),
					  "spans"};
	arrays[1] = (struct record_array){RECORD_POINTER(step.keys),
					  head->keys * (uint64_t)sizeof(uint64_t), "keys"};
	return 2;
}

static int step_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	const struct token_map map = {"STEP", head->total_rows, head->spans, head->keys,
				      record->u.step.spans};

	return check_token_map(&map, err);
}

const struct record_type record_step = {
	.head_bytes = sizeof(struct r3ring_step_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = step_check_head,
	.arrays = step_arrays,
	.check_arrays = step_check_arrays,
};

/* ---- SPANS ---- */

static void spans_clear(struct r3ring_record *record)
{
	record->u.spans.head.reserved = 0;
}

static int spans_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;

	if (head->step == 0)
		return RECORD_REFUSE(err, "SPANS record: step 0; steps are numbered from 1");
	if (head->flags & ~(uint32_t)SPANS_FLAGS_KNOWN)
		return RECORD_REFUSE(err, "SPANS record: unknown flags 0x%x", head->flags);
	return check_keys("SPANS", head->keys, head->key_kind, head->tokens_per_key, err);
}

static unsigned int spans_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;

	arrays[0] = (struct record_array){RECORD_POINTER(spans.spans),
					  head->spans * (uint64_t)sizeof(struct r3ring_span),
					  "spans"};
	arrays[1] = (struct record_array){RECORD_POINTER(spans.keys),
					  head->keys * (uint64_t)sizeof(uint64_t), "keys"};
	return 2;
}

static int spans_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;
	/* The step's own rows stand in its STEP record. */
	const struct token_map map = {"SPANS", R3RING_ROWS_MAX, head->spans, head->keys,
				      record->u.spans.spans};

	return check_token_map(&map, err);
}

const struct record_type record_spans = {
	.head_bytes = sizeof(struct r3ring_spans_record),
	.clear_reserved = spans_clear,
	.check_head = spans_check_head,
	.arrays = spans_arrays,
	.check_arrays = spans_check_arrays,
};

/* ---- KEY_COPY ---- */

static void key_copy_clear(struct r3ring_record *record)
{
	record->u.key_copy.head.reserved = 0;
}

static int key_copy_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_key_copy_record *head = &record->u.key_copy.head;

	return check_keys("KEY_COPY", head->pairs, head->key_kind, head->tokens_per_key, err);
}

static unsigned int key_copy_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	arrays[0] = (struct record_array){
		RECORD_POINTER(key_copy.pairs),
		record->u.key_copy.head.pairs * (uint64_t)sizeof(struct r3ring_key_pair),
		"pairs",
	};
	return 1;
}

const struct record_type record_key_copy = {
	.head_bytes = sizeof(struct r3ring_key_copy_record),
	.clear_reserved = key_copy_clear,
	.check_head = key_copy_check_head,
	.arrays = key_copy_arrays,
};
