/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/account.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/listing.h"

int account_lie(struct r3ring_error *err, const struct archive_item *item, const char *format, ...)
{
	char name[ARCHIVE_NAME_MAX];
	char what[R3RING_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	r3ring_error_set(err, 0, "segment %s, byte %" PRIu64 ", entry %u: %s: %.320s",
			 archive_segment_name(name, item->place.segment), item->place.offset,
			 item->place.entry, item->name ? item->name : "", what);
	return 1;
}

void account_free(struct account *account)
{
	free(account->layers);
	free(account->step.layer_rows);
	*account = (struct account){0};
}

void account_interrupt(struct account *account)
{
	account->units_known = account->steps_known = account->totals.whole = false;
	account->step.head.step = 0;
	account->repeats = 0;
}

/* ---- generations and gaps ---------------------------------------------- */

static bool same_generation(const struct account *account, const struct archive_generation *said)
{
	return account->said && account->generation == said->generation &&
	       memcmp(account->uuid, said->uuid, sizeof(said->uuid)) == 0;
}

static void begin_generation(struct account *account, const struct archive_generation *said)
{
	free(account->layers);
	account->layers = NULL;
	account->schema.layers = 0;
	account->generation = said->generation;
	memcpy(account->uuid, said->uuid, sizeof(said->uuid));
	account->seq = said->seq;
	account->units = 0;
	account->newest_step = account->counted_step = 0;
	account->totals = (struct account_totals){0};
	account->unended = false;
	account->closed = said->closed;
	account_interrupt(account);
	account->units_known = account->steps_known = account->totals.whole = !said->seq;
	account->said = true;
}

static int take_generation(struct account *account, const struct archive_item *item,
			   struct r3ring_error *err)
{
	const struct archive_generation *said = &item->u.generation;
	bool same = same_generation(account, said);
	uint64_t seq = account->seq;

	/* Behind damage what is missing is told by a gap that follows. */
	if (same && item->repeated &&
	    (seq == said->seq || (seq < said->seq && !account->steps_known)))
		return 0;
	if (!same && item->repeated && account->said && account->steps_known)
		return account_lie(err, item,
				   "generation %" PRIu64 " is said again, but it was %" PRIu64,
				   said->generation, account->generation);
	begin_generation(account, said);
	if (same)
		return account_lie(err, item,
				   "generation %" PRIu64 " goes on behind record %" PRIu64
				   ", but %" PRIu64 " was the last one",
				   said->generation, said->seq, seq);
	if (!item->repeated && said->seq)
		return account_lie(err, item,
				   "generation %" PRIu64 " begins, yet %" PRIu64
				   " of its records are said to be before it",
				   said->generation, said->seq);
	return 0;
}

static int take_gap(struct account *account, const struct archive_item *item,
		    struct r3ring_error *err)
{
	const struct archive_gap *gap = &item->u.gap;
	uint64_t due = account->seq + 1;

	account_interrupt(account);
	/* Of the reader, behind damage, in front of which nothing is known. */
	if (!gap->lost && !gap->from_seq)
		return 0;
	if (gap->lost)
		account->seq = gap->to_seq;
	else
		account->unended = true;
	if (gap->from_seq != due)
		return account_lie(err, item,
				   "a gap from record %" PRIu64 " on, where %" PRIu64 " was due",
				   gap->from_seq, due);
	return 0;
}

static int check_unfollowed(const struct account *account, const struct archive_item *item,
			    struct r3ring_error *err)
{
	const uint64_t due = account->seq + 1;

	if (item->view.seq == due && !account->closed)
		return 0;
	return account_lie(err, item,
			   "nothing is said to be known behind record %" PRIu64 ", where %" PRIu64
			   " was due%s",
			   item->view.seq - 1, due, account->closed ? " behind CLOSED" : "");
}

/* ---- records ----------------------------------------------------------- */

static int check_seq(struct account *account, const struct archive_item *item,
		     struct r3ring_error *err)
{
	uint64_t seq = item->view.seq;
	uint64_t due = account->seq + 1;

	account->seq = seq;
	if (account->unended)
		return account_lie(err, item,
				   "record %" PRIu64 " behind a gap without end in its generation",
				   seq);
	if (account->closed)
		return account_lie(err, item, "record %" PRIu64 " behind CLOSED", seq);
	if (seq == due)
		return 0;
	account_interrupt(account);
	if (seq > due)
		return account_lie(err, item,
				   "records %" PRIu64 " to %" PRIu64
				   " are missing, and no gap says so",
				   due, seq - 1);
	return account_lie(err, item, "record %" PRIu64 " again, where %" PRIu64 " was due", seq,
			   due);
}

/* How much the running total of units rises with a record; UINT64_MAX: not known. */
static uint64_t units_of(const struct archive_item *item, const struct r3ring_record *record)
{
	if (item->view.type != R3RING_LAYER)
		return 0;
	return record ? record->u.layer.head.valid_rows : UINT64_MAX;
}

static int check_units(struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	uint64_t before = account->units;
	uint64_t more = units_of(item, record);
	bool known = account->units_known;

	account->units = item->view.units;
	account->units_known = true;
	if (!known)
		return 0;
	if (item->view.units < before || (more != UINT64_MAX && item->view.units - before != more))
		return account_lie(err, item,
				   "record %" PRIu64 ": %" PRIu64 " units where there were %" PRIu64
				   " before it",
				   item->view.seq, item->view.units, before);
	return 0;
}

/* What a daemon may say first in the ring of one that died: what is lost, or the end of a request
 * that it lost sight of. */
static bool adopts(const struct archive_item *item, const struct r3ring_record *record)
{
	return item->view.type == R3RING_LOST ||
	       (record && record->type == R3RING_REQUEST &&
		record->u.request.head.event == R3RING_REQUEST_END &&
		record->u.request.head.reason == R3RING_END_UNKNOWN);
}

/* A keyframe is followed by as many repeated records as it says, and by nothing else. */
static int check_repeats(struct account *account, const struct archive_item *item,
			 const struct r3ring_record *record, struct r3ring_error *err)
{
	bool repeated = item->view.flags & R3RING_DESC_REPEATED;
	uint32_t due = account->repeats;

	if (repeated == (due > 0) || !account->steps_known) {
		account->repeats -= due > 0;
		return 0;
	}
	account->repeats = 0;
	/* A daemon died in the middle of its keyframe. */
	if (due && adopts(item, record))
		return 0;
	if (due)
		return account_lie(err, item, "record %" PRIu64 ": %u of a keyframe were due",
				   item->view.seq, due);
	return account_lie(err, item, "record %" PRIu64 " is repeated, but by no keyframe",
			   item->view.seq);
}

static int take_schema(struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_schema_record *head = &record->u.schema.head;
	bool first = !account->schema.layers;
	bool same = !first && head->layers == account->schema.layers &&
		    head->experts == account->schema.experts &&
		    head->top_k == account->schema.top_k;
	struct r3ring_layer_entry *layers;
	uint64_t *rows;

	if (same)
		return 0;
	layers = calloc(head->layers + 1u, sizeof(*layers));
	rows = calloc(head->layers + 1u, sizeof(*rows));
	if (!layers || !rows) {
		free(layers);
		free(rows);
		return r3ring_error_set(err, -ENOMEM, "no memory for a schema");
	}
	memcpy(layers, record->u.schema.layers, head->layers * sizeof(*layers));
	free(account->layers);
	free(account->step.layer_rows);
	account->layers = layers;
	account->step.layer_rows = rows;
	account->step.head.step = 0;
	account->schema = *head;
	return first ? 0 : account_lie(err, item, "another model in the same generation");
}

static int take_decoded(struct account *account, const struct archive_item *item,
			const struct r3ring_record *record, struct r3ring_error *err)
{
	switch (record->type) {
	case R3RING_SCHEMA:
		return take_schema(account, item, record, err);
	case R3RING_STEP:
		return account_take_step(account, item, record, err);
	case R3RING_LAYER:
		return account_take_layer(account, item, record, err);
	case R3RING_STEP_END:
		return account_take_end(account, item, record, err);
	case R3RING_LOST:
		account_take_lost(account, &record->u.lost);
		return 0;
	case R3RING_KEYFRAME:
		account->repeats = record->u.keyframe.records;
		return account_take_keyframe(account, item, &record->u.keyframe, err);
	case R3RING_CLOSED:
		account->closed = true;
		return 0;
	default:
		return 0;
	}
}

static int take_record(struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	int code;

	if (item->repeated)
		return record && record->type == R3RING_SCHEMA
			       ? take_schema(account, item, record, err)
			       : 0;
	code = check_seq(account, item, err);
	if (!code)
		code = check_units(account, item, record, err);
	if (!code)
		code = check_repeats(account, item, record, err);
	if (code)
		return code;
	if (record)
		return take_decoded(account, item, record, err);
	account->totals.seen.layer_records += item->view.type == R3RING_LAYER;
	account->totals.skipped |= item->kind == ARCHIVE_SKIPPED;
	return 0;
}

int account_take(struct account *account, const struct archive_item *item,
		 const struct r3ring_record *record, struct r3ring_error *err)
{
	switch (item->kind) {
	case ARCHIVE_GENERATION:
		return take_generation(account, item, err);
	case ARCHIVE_GAP:
		return take_gap(account, item, err);
	case ARCHIVE_RECORD:
	case ARCHIVE_SKIPPED:
		return take_record(account, item, record, err);
	case ARCHIVE_UNFOLLOWED:
		return check_unfollowed(account, item, err);
	default:
		return 0;
	}
}
