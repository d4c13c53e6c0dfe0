/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/account.h"
#include "archive/reader_internal.h"
#include "archive/verify_index.h"

#define PROGRESS_ITEMS 4096u

struct verifying {
	const struct archive_verify_hooks *hooks;
	struct archive_verified *verified;
	struct archive_reader *reader;
	struct verify_index *index;
	struct account *accounts; /* [count], by the reader's channel numbers */
	uint32_t count;
	uint64_t items;
	struct r3ring_error *err;
};

static void tell(struct verifying *v, const char *text)
{
	v->verified->problems++;
	v->hooks->problem(v->hooks->ctx, text);
}

const char *archive_gap_cause_name(uint32_t cause)
{
	static const char *const names[] = {
		[ARCHIVE_GAP_LATE] = "late",         [ARCHIVE_GAP_OVERRUN] = "overrun",
		[ARCHIVE_GAP_CORRUPT] = "corrupt",   [ARCHIVE_GAP_STOPPED] = "stopped",
		[ARCHIVE_GAP_UNSYNCED] = "unsynced",
	};

	return cause && cause < sizeof(names) / sizeof(names[0]) ? names[cause] : "?";
}

/* ---- what there is ----------------------------------------------------- */

static void count_decoded(struct archive_verified *to, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_STEP:
		to->steps++;
		to->steps_dropped += (record->u.step.head.flags & R3RING_STEP_DROPPED) != 0;
		to->rows += r3ring_step_valid_rows(&record->u.step.head);
		break;
	case R3RING_LAYER:
		to->layer_rows += record->u.layer.head.valid_rows;
		break;
	case R3RING_STEP_END:
		to->steps_complete += record->u.step_end.head.status == R3RING_STEP_COMPLETE;
		to->steps_partial += record->u.step_end.head.status == R3RING_STEP_PARTIAL;
		break;
	case R3RING_REQUEST:
		to->requests_begun += record->u.request.head.event == R3RING_REQUEST_BEGIN;
		to->requests_ended += record->u.request.head.event == R3RING_REQUEST_END;
		break;
	case R3RING_LOST:
		to->lost_steps[record->u.lost.cause] += record->u.lost.steps;
		to->lost_rows[record->u.lost.cause] += record->u.lost.rows;
		break;
	default:
		break;
	}
}

static void count_record(struct archive_verified *to, const struct archive_item *item,
			 const struct r3ring_record *record)
{
	uint16_t type = item->view.type;

	if (item->repeated)
		return;
	to->ring_bytes += item->view.len;
	to->skipped += item->kind == ARCHIVE_SKIPPED;
	if (item->kind == ARCHIVE_RECORD)
		to->records[type < R3RING_RECORD_TYPES ? type : 0]++;
	if (record && !(item->view.flags & R3RING_DESC_REPEATED))
		count_decoded(to, record);
}

static void count(struct archive_verified *to, const struct archive_item *item)
{
	if (!to->first_ns)
		to->first_ns = item->time_ns;
	switch (item->kind) {
	case ARCHIVE_GAP:
		to->gaps[item->u.gap.cause]++;
		to->gap_records[item->u.gap.cause] += item->u.gap.lost;
		to->gaps_unsized += !item->u.gap.lost;
		break;
	case ARCHIVE_RESUMED:
		to->resumed++;
		to->cut_bytes += item->u.resumed.cut_bytes;
		break;
	default:
		break;
	}
}

/* ---- accounts ---------------------------------------------------------- */

static struct account *account_of(struct verifying *v, const struct archive_item *item)
{
	const struct archive_segment_head *head = &v->reader->segment.head;

	if (item->channel >= v->count) {
		uint32_t wanted = item->channel + 1u;
		struct account *grown = reallocarray(v->accounts, wanted, sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + v->count, 0, (wanted - v->count) * sizeof(*grown));
		v->accounts = grown;
		v->count = wanted;
	}
	v->accounts[item->channel].layer_first = head->layer_first;
	v->accounts[item->channel].layer_end = head->layer_end;
	return &v->accounts[item->channel];
}

/* Returns the record, NULL where there is none; what cannot be decoded is told. */
static const struct r3ring_record *decode(struct verifying *v, struct account *account,
					  const struct archive_item *item,
					  struct r3ring_record *record)
{
	struct r3ring_error why, text;
	int code;

