/* SPDX-License-Identifier: Apache-2.0 */
/* An assembler whose rows are counted instead of being given out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/options.h"
#include "consumer/signature/signature.h"

#define REQUESTS_DEFAULT 4096u
#define ENDED_DEFAULT 1024u
#define BYTES_DEFAULT (UINT64_C(512) << 20)
#define KEY_BYTES_DEFAULT (UINT64_C(256) << 20)

static int options_take(struct r3ring_signatures_options *to,
			const struct r3ring_signatures_options *from, struct r3ring_error *err)
{
	int r = options_copy(to, from, sizeof(*to), err);

	if (r < 0)
		return r;
	if (!to->max_requests)
		to->max_requests = REQUESTS_DEFAULT;
	if (!to->max_ended)
		to->max_ended = ENDED_DEFAULT;
	if (!to->max_bytes)
		to->max_bytes = BYTES_DEFAULT;
	if (!to->max_key_bytes)
		to->max_key_bytes = KEY_BYTES_DEFAULT;
	return 0;
}

static int assembler_make(struct r3ring_signatures *signatures, struct r3ring_error *err)
{
	const struct r3ring_assembler_options options = {
		.size = sizeof(options),
		.max_bytes = signatures->options.max_key_bytes,
		.max_keys = signatures->options.max_keys,
		.late_steps = signatures->options.late_steps,
		.min_ends = signatures->options.min_ends,
	};
	int r = r3ring_assembler_create(&signatures->assembler, &options, err);

	if (r == 0)
		signatures->assembler->onlooker = (struct onlooker){
			.ctx = signatures,
			.begun = signature_begun,
			.placed = signature_row,
			.over = signature_over,
		};
	return r;
}

int r3ring_signatures_create(struct r3ring_signatures **signatures,
			     const struct r3ring_signatures_options *options,
			     struct r3ring_error *err)
{
	struct r3ring_signatures *created;
	int r;

	if (!signatures)
		return r3ring_error_set(err, -EINVAL,
					"r3ring_signatures_create: signatures is NULL");
	created = calloc(1, sizeof(*created));
	if (!created)
		return r3ring_error_set(err, -ENOMEM, "out of memory");
	r = options_take(&created->options, options, err);
	if (r < 0) {
		free(created);
		return r;
	}
	created->slot = calloc(created->options.max_requests, sizeof(*created->slot));
	created->hash = calloc(created->options.max_requests, sizeof(*created->hash));
	if (!created->slot || !created->hash)
		r = r3ring_error_set(err, -ENOMEM, "no memory for %u signatures",
				     created->options.max_requests);
	if (r == 0)
		r = assembler_make(created, err);
	if (r < 0)
		r3ring_signatures_destroy(created);
	else
		*signatures = created;
	return r;
}

void r3ring_signatures_destroy(struct r3ring_signatures *signatures)
{
	if (!signatures)
		return;
	r3ring_assembler_destroy(signatures->assembler);
	slots_free(signatures);
	for (uint32_t i = 0; i < signatures->stages; i++)
		free(signatures->stage[i].layer);
	free(signatures->passes.pass);
	free(signatures->seq);
	free(signatures->generation);
	r3ring_signature_free(signatures->ended);
	free(signatures);
}

/* ---- feeding --------------------------------------------------------------------- */

static int grow(uint64_t **table, uint32_t count)
{
	uint64_t *longer = realloc(*table, (count + 1) * sizeof(*longer));

	if (!longer)
		return -ENOMEM;
	longer[count] = 0;
	*table = longer;
	return 0;
}

int r3ring_signatures_channel(struct r3ring_signatures *signatures, const char *name)
{
	int channel;

	if (grow(&signatures->seq, signatures->channels) < 0 ||
	    grow(&signatures->generation, signatures->channels) < 0)
		return -ENOMEM;
	channel = r3ring_assembler_channel(signatures->assembler, name);
	if (channel >= 0 && (uint32_t)channel == signatures->channels)
		signatures->channels++;
	return channel;
}

/* Numbers that are missing between two records of a generation; a generation that is
 * followed begins with its first. */
static void notice_gap(struct r3ring_signatures *signatures, uint32_t channel,
		       const struct r3ring_view *view)
{
	uint64_t expected = view->generation == signatures->generation[channel]
				    ? signatures->seq[channel] + 1
				    : 1;

	if (signatures->seq[channel] && view->seq != expected)
		r3ring_assembler_gap(signatures->assembler, channel);
	signatures->seq[channel] = view->seq;
	signatures->generation[channel] = view->generation;
}

void r3ring_signatures_gap(struct r3ring_signatures *signatures, uint32_t channel)
{
	if (channel < signatures->channels)
		r3ring_assembler_gap(signatures->assembler, channel);
}

int r3ring_signatures_feed(struct r3ring_signatures *signatures, uint32_t channel,
			   const struct r3ring_view *view, const struct r3ring_record *record)
{
	if (channel >= signatures->channels)
		return -EINVAL;
	notice_gap(signatures, channel, view);
	if (record->type == R3RING_STEP_END)
		signatures->now_ns = record->u.step_end.head.publish_ns;
	return r3ring_assembler_feed(signatures->assembler, channel, view, record);
}

void r3ring_signatures_get_stats(const struct r3ring_signatures *signatures,
				 struct r3ring_signatures_stats *stats)
{
	struct r3ring_assembler_stats assembled;

	r3ring_assembler_get_stats(signatures->assembler, &assembled);
	*stats = signatures->stats;
	stats->rows_unattributed = assembled.rows_unattributed;
	stats->keys = assembled.keys;
	stats->keys_forgotten = assembled.keys_forgotten;
	stats->key_bytes = assembled.bytes;
}
