/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/account.h"
#include "archive/count.h"
#include "archive/reader_internal.h"
#include "archive/verify_index.h"

#define PROGRESS_ITEMS 64u

struct verifying {
	const struct archive_verify_hooks *hooks;
	struct archive_verified *verified;
	struct archive_reader *reader;
	struct verify_index *index;
	struct archive_ranks ranks;
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
		[ARCHIVE_GAP_UNSYNCED] = "unsynced", [ARCHIVE_GAP_DAMAGED] = "damaged",
	};

	return cause && cause < sizeof(names) / sizeof(names[0]) ? names[cause] : "?";
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
	archive_count(v->verified, item, decoded);
	archive_losses_take(&account->losses, item, decoded, true);
	if (decoded)
		archive_again_take(&account->again, item, decoded, &v->verified->again);
	if (decoded && decoded->type == R3RING_SCHEMA &&
	    archive_ranks_note(&v->ranks, item->name, &decoded->u.schema.head))
		return r3ring_error_set(v->err, -ENOMEM, "no memory for one more rank");
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

	if (item->kind != ARCHIVE_RESUMED)
		code = take_channels_entry(v, item);
	else
		archive_count(v->verified, item, NULL);
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
	verify_index_damage(v->index);
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

void archive_verified_describe(struct archive_verified *to, const struct archive_reader *reader)
{
	struct archive_progress end = archive_reader_progress(reader);
	struct archive_extent extent;

	archive_reader_get_extent(reader, &extent);
	memcpy(to->uuid, extent.uuid, sizeof(to->uuid));
	to->first_segment = extent.first_segment;
	to->lacks_beginning = extent.lacks_beginning;
	to->last_segment = extent.last_segment;
	to->segments = reader->listing.count;
	to->bytes = extent.bytes;
	to->blocks = end.blocks;
	to->unread = reader->unread;
	to->last_ns = end.last_ns;
	to->being_written = archive_is_being_written(reader->dir_fd);
}

static int verify(struct verifying *v, const char *dir)
{
	int code = archive_reader_open(&v->reader, dir, v->err);

	if (code)
		return code;
	v->reader->keep_repeated = true;
	archive_verified_describe(v->verified, v->reader);
	v->index = verify_index_open(dir, v->reader, v->hooks, v->verified);
	if (!v->index)
		return r3ring_error_set(v->err, -ENOMEM, "no memory to verify an archive");
	code = read_all(v);
	archive_verified_describe(v->verified, v->reader);
	v->verified->channels = v->count;
	archive_ranks_absent(&v->ranks, &v->verified->absent);
	for (uint32_t i = 0; i < v->count; i++)
		lost_account_add(&v->verified->lost, &v->accounts[i].losses.of.account);
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
	archive_ranks_free(&v.ranks);
	return code;
}
