/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of steps: their layers, their ends, and what keyframes say of them all. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "archive/account.h"
#include "consumer/layers.h"

static uint64_t rows_of(const struct r3ring_step_record *step)
{
	return step->row_end - step->row_begin;
}

/* ---- announced --------------------------------------------------------- */

static void count_up_to(struct account *account, uint64_t step)
{
	if (step > account->counted_step)
		account->counted_step = step;
	if (step > account->newest_step)
		account->newest_step = step;
}

int account_take_step(struct account *account, const struct archive_item *item,
		      const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	uint64_t open = account->steps_known ? account->step.head.step : 0;
	uint64_t newest = account->newest_step;

	account->step.head = *head;
	if (head->flags & R3RING_STEP_DROPPED)
		account->step.head.step = 0;
	if (account->step.layer_rows)
		memset(account->step.layer_rows, 0,
		       account->schema.layers * sizeof(*account->step.layer_rows));
	account->steps_known = true;
	account->totals.seen.steps++;
	count_up_to(account, head->step);
	if (open)
		return account_lie(err, item,
				   "step %" PRIu64 " begins, and step %" PRIu64 " has no end",
				   head->step, open);
	if (head->step <= newest)
		return account_lie(err, item, "step %" PRIu64 " behind step %" PRIu64, head->step,
				   newest);
	return 0;
}

/* ---- layers ------------------------------------------------------------ */

static bool is_of_schema(const struct account *account, const struct r3ring_layer_record *head)
{
	const struct r3ring_layer_entry *entry;

	if (head->layer_index >= account->schema.layers || head->top_k != account->schema.top_k)
		return false;
	entry = &account->layers[head->layer_index];
	return entry->layer_id == head->layer_id && entry->kind == head->kind;
}

static int check_layer(const struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	uint64_t out_of_range;

	if (!is_of_schema(account, head))
		return account_lie(err, item, "step %" PRIu64 ": layer %d is not the schema's",
				   head->step, head->layer_id);
	r3ring_ids_check(record->u.layer.ids, head->rows, head->top_k, account->schema.experts,
			 NULL, &out_of_range);
	if (out_of_range)
		return account_lie(
			err, item,
			"step %" PRIu64 ", layer %d: %" PRIu64 " ids are no experts of %u",
			head->step, head->layer_id, out_of_range, account->schema.experts);
	return 0;
}

static int check_rows(const struct account *account, const struct archive_item *item,
		      const struct r3ring_layer_record *head, struct r3ring_error *err)
{
	const struct r3ring_step_record *step = &account->step.head;

	if (head->step != step->step)
		return account_lie(err, item, "a layer of step %" PRIu64 ", which is not open",
				   head->step);
	if (head->row < step->row_begin || head->row > step->row_end ||
	    head->rows > step->row_end - head->row || head->total_rows != step->total_rows)
		return account_lie(err, item,
				   "step %" PRIu64 ", layer %d: rows %u to %u of %u are not the "
				   "step's",
				   head->step, head->layer_id, head->row, head->row + head->rows,
				   head->total_rows);
	return 0;
}

int account_take_layer(struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	struct r3ring_totals *seen = &account->totals.seen;
	int code = 0;

	seen->layer_records++;
	if (account->schema.layers)
		code = check_layer(account, item, record, err);
	if (!code && account->steps_known)
		code = check_rows(account, item, head, err);
	if (code || head->step != account->step.head.step || !account->schema.layers)
		return code;
	account->step.layer_rows[head->layer_index] += head->rows;
	if (head->row == account->step.head.row_begin) {
		seen->ids_missing += head->missing;
		seen->ids_out_of_range += head->out_of_range;
	}
	return 0;
}

/* ---- the end ----------------------------------------------------------- */

static bool is_missing(const struct r3ring_record *end, const struct r3ring_layer_entry *layer)
{
	for (uint32_t i = 0; i < end->u.step_end.head.missing; i++) {
		const struct r3ring_missing_layer *missing = &end->u.step_end.missing[i];

		if (missing->layer_id == layer->layer_id && missing->kind == layer->kind)
			return true;
	}
	return false;
}

/* Layers that are not said to be missing are there, all rows of them. */
static int check_layers(const struct account *account, const struct archive_item *item,
			const struct r3ring_record *end, struct r3ring_error *err)
{
	uint64_t rows = rows_of(&account->step.head);

	for (uint32_t i = 0; i < account->schema.layers; i++) {
		const struct r3ring_layer_entry *layer = &account->layers[i];

		if (account->step.layer_rows[i] != rows &&
		    layers_among(layer, account->layer_first, account->layer_end) &&
		    !is_missing(end, layer))
			return account_lie(err, item,
					   "step %" PRIu64 " ends, and layer %d has %" PRIu64
					   " of %" PRIu64 " rows",
					   account->step.head.step, layer->layer_id,
					   account->step.layer_rows[i], rows);
	}
	return 0;
}

