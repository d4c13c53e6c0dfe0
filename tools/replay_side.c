/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: requests, maps, copies of keys, and spans that came late. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay_channel.h"

#define RETRY_MS 1    /* where a queue is full */
#define RETRIES 10000 /* until it is given up */

/* Whether to call once more. */
static bool try_again(const struct replay_channel *channel, long code, unsigned int *tries)
{
	if (code != -ENOBUFS || replay_stopped(channel) || ++*tries > RETRIES)
		return false;
	poll(NULL, 0, RETRY_MS);
	return true;
}

/* A call that was refused is told; the rest goes on. */
static int judge(const struct replay_channel *channel, const char *what, long code)
{
	char text[R3RING_ERROR_TEXT + 256];

	if (code >= 0 || replay_stopped(channel))
		return 0;
	if (code == -ESTALE || code == -EIO || code == -ENOMEM)
		return replay_fail(channel, (int)code);
	channel->shared->report->refused++;
	snprintf(text, sizeof(text), "%s: %s is not replayed: %s", channel->name, what,
		 r3ring_producer_error(channel->producer));
	channel->shared->hooks->note(channel->shared->hooks->ctx, text);
	return 0;
}

/* ---- requests ---------------------------------------------------------- */

static bool is_wanted(const struct replay_channel *channel, const char *id, size_t len)
{
	const struct replay_options *options = channel->shared->options;

	for (uint32_t i = 0; i < options->request_count; i++) {
		if (strlen(options->requests[i]) != len ||
		    memcmp(options->requests[i], id, len) != 0)
			continue;
		channel->shared->met[i] = true;
		return true;
	}
	return !options->request_count;
}

struct request_texts {
	char id[R3RING_TEXT_ID_MAX + 1], session[R3RING_TEXT_ID_MAX + 1];
	char turn[R3RING_TEXT_ID_MAX + 1], sample[R3RING_TEXT_ID_MAX + 1];
};

static const char *copy_text(char *to, const char *text, uint16_t len)
{
	if (!len)
		return NULL;
	memcpy(to, text, len);
	to[len] = '\0';
	return to;
}

/* The producer knows nothing of what the archive lost, so it is not left to find it by the id. */
static int64_t first_handle(const struct replay_channel *channel,
			    const struct r3ring_request_record *head)
{
	const uint64_t first = r3ring_request_first(head);

	if (!head->attempt)
		return 0;
	if (!first || !replay_handle_known(channel->handles, first))
		return R3RING_FIRST_UNKNOWN;
	return (int64_t)replay_handle(channel->handles, first);
}

static int begin_request(struct replay_channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct request_texts texts;
	const struct r3ring_request request = {
		.size = sizeof(request),
		.id = copy_text(texts.id, record->u.request.id, head->id_len),
		.session = copy_text(texts.session, record->u.request.session, head->session_len),
		.turn = copy_text(texts.turn, record->u.request.turn, head->turn_len),
		.sample = copy_text(texts.sample, record->u.request.sample, head->sample_len),
		.prompt_tokens = head->prompt_tokens,
		.attempt = head->attempt,
		.first = first_handle(channel, head),
	};
	unsigned int tries = 0;
	int64_t handle;

	if (!is_wanted(channel, record->u.request.id, head->id_len))
		return 0;
	do {
		handle = r3ring_request_begin(channel->producer, &request);
	} while (try_again(channel, handle, &tries));
	if (handle < 0)
		return judge(channel, "a request", handle);
	channel->shared->report->requests++;
	replay_handle_remove(&channel->handles, head->handle);
	if (replay_handle_add(&channel->handles, head->handle, (uint64_t)handle))
		return replay_no_memory(channel);
	return 0;
}

static int end_request(struct replay_channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	unsigned int tries = 0;
	int code;

	/* It has none of its own, as those that are open at the end. */
	if (!replay_handle_known(channel->handles, head->handle) ||
	    head->reason == R3RING_END_UNKNOWN)
		return 0;
	do {
		code = r3ring_request_end(
			channel->producer, (int64_t)replay_handle(channel->handles, head->handle),
			(enum r3ring_end_reason)head->reason, head->attempt, head->accepted_tokens);
	} while (try_again(channel, code, &tries));
	replay_handle_end(channel->handles, head->handle);
	return judge(channel, "the end of a request", code);
}

/* ---- maps, keys, spans ------------------------------------------------- */

