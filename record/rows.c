/* SPDX-License-Identifier: Apache-2.0 */
/* ROWS and LAYER: what the device had for the rows of a step. */
#include <errno.h>

#include "record/types.h"

#define ROWS_CONTENT_KNOWN (R3RING_ROWS_POSITIONS | R3RING_ROWS_TOKEN_IDS)

/* ---- ROWS ---- */

static void rows_clear(struct r3ring_record *record)
{
	record->u.rows.head.reserved = 0;
}

static int rows_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_rows_record *head = &record->u.rows.head;

	if (head->step == 0)
		return RECORD_REFUSE(err, "ROWS record: step 0; steps are numbered from 1");
	if ((uint64_t)head->row + head->rows > R3RING_ROWS_MAX)
		return RECORD_REFUSE(err,
				     "ROWS record: %u rows from row %u on, at most %u in a step",
				     head->rows, head->row, R3RING_ROWS_MAX);
	if (head->content == 0 || head->content & ~(uint32_t)ROWS_CONTENT_KNOWN)
		return RECORD_REFUSE(err,
				     "ROWS record: content 0x%x, known are positions (1) and token "
				     "ids (2)",
				     head->content);
	return 0;
}

static unsigned int rows_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_rows_record *head = &record->u.rows.head;
	uint64_t bytes = head->rows * (uint64_t)sizeof(int32_t);
	unsigned int n = 0;

	if (head->content & R3RING_ROWS_POSITIONS)
		arrays[n++] =
			(struct record_array){RECORD_POINTER(rows.positions), bytes, "positions"};
	if (head->content & R3RING_ROWS_TOKEN_IDS)
		arrays[n++] =
			(struct record_array){RECORD_POINTER(rows.token_ids), bytes, "token_ids"};
	return n;
}

const struct record_type record_rows = {
	.head_bytes = sizeof(struct r3ring_rows_record),
	.clear_reserved = rows_clear,
	.check_head = rows_check_head,
	.arrays = rows_arrays,
};

/* ---- LAYER ---- */

static void layer_clear(struct r3ring_record *record)
{
	struct r3ring_layer_record *head = &record->u.layer.head;

	head->reserved0 = 0;
	head->reserved1 = 0;
	head->reserved2 = 0;
	head->reserved3[0] = 0;
	head->reserved3[1] = 0;
}

static int layer_check_rows(const struct r3ring_layer_record *head, struct r3ring_error *err)
{
	if (head->total_rows > R3RING_ROWS_MAX)
		return RECORD_REFUSE(err, "LAYER record: a step of %u rows, at most %u",
				     head->total_rows, R3RING_ROWS_MAX);
	if ((uint64_t)head->row + head->rows > head->total_rows)
		return RECORD_REFUSE(err, "LAYER record: %u rows from row %u on, of %u", head->rows,
				     head->row, head->total_rows);
	if (head->valid_rows > head->rows)
		return RECORD_REFUSE(err, "LAYER record: %u valid rows of %u", head->valid_rows,
				     head->rows);
	return 0;
}

static int layer_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	int rc = record_check_layer_kind("LAYER", head->layer_id, head->kind, err);

	if (rc)
		return rc;
	if (head->step == 0)
		return RECORD_REFUSE(err, "LAYER record: step 0; steps are numbered from 1");
	if (head->layer_index >= R3RING_LAYERS_MAX)
		return RECORD_REFUSE(err, "LAYER record: place %u of a layer table of at most %u",
				     head->layer_index, R3RING_LAYERS_MAX);
	if (head->top_k == 0 || head->top_k > R3RING_TOP_K_MAX)
		return RECORD_REFUSE(err, "LAYER record: top_k %u, allowed are 1 to %u",
				     head->top_k, R3RING_TOP_K_MAX);
	return layer_check_rows(head, err);
}

static unsigned int layer_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;

	arrays[0] = (struct record_array){
		RECORD_POINTER(layer.ids),
		(uint64_t)head->rows * head->top_k * sizeof(uint16_t),
		"ids",
	};
	return 1;
}

const struct record_type record_layer = {
	.head_bytes = sizeof(struct r3ring_layer_record),
	.clear_reserved = layer_clear,
	.check_head = layer_check_head,
	.arrays = layer_arrays,
};