static void count_end(struct account *account, const struct r3ring_record *end)
{
	struct r3ring_totals *seen = &account->totals.seen;
	uint32_t missing = end->u.step_end.head.missing;
	uint64_t valid = r3ring_step_valid_rows(&account->step.head);

	if (missing)
		seen->steps_partial++;
	else
		seen->steps_complete++;
	seen->layers_missing += missing;
	if (missing >= account->schema.layers)
		return;
	seen->layer_rows += valid * (account->schema.layers - missing);
	seen->rows += valid;
}

int account_take_end(struct account *account, const struct archive_item *item,
		     const struct r3ring_record *record, struct r3ring_error *err)
{
	uint64_t step = record->u.step_end.head.step;
	int code = 0;

	if (account->steps_known && step != account->step.head.step)
		return account_lie(err, item, "the end of step %" PRIu64 ", which is not open",
				   step);
	if (step == account->step.head.step) {
		code = check_layers(account, item, record, err);
		count_end(account, record);
	}
	account->step.head.step = 0;
	return code;
}

/* ---- losses ------------------------------------------------------------ */

void account_take_lost(struct account *account, const struct r3ring_lost_record *lost)
{
	struct r3ring_totals *seen = &account->totals.seen;
	uint64_t first = lost->from_step;

	seen->lost_steps[lost->cause] += lost->steps;
	seen->lost_rows[lost->cause] += lost->rows;
	if (first <= account->counted_step)
		first = account->counted_step + 1;
	if (lost->to_step >= first)
		seen->steps += lost->to_step - first + 1;
	count_up_to(account, lost->to_step);
	if (lost->steps && lost->to_step >= account->step.head.step)
		account->step.head.step = 0;
}

/* ---- keyframes --------------------------------------------------------- */

#define TOTAL(member)                                                                              \
	{                                                                                          \
#member, offsetof(struct r3ring_totals, member) / sizeof(uint64_t)                 \
	}

static const struct {
	const char *name;
	size_t index;
} totals_names[] = {
	TOTAL(steps),          TOTAL(steps_complete),   TOTAL(steps_partial),
	TOTAL(rows),           TOTAL(layer_records),    TOTAL(layer_rows),
	TOTAL(layers_missing), TOTAL(ids_out_of_range), TOTAL(ids_missing),
};

static const char *total_name(size_t index)
{
	for (size_t i = 0; i < sizeof(totals_names) / sizeof(totals_names[0]); i++) {
		if (totals_names[i].index == index)
			return totals_names[i].name;
	}
	return index < offsetof(struct r3ring_totals, lost_rows) / sizeof(uint64_t) ? "lost_steps"
										    : "lost_rows";
}

/* What of ids is known only from the records themselves. */
static bool is_of_ids(size_t index)
{
	return index == offsetof(struct r3ring_totals, ids_missing) / sizeof(uint64_t) ||
	       index == offsetof(struct r3ring_totals, ids_out_of_range) / sizeof(uint64_t);
}

/* Behind a gap losses may be more than was told, and never fewer. */
static int check_behind_gap(const struct account_totals *before, const struct archive_item *item,
			    const struct r3ring_totals *said, struct r3ring_error *err)
{
	const struct r3ring_totals *base = &before->base, *seen = &before->seen;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		uint64_t steps = base->lost_steps[cause] + seen->lost_steps[cause];
		uint64_t rows = base->lost_rows[cause] + seen->lost_rows[cause];

		if (said->lost_steps[cause] >= steps && said->lost_rows[cause] >= rows)
			continue;
		return account_lie(err, item,
				   "a keyframe says %" PRIu64 " steps (%" PRIu64
				   " rows) are lost of cause %s, but by the records it is "
				   "%" PRIu64 " (%" PRIu64 ") at least",
				   said->lost_steps[cause], said->lost_rows[cause],
				   r3ring_cause_name(cause), steps, rows);
	}
	return 0;
}

int account_take_keyframe(struct account *account, const struct archive_item *item,
			  const struct r3ring_keyframe_record *keyframe, struct r3ring_error *err)
{
	enum { COUNT = sizeof(struct r3ring_totals) / sizeof(uint64_t) };
	const struct account_totals before = account->totals;
	uint64_t base[COUNT], seen[COUNT], said[COUNT];

	memcpy(base, &before.base, sizeof(base));
	memcpy(seen, &before.seen, sizeof(seen));
	memcpy(said, &keyframe->totals, sizeof(said));
	account->totals = (struct account_totals){.base = keyframe->totals, .whole = true};
	count_up_to(account, keyframe->step);
	if (!before.whole)
		return check_behind_gap(&before, item, &keyframe->totals, err);
	for (size_t i = 0; i < COUNT; i++) {
		if (said[i] == base[i] + seen[i] || (before.skipped && is_of_ids(i)))
			continue;
		return account_lie(err, item,
				   "a keyframe says %s is %" PRIu64 ", but by the records it is "
				   "%" PRIu64,
				   total_name(i), said[i], base[i] + seen[i]);
	}
	return 0;
}