/* Its first step by the new numbers. */
static int send_map(struct replay_channel *channel, const struct r3ring_record *record)
{
	struct r3ring_eplb_record head = record->u.eplb.head;
	unsigned int tries = 0;
	int code;

	if (head.first_step > channel->newest)
		head.first_step += channel->number - channel->newest;
	else
		head.first_step = channel->number + 1;
	do {
		code = r3ring_eplb(channel->producer, &head, record->u.eplb.map);
	} while (try_again(channel, code, &tries));
	return judge(channel, "an EPLB map", code);
}

static int send_copies(struct replay_channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_key_copy_record *head = &record->u.key_copy.head;
	unsigned int tries = 0;
	int code;

	do {
		code = r3ring_key_copy(channel->producer, head->key_kind, head->tokens_per_key,
				       record->u.key_copy.pairs, head->pairs);
	} while (try_again(channel, code, &tries));
	return judge(channel, "a copy of keys", code);
}

static int send_spans(struct replay_channel *channel, const struct r3ring_record *record)
{
	uint64_t step = record->u.spans.head.step;
	const struct replay_number *known = &channel->numbers[step % REPLAY_NUMBERS];
	struct replay_step *late = &channel->late;
	struct r3ring_step map = {.size = sizeof(map)};
	unsigned int tries = 0;
	int code;

	if (known->old != step)
		return 0; /* of a step that was lost */
	late->span_count = late->key_count = 0;
	late->head.key_kind = late->head.tokens_per_key = 0;
	if (replay_step_spans(late, record) || replay_step_map(late, channel->handles, &map))
		return replay_no_memory(channel);
	do {
		code = r3ring_step_spans(channel->producer, (int64_t)known->new, &map);
	} while (try_again(channel, code, &tries));
	return judge(channel, "spans of an earlier step", code);
}

/* Who has ended is not told any more what was lost: that comes first. */
static int send_request(struct replay_channel *channel, const struct r3ring_record *record)
{
	int code;

	if (record->u.request.head.event == R3RING_REQUEST_BEGIN)
		return begin_request(channel, record);
	code = replay_lose_doubt(channel);
	return code ? code : end_request(channel, record);
}

static int send(struct replay_channel *channel, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_REQUEST:
		return send_request(channel, record);
	case R3RING_EPLB:
		return send_map(channel, record);
	case R3RING_KEY_COPY:
		return send_copies(channel, record);
	default:
		return send_spans(channel, record);
	}
}

/* ---- what waits for the open step -------------------------------------- */

static int keep(struct replay_channel *channel, const struct r3ring_view *view)
{
	struct replay_side *side = malloc(sizeof(*side) + view->len);

	if (!side)
		return replay_no_memory(channel);
	*side = (struct replay_side){.type = view->type, .len = view->len};
	memcpy(side->data, view->data, view->len);
	if (!channel->sides)
		channel->last_side = &channel->sides;
	*channel->last_side = side;
	channel->last_side = &side->next;
	return 0;
}

static void drop_first(struct replay_channel *channel)
{
	struct replay_side *side = channel->sides;

	channel->sides = side->next;
	free(side);
}

int replay_side_flush(struct replay_channel *channel)
{
	struct r3ring_record record;
	int code = 0;

	while (!code && channel->sides) {
		const struct replay_side *side = channel->sides;

		if (!r3ring_record_decode(&record, side->type, side->data, side->len, NULL))
			code = send(channel, &record);
		drop_first(channel);
	}
	return code;
}

void replay_side_free(struct replay_channel *channel)
{
	while (channel->sides)
		drop_first(channel);
}

/* What a keyframe says again was said before, unless it is a segment's and its channel is new
 * here. */
static bool is_known(const struct replay_channel *channel, const struct archive_item *item,
		     const struct r3ring_record *record)
{
	if (!(item->view.flags & R3RING_DESC_REPEATED))
		return false;
	if (record->type == R3RING_REQUEST)
		return replay_handle_known(channel->handles, record->u.request.head.handle);
	return !item->repeated;
}

int replay_side_take(struct replay_channel *channel, const struct archive_item *item,
		     const struct r3ring_record *record)
{
	if (is_known(channel, item, record))
		return 0;
	/* Known from a keyframe only: what it did before is not here. */
	if (item->view.flags & R3RING_DESC_REPEATED && record->type == R3RING_REQUEST &&
	    is_wanted(channel, record->u.request.id, record->u.request.head.id_len))
		replay_doubt(channel);
	return channel->step.head.step ? keep(channel, &item->view) : send(channel, record);
}