	if (item->kind != ARCHIVE_RECORD)
		return NULL;
	code = r3ring_record_decode(record, item->view.type, item->view.data, item->view.len, &why);
	if (!code)
		return record;
	if (code != -ENOTSUP) {
		account_lie(&text, item, "record %" PRIu64 ": %s", item->view.seq, why.text);
		tell(v, text.text);
		account_interrupt(account);
	}
	return NULL;
}

/* One that goes on from a segment that is not here counts, too. */
static bool is_new_generation(const struct account *account, const struct archive_item *item)
{
	return item->kind == ARCHIVE_GENERATION &&
	       (!account->said ||
		memcmp(account->uuid, item->u.generation.uuid, sizeof(account->uuid)) != 0);
}

static int take_channels_entry(struct verifying *v, const struct archive_item *item)
{
	struct account *account = account_of(v, item);
	const struct r3ring_record *decoded;
	struct r3ring_record record;
	struct r3ring_error why = {0};
	int code;

	if (!account)
		return r3ring_error_set(v->err, -ENOMEM, "no memory for one more channel");
	decoded = decode(v, account, item, &record);
	v->verified->generations += is_new_generation(account, item);
	if (item->kind == ARCHIVE_RECORD || item->kind == ARCHIVE_SKIPPED)
		count_record(v->verified, item, decoded);
	code = account_take(account, item, decoded, &why);
	if (code < 0)
		return r3ring_error_set(v->err, code, "%s", why.text);
	if (code)
		tell(v, why.text);
	return 0;
}

static int take(struct verifying *v, const struct archive_item *item)
{
	int code = 0;

	count(v->verified, item);
	if (item->kind != ARCHIVE_RESUMED)
		code = take_channels_entry(v, item);
	if (!code)
		code = verify_index_take(v->index, item);
	if (code == -ENOMEM)
		return r3ring_error_set(v->err, code, "no memory to verify the index");
	if (v->hooks->progress && ++v->items % PROGRESS_ITEMS == 0)
		v->hooks->progress(v->hooks->ctx, archive_reader_passed(v->reader),
				   v->verified->bytes);
	return code;
}

/* ---- the whole --------------------------------------------------------- */

static void take_damage(struct verifying *v, const char *text)
{
	tell(v, text);
	for (uint32_t i = 0; i < v->count; i++)
		account_interrupt(&v->accounts[i]);
}

static int read_all(struct verifying *v)
{
	struct archive_item item;
	struct r3ring_error why = {0};
	int code;

	for (;;) {
		code = archive_reader_next(v->reader, &item, &why);
		if (code == -EBADMSG)
			take_damage(v, why.text);
		else if (code == 1)
			code = take(v, &item);
		else
			return code ? r3ring_error_set(v->err, code, "%s", why.text) : 0;
		if (code && code != -EBADMSG)
			return code;
	}
}

static void describe(struct verifying *v)
{
	const struct archive_reader *reader = v->reader;
	struct archive_progress end = archive_reader_progress(reader);
	struct archive_verified *to = v->verified;
	struct archive_extent extent;

	archive_reader_get_extent(reader, &extent);
	memcpy(to->uuid, extent.uuid, sizeof(to->uuid));
	to->first_segment = extent.first_segment;
	to->last_segment = extent.last_segment;
	to->segments = reader->listing.count;
	to->bytes = extent.bytes;
	to->blocks = end.blocks;
	to->last_ns = end.last_ns;
	to->channels = v->count;
	to->being_written = archive_is_being_written(reader->dir_fd);
}

static int verify(struct verifying *v, const char *dir)
{
	int code = archive_reader_open(&v->reader, dir, v->err);

	if (code)
		return code;
	v->reader->keep_repeated = true;
	describe(v);
	v->index = verify_index_open(dir, v->reader, v->hooks, v->verified);
	if (!v->index)
		return r3ring_error_set(v->err, -ENOMEM, "no memory to verify an archive");
	code = read_all(v);
	describe(v);
	return code ? code : verify_index_finish(v->index);
}

int archive_verify(const char *dir, const struct archive_verify_hooks *hooks,
		   struct archive_verified *verified, struct r3ring_error *err)
{
	struct verifying v = {.hooks = hooks, .verified = verified, .err = err};
	int code;

	*verified = (struct archive_verified){0};
	code = verify(&v, dir);
	verify_index_close(v.index);
	archive_reader_close(v.reader);
	for (uint32_t i = 0; i < v.count; i++)
		account_free(&v.accounts[i]);
	free(v.accounts);
	return code;
}
