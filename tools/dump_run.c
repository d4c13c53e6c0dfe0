/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring dump: the loop that reads channels and hands their records on.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "channel/clock.h"
#include "tools/commands.h"
#include "tools/dump.h"
#include "tools/dump_source.h"

#define LOOK_MS 100 /* how often it looks for a signal, its channel or the idle limit */
#define MS_NS 1000000ull
#define ALIGNMENT 64
#define FIRST_SEQ 1 /* of a channel: in front of what is left of it */

/* What is kept of each channel. */
struct dump_channel {
	struct r3ring_requests *requests;
	uint64_t lost;       /* told so far */
	uint64_t missed;     /* likewise, generations */
	uint64_t generation; /* where a dump that does not follow ends: */
	uint64_t end_seq;    /* before this record of that generation */
	bool over;
	bool closed; /* CLOSED was its last record */
};

struct dump_loop {
	const struct dump_options *options;
	const struct dump_form *form;
	FILE *out;
	struct r3ring_error *err;
	struct dump_source source;
	struct dump_channel *channels; /* as many as were met so far */
	uint32_t count;
	void *buffer;
	size_t capacity;
	uint64_t last_ns; /* when something last came; 0: nothing yet */
	struct dump_damage damage;
	bool doubted; /* whether what has come is all */
	bool request_table_full;
	bool layer_unknown; /* the model has none of that number */
	bool done;
};

/* ---- signals ---------------------------------------------------------- */

static uint32_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	r3ring_store_relaxed_u32(&interrupted, 1);
}

/* Who reads the pipe has had enough: that ends a dump in good order. */
static void on_broken_pipe(int signal_number)
{
	(void)signal_number;
	_exit(TOOL_DONE);
}

