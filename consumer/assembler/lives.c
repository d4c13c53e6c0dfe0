/* SPDX-License-Identifier: Apache-2.0 */
/* Requests begin, go on in other attempts, channels and generations, and end. */
#include <errno.h>
#include <string.h>

#include <utlist.h>

#include "consumer/assembler/assembler.h"
#include "consumer/assembler/gone.h"

/* ---- begin -------------------------------------------------------------- */

/* Something is said of the request. */
static void request_touch(struct r3ring_assembler *assembler, struct request *request)
{
	request->touched = ++assembler->touches;
}

static struct request *request_new(struct r3ring_assembler *assembler,
				   const struct r3ring_record *record)
{
	struct request *request = request_create(record, &assembler->memory);

	if (!request)
		return NULL;
	if (request_enlist(assembler, request)) {
		request_free(request);
		return NULL;
	}
	DL_APPEND(assembler->all, request);
	request_touch(assembler, request);
	request->begun = request->touched;
	assembler->stats.requests_live++;
	if (assembler->onlooker.ctx)
		assembler->onlooker.begun(
			assembler->onlooker.ctx,
			requests_of(assembler, request->text[0], strlen(request->text[0])));
	return request;
}

/* The channel begins another one of the id. */
static void request_leave(struct request *request, struct channel *channel)
{
	struct part *part = part_on(request, channel);
	const bool lived = part->live;

	part_delist(channel, part);
	if (lived)
		part_tear(part, channel, R3RING_MISSING_GAP);
	part->left = true;
}

/* Other ranks of its engine may be behind it. */
static void request_go_if_left(struct r3ring_assembler *assembler, struct request *request)
{
	if (assembler->options.min_ends || all_have_told(assembler, request))
		request_let_go(assembler, request, 0);
}

/* @left: what the channel told of before under the id, where this is another one; or NULL. */
static struct request *request_of(struct r3ring_assembler *assembler, struct channel *channel,
				  const struct item *item, struct request **left)
{
	struct request *known = request_known(assembler, channel, &item->record), *request = known;
	bool returned = false;

	*left = NULL;
	if (!known || request_is_another(known, channel, item)) {
		request = request_to_join(assembler, channel, &item->record, known);
		if (known)
			request_leave(known, channel);
		*left = known;
	}
	if (!request) {
		returned = gone_return(assembler, channel, &item->record);
		request = request_new(assembler, &item->record);
	}
	/* How often a keyframe says one again that was left before is its channel's own. */
	channel->uncounted |= (*left || returned) && (item->repeated || item->carried);
	if (request)
		request_note_twins(assembler, request, channel);
	return request;
}

/* What it ran last may not have been seen. */
static void part_open(struct part *part)
{
	struct attempt *attempt = part_newest(part);

	if (attempt)
		attempt->lost = attempt->touched;
}

/* Whether the channel, of which nothing was lost since, is yet to tell of the end of what the part ran last. */
static bool runs_yet(const struct part *part, const struct channel *channel)
{
	const struct attempt *newest = part_newest(part);

	return newest && part->live && part->generation == channel->generation && !newest->ended &&
	       !newest->torn;
}

static struct attempt *attempt_begin(struct r3ring_assembler *assembler, struct channel *channel,
				     struct part *part, const struct item *item)
{
	const uint16_t number = item->record.u.request.head.attempt;
	/* Known only as one that is said again: what it did before was not seen, or not all. */
	const bool known = part_find_attempt(part, number) && !(item->carried && channel->cut);
	const bool unseen = !channel->ready || ((item->repeated || item->carried) && !known);
	const bool told = part_is_told(part, channel, &item->record.u.request.head);
	const bool early = runs_yet(part, channel);
	struct attempt *attempt = part_attempt(part, number);

	if (attempt && !attempt->begun) {
		attempt->begun = ++assembler->touches;
		attempt->guessed = !told;
		attempt->early = early;
	}
	if (unseen)
		part_tear(part, channel, R3RING_MISSING_GAP);
	if (unseen && attempt)
		attempt->renewed |= !channel->steady;
	channel->lossy |= unseen;
	return attempt;
}

static int part_begin(struct r3ring_assembler *assembler, struct channel *channel,
		      struct part *part, const struct item *item)
{
	const struct r3ring_request_record *head = &item->record.u.request.head;
	struct attempt *attempt;
	struct part *other;

	part->unsure |= channel->uncounted && !part->attempts;
	if (!part->attempts && ended_before(channel, part->request->text[0]))
		part->request->has_others = true;
	attempt = attempt_begin(assembler, channel, part, item);
	part->keyframe = item->keyframe;
	part->bound_ns = channel->schema.bound_since_ns;
	part->generation = channel->generation;
	part->former = former_of(channel);
	part->final = false;
	part->guessed = false;
	if (!attempt)
		return -ENOMEM;
	attempt->prompt = head->prompt_tokens;
	attempt->handle = head->handle;
	attempt->first = r3ring_request_first(head);
	/* Steps of a generation that goes on are numbered from where its channel was then. */
	attempt->told_apart |= generation_goes_on(channel);
	attempt->run = channel->runs ? channel->runs - 1 : 0;
	request_touch(assembler, part->request);
	requests_doubt(assembler, part->request);
	if (part->live && part->handle == head->handle && part_of(channel, head->handle) == part)
		return 0;
	part_delist(channel, part);
	/* A handle said of two requests is neither's any more. */
	other = part_of(channel, head->handle);
	if (other)
		part_delist(channel, other);
	part->handle = head->handle;
	return part_enlist(channel, part);
}

int request_begin(struct r3ring_assembler *assembler, struct channel *channel,
		  const struct item *item)
{
	struct request *request, *left;
	struct part *part;
	int r = -ENOMEM;

	runs_follow(channel, false);
	request = request_of(assembler, channel, item, &left);
	part = request ? request_part(request, channel->index) : NULL;
	if (part)
		r = part_begin(assembler, channel, part, item);
	else
		channel->uncounted = true;
	/* What begins may show that what was left has what is another's. */
	if (left)
		request_go_if_left(assembler, left);
	return r;
}

/* ---- end ---------------------------------------------------------------- */

static void part_over(struct r3ring_assembler *assembler, struct channel *channel,
		      struct part *part, bool final)
{
	struct request *request = part->request;

	part_delist(channel, part);
	part->final = final;
	request_give_if_over(assembler, request);
}

/* Its daemon did: the engine may have run more of it. */
static void part_lose_sight(struct part *part, struct channel *channel)
{
	channel->lossy = true;
	channel->uncounted = true;
	part_tear(part, channel, R3RING_CAUSE_DAEMON_RESTART);
}

void request_end(struct r3ring_assembler *assembler, struct channel *channel,
		 const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct part *part = part_of(channel, head->handle);
	struct attempt *attempt;

	if (!part)
		return;
	attempt = part_attempt(part, head->attempt);
	if (attempt) {
		attempt->accepted = head->accepted_tokens;
		attempt->ended = true;
		attempt->given_up = head->reason != R3RING_END_PREEMPTED &&
				    head->accepted_tokens == R3RING_UNKNOWN_U32;
	}
	if (head->reason == R3RING_END_UNKNOWN)
		part_lose_sight(part, channel);
	else if (head->reason != R3RING_END_PREEMPTED && !(attempt && attempt->given_up))
		ended_note(channel, part->request->text[0]);
	part->request->aborted |= head->reason == R3RING_END_ABORTED;
	request_touch(assembler, part->request);
	part_over(assembler, channel, part, head->reason != R3RING_END_PREEMPTED);
}

/* ---- keyframes, generations, gaps --------------------------------------- */

/* Parts that nobody names any more have ended, be it in a gap or with a generation. */
static void suspended_over(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->suspended, part, next) {
		part->guessed = true;
		part_over(assembler, channel, part, true);
	}
}

void requests_keyframe(struct r3ring_assembler *assembler, struct channel *channel,
		       uint64_t keyframe)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->parts, part, next) {
		if (part->keyframe != keyframe) {
			part->guessed = true;
			part_open(part);
			part_over(assembler, channel, part, true);
		}
	}
	suspended_over(assembler, channel);
}

void requests_suspend(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	/* Of two generations ago: no keyframe of the last one named them. */
	suspended_over(assembler, channel);
	HASH_ITER (hh, channel->parts, part, next) {
		part_open(part);
		/* What the generation told last was not read. */
		if (channel->cut && !part->gap)
			part->gap = R3RING_MISSING_GAP;
		channel->lossy = true;
	}
	channel->suspended = channel->parts;
	channel->parts = NULL;
	channel->ordered = 0;
}

void requests_unfollowed(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->parts, part, next) {
		struct r3ring_record end = {.type = R3RING_REQUEST};

		end.u.request.head = (struct r3ring_request_record){
			.handle = part->handle,
			.accepted_tokens = R3RING_UNKNOWN_U32,
			.attempt = part->attempts ? part_newest(part)->number : 0,
			.event = R3RING_REQUEST_END,
			.reason = R3RING_END_UNKNOWN,
		};
		request_end(assembler, channel, &end);
	}
}

void part_tear(struct part *part, const struct channel *channel, uint8_t cause)
{
	struct attempt *attempt = part_newest(part);

	part->gap = cause;
	part_open(part);
	if (!attempt)
		return;
	attempt->torn = true;
	attempt->torn_step = channel->settled_step;
	attempt->torn_era = channel->era;
}

void requests_gap(struct channel *channel, uint8_t cause)
{
	struct part *part, *next;

	channel->lossy = true;
	channel->uncounted = true;
	HASH_ITER (hh, channel->parts, part, next) {
		part_tear(part, channel, cause);
	}
	HASH_ITER (hh, channel->suspended, part, next) {
		part_tear(part, channel, cause);
	}
}

/* ---- the end of all ----------------------------------------------------- */

static int by_touch(const struct request *one, const struct request *other)
{
	const uint64_t its = request_touched_at(one), others = request_touched_at(other);

	return (its > others) - (its < others);
}

void requests_flush(struct r3ring_assembler *assembler)
{
	assembler->flushing = true;
	DL_SORT(assembler->all, by_touch);
	while (assembler->all)
		request_let_go(assembler, assembler->all, 0);
	assembler->flushing = false;
	gone_forget(assembler);
}