static void catch_signals(void)
{
	struct sigaction interrupt = {.sa_handler = on_interrupt,
				      .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	struct sigaction broken_pipe = {.sa_handler = on_broken_pipe};

	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	sigaction(SIGPIPE, &broken_pipe, NULL);
}

static bool was_interrupted(void)
{
	return r3ring_load_relaxed_u32(&interrupted) != 0;
}

/* ---- time ------------------------------------------------------------- */

/* Ends early when a signal comes. */
static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

static bool reads_on(const struct dump_options *options)
{
	return options->follow || options->until_idle_ns;
}

/* Nanoseconds until the idle limit; 0 when it is over. */
static uint64_t idle_left(const struct dump_loop *loop)
{
	uint64_t limit = loop->options->until_idle_ns;
	uint64_t idle;

	if (!limit || !loop->last_ns)
		return UINT64_MAX;
	idle = clock_now_ns() - loop->last_ns;
	return idle < limit ? limit - idle : 0;
}

/* ---- opening ---------------------------------------------------------- */

static int open_source(const struct dump_loop *loop, enum r3ring_cursor_start from, bool lossless,
		       struct dump_source *source)
{
	const struct dump_source_options options = {
		.name = loop->options->channel,
		.segment = loop->options->segment,
		.from = from,
		.seq = loop->options->from == R3RING_FROM_SEQ ? loop->options->seq : FIRST_SEQ,
		.lossless = lossless,
		.stay = !reads_on(loop->options),
	};

	return dump_source_open(source, &options, loop->err);
}

static bool names_many(const struct dump_options *options)
{
	return !options->segment && dump_names_instance(options->channel);
}

/* Where to begin in a channel that was waited for: all of it is new. What was overwritten
 * before it was found is a gap, unless the newest was asked for; of an instance, whose
 * channels have sequences of their own, it begins at what is left. */
static enum r3ring_cursor_start from_when_new(const struct dump_options *options)
{
	switch (options->from) {
	case R3RING_FROM_OLDEST:
		return names_many(options) ? R3RING_FROM_OLDEST : R3RING_FROM_SEQ;
	case R3RING_FROM_LATEST:
		return R3RING_FROM_OLDEST;
	default:
		return options->from;
	}
}

/* Or not yet whole. */
static bool is_not_there(const struct dump_options *options, int code)
{
	return code == -ENOENT || (options->segment && code == -EAGAIN);
}

static int open_when_there(struct dump_loop *loop)
{
	enum r3ring_cursor_start from = loop->options->from;
	int code;

	for (;;) {
		code = open_source(loop, from, loop->options->lossless, &loop->source);
		if (!is_not_there(loop->options, code) || !loop->options->follow ||
		    was_interrupted())
			return code;
		from = from_when_new(loop->options);
		pause_ms(LOOK_MS);
	}
}

/* Makes the channels known that the source has by now. */
static int meet_channels(struct dump_loop *loop)
{
	uint32_t count = loop->source.ops->channels(loop->source.handle);
	struct dump_channel *channels;

	if (count == loop->count)
		return 0;
	channels = reallocarray(loop->channels, count, sizeof(*channels));
	if (channels)
		loop->channels = channels;
	for (; channels && loop->count < count; loop->count++) {
		struct dump_channel *channel = &channels[loop->count];

		*channel = (struct dump_channel){.end_seq = UINT64_MAX};
		channel->requests = r3ring_requests_create();
		if (!channel->requests)
			break;
	}
	if (loop->count == count)
		return 0;
	return r3ring_error_set(loop->err, -ENOMEM, "no memory for one more channel");
}

static bool same_channel(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void note_end(struct dump_loop *loop, uint32_t index, const struct dump_source *latest)
{
	const char *name = loop->source.ops->channel(loop->source.handle, index);
	struct dump_channel *channel = &loop->channels[index];
	struct r3ring_reader_stats now, end;

	for (uint32_t i = 0; i < latest->ops->channels(latest->handle); i++) {
		if (!same_channel(latest->ops->channel(latest->handle, i), name) ||
		    !latest->ops->get_stats(latest->handle, i, &end) ||
		    !loop->source.ops->get_stats(loop->source.handle, index, &now))
			continue;
		/* Where a newer generation began the older ends by itself. */
		if (now.generation != end.generation)
			continue;
		channel->end_seq = end.now.cursor;
		channel->over = now.now.cursor >= channel->end_seq;
	}
}

/* It takes no record, and whoever reads up to the newest that is there meets it nowhere. */
static void tell_false_tail(struct dump_loop *loop, const char *channel)
{
	fprintf(stderr,
		"r3ring dump: %s: the ring is damaged: the sequence that it says is its newest "
		"cannot be; nothing is lost by that\n",
		channel ? channel : loop->options->channel);
	loop->damage.tails++;
}

/* A dump that does not follow ends where the channels ended when it began. */
static int find_end(struct dump_loop *loop)
{
	struct dump_source latest = {0};
	int code = open_source(loop, R3RING_FROM_LATEST, false, &latest);

	if (code)
		return code;
	for (uint32_t i = 0; i < loop->count; i++) {
		note_end(loop, i, &latest);
		if (loop->source.ops->tail_lies(loop->source.handle, i))
			tell_false_tail(loop, loop->source.ops->channel(loop->source.handle, i));
	}
	dump_source_close(&latest);
	return 0;
}

static bool all_over(const struct dump_loop *loop)
{
	for (uint32_t i = 0; i < loop->count; i++) {
		if (!loop->channels[i].over)
			return false;
	}
	return true;
}

static int start(struct dump_loop *loop)
{
	int code = open_when_there(loop);

	if (!code)
		code = meet_channels(loop);
	if (code || reads_on(loop->options))
		return code;
	code = find_end(loop);
	loop->done = !code && all_over(loop);
	return code;
}

static void stop(struct dump_loop *loop)
{
	free(loop->buffer);
	for (uint32_t i = 0; i < loop->count; i++)
		r3ring_requests_destroy(loop->channels[i].requests);
	free(loop->channels);
	dump_source_close(&loop->source);
}

static struct dump_channel *current_channel(const struct dump_loop *loop)
{
	return &loop->channels[loop->source.ops->current(loop->source.handle)];
}

static const char *current_name(const struct dump_loop *loop)
{
	return loop->source.ops->channel(loop->source.handle,
					 loop->source.ops->current(loop->source.handle));
}

/* ---- records ---------------------------------------------------------- */

static int tell_unreadable(struct dump_loop *loop, const struct r3ring_view *view, int code,
			   const char *why)
{
	const struct dump_unreadable unreadable = {
		.view = view, .code = code, .text = why, .channel = current_name(loop)};

	if (code == -EBADMSG) {
		loop->damage.records++;
		r3ring_requests_gap(current_channel(loop)->requests);
	}
	return loop->form->unreadable(loop->form->ctx, &unreadable);
}

static int note_request(struct dump_loop *loop, const struct r3ring_view *view,
			const struct r3ring_record *record)
{
	int code = r3ring_requests_feed(current_channel(loop)->requests, view, record);

	if (code != -ENOBUFS)
		return code;
	if (!loop->request_table_full)
		fputs("r3ring dump: too many live requests: spans of the oldest are no longer"
		      " attributed\n",
		      stderr);
	loop->request_table_full = true;
	return 0;
}

static int take_record(struct dump_loop *loop, const struct r3ring_view *view)
{
	struct r3ring_error why = {0};
	struct r3ring_record record;
	struct dump_channel *channel = current_channel(loop);
	struct dump_item item = {.view = view,
				 .record = &record,
				 .requests = channel->requests,
				 .channel = current_name(loop)};
	int code;

	loop->last_ns = clock_now_ns();
	loop->doubted = false;
	if (channel->over)
		return 0; /* came later than this dump; others still have to come */
	channel->over = view->seq + 1 >= channel->end_seq;
	loop->done = channel->over && all_over(loop);
	code = r3ring_record_decode(&record, view->type, view->data, view->len, &why);
	channel->closed = !code && record.type == R3RING_CLOSED;
	if (code)
		return tell_unreadable(loop, view, code, why.text);
	/* Another rank of an instance may have it. */
	if (!item.channel && record.type == R3RING_SCHEMA &&
	    !dump_has_layer(&loop->options->layer, &record)) {
		loop->layer_unknown = true;
		return -ENXIO;
	}
	code = note_request(loop, view, &record);
	if (code || !dump_wants(&loop->options->layer, &record))
		return code;
	return loop->form->record(loop->form->ctx, &item);
}

static int tell_gap(struct dump_loop *loop, bool corrupt)
{
	struct dump_channel *channel = current_channel(loop);
	struct r3ring_reader_stats stats;
	struct dump_gap gap = {.channel = current_name(loop), .corrupt = corrupt};

	if (!loop->source.ops->get_stats(loop->source.handle,
					 loop->source.ops->current(loop->source.handle), &stats))
		return 0;
	gap.generation = stats.generation;
	gap.lost = stats.lost_before + stats.now.lost - channel->lost;
	gap.from_seq = stats.now.gap_from;
	gap.to_seq = stats.now.gap_to;
	gap.missed = stats.missed - channel->missed;
	if (!gap.lost && !gap.missed) {
		tell_false_tail(loop, gap.channel);
		return 0;
	}
	channel->lost += gap.lost;
	channel->missed = stats.missed;
	loop->doubted = false;
	loop->damage.records += corrupt ? gap.lost : 0;
	loop->last_ns = clock_now_ns();
	r3ring_requests_gap(channel->requests);
	return loop->form->gap(loop->form->ctx, &gap);
}

static int grow_buffer(struct dump_loop *loop)
{
	size_t capacity = loop->source.ops->max_record(loop->source.handle);
	void *buffer;

	capacity = (capacity + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (capacity <= loop->capacity)
		return -EBADMSG; /* the ring says that a record is longer than it may be */
	buffer = aligned_alloc(ALIGNMENT, capacity);
	if (!buffer)
		return -ENOMEM;
	free(loop->buffer);
	loop->buffer = buffer;
	loop->capacity = capacity;
	return 0;
}

/* ---- nothing new ------------------------------------------------------ */

/* Who waits asks what an empty slot in front of the newest record means: so does this before it
 * takes one for the end. */
static int wait_for_more(struct dump_loop *loop)
{
	uint64_t left = idle_left(loop);
	bool ends = !reads_on(loop->options) || !left;
	int timeout = left < LOOK_MS * MS_NS ? (int)(left / MS_NS) + 1 : LOOK_MS;
	int code;

	if (ends && !loop->doubted) {
		loop->doubted = true;
		code = loop->source.ops->wait(loop->source.handle, 0);
		return code < 0 && code != -EOWNERDEAD ? code : 0;
	}
	if (ends) {
		loop->done = true;
		return 0;
	}
	fflush(loop->out);
	code = loop->source.ops->wait(loop->source.handle, timeout);
	return code < 0 && code != -EOWNERDEAD ? code : 0; /* a dead daemon may have a successor */
}

static int read_next(struct dump_loop *loop)
{
	struct r3ring_view view;
	int code = loop->source.ops->read(loop->source.handle, &view, loop->buffer, loop->capacity);
	int met = meet_channels(loop);

	if (met)
		return met;
	switch (code) {
	case 1:
		return take_record(loop, &view);
	case -EPIPE:
		if (!loop->source.ops->goes_on)
			loop->done = true;
		/* fall through */
	case 0:
		return loop->done ? 0 : wait_for_more(loop);
	case -EOVERFLOW:
	case -EBADMSG:
		return tell_gap(loop, code == -EBADMSG);
	case -EMSGSIZE:
		return grow_buffer(loop);
	default:
		return code;
	}
}

static int explain(struct dump_loop *loop, int code)
{
	const char *reason = loop->source.ops->error(loop->source.handle);
	const struct dump_layer *layer = &loop->options->layer;

	if (loop->layer_unknown)
		return r3ring_error_set(loop->err, code, "%s: its model has no layer %s%d",
					loop->options->channel, layer->mtp ? "mtp:" : "",
					layer->id);
	return r3ring_error_set(loop->err, code, "%s: %s", loop->options->channel,
				reason[0] ? reason : strerror(-code));
}

/* Of a ring by itself nobody else says so. */
static void tell_left_open(const struct dump_loop *loop)
{
	const struct dump_source_ops *ops = loop->source.ops;

	if (!ops->left_open || loop->channels[0].closed || !ops->left_open(loop->source.handle))
		return;
	fprintf(stderr,
		"r3ring dump: %s: it is not closed, and its daemon is gone: unless its engine had "
		"ended before, what that ran since is not known\n",
		loop->options->channel);
	if (loop->form->left_open)
		loop->form->left_open(loop->form->ctx);
}

int dump_run(const struct dump_options *options, const struct dump_form *form, FILE *out,
	     struct dump_damage *damage, struct r3ring_error *err)
{
	struct dump_loop loop = {.options = options, .form = form, .out = out, .err = err};
	int code;

	catch_signals();
	code = start(&loop);
	if (code)
		goto out;
	while (!code && !loop.done && !was_interrupted() && !ferror(out))
		code = read_next(&loop);
	if (code)
		explain(&loop, code);
	else
		tell_left_open(&loop);
	if (!code && form->finish)
		code = form->finish(form->ctx);
	*damage = loop.damage;
out:
	stop(&loop);
	return was_interrupted() && code == -ENOENT ? 0 : code;
}
