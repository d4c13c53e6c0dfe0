/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: through the archive, each entry to its channel, at the pace asked for. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>

#include "tools/replay.h"

#define NS_PER_SECOND 1000000000ll
#define PAUSE_MAX (10 * NS_PER_SECOND) /* as recorded; longer ones are cut to it */
#define PROGRESS_ITEMS 256u

/* Of one of the archive's channels. */
struct run_channel {
	struct replay_channel *replay; /* NULL: it is another instance's */
	bool met;
	uint64_t steps;
};

struct run {
	const struct replay_options *options;
	struct replay_shared shared;
	struct archive_reader *reader;
	struct run_channel *channels; /* [count], by the reader's numbers */
	uint32_t count;
	char source[R3RING_INSTANCE_MAX + 1]; /* "": no channel was met yet */
	int64_t begin_ns;                     /* CLOCK_MONOTONIC */
	int64_t origin_ns; /* CLOCK_REALTIME of the recording that is begin_ns; 0: not known */
	uint64_t items;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static bool stopped(const struct run *run)
{
	return run->options->stop && r3ring_load_relaxed_u32(run->options->stop);
}

/* ---- channels ---------------------------------------------------------- */

static bool is_of_source(struct run *run, const char *name)
{
	size_t len = strcspn(name, "/");

	if (len >= sizeof(run->source))
		return false;
	if (!run->source[0] && run->options->source)
		snprintf(run->source, sizeof(run->source), "%s", run->options->source);
	if (!run->source[0])
		snprintf(run->source, sizeof(run->source), "%.*s", (int)len, name);
	return strlen(run->source) == len && memcmp(run->source, name, len) == 0;
}

static int meet(struct run *run, struct run_channel *channel, const char *name)
{
	char text[256];

	channel->met = true;
	if (!is_of_source(run, name)) {
		snprintf(text, sizeof(text),
			 "channel %s is left out: only those of %s are replayed; --source names "
			 "another",
			 name, run->source);
		run->shared.hooks->note(run->shared.hooks->ctx, text);
		return 0;
	}
	channel->replay = replay_channel_create(&run->shared, name);
	if (!channel->replay)
		return r3ring_error_set(run->shared.err, -ENOMEM, "no memory for a channel");
	run->shared.report->channels++;
	return 0;
}

static int channel_of(struct run *run, const struct archive_item *item,
		      struct run_channel **channel)
{
	if (item->channel >= run->count) {
		uint32_t wanted = item->channel + 1u;
		struct run_channel *grown = reallocarray(run->channels, wanted, sizeof(*grown));

		if (!grown)
			return r3ring_error_set(run->shared.err, -ENOMEM,
						"no memory for a channel");
		memset(grown + run->count, 0, (wanted - run->count) * sizeof(*grown));
		run->channels = grown;
		run->count = wanted;
	}
	*channel = &run->channels[item->channel];
	return (*channel)->met ? 0 : meet(run, *channel, item->name);
}

/* ---- pace -------------------------------------------------------------- */

/* When a step is to be run; what it was apart from the first one, where that is asked for. */
static int64_t due_ns(struct run *run, struct run_channel *channel,
		      const struct r3ring_step_record *step)
{
	int64_t begun, due;

	if (run->options->pace == REPLAY_RATE)
		return run->begin_ns + (int64_t)((double)channel->steps++ / run->options->rate *
						 (double)NS_PER_SECOND);
	begun = (int64_t)replay_channel_begun(channel->replay, step);
	if (begun <= 0)
		return run->begin_ns;
	if (!run->origin_ns) {
		run->origin_ns = begun;
		run->begin_ns = now_ns();
	}
	due = run->begin_ns + (begun - run->origin_ns);
	if (due - now_ns() > PAUSE_MAX) {
		run->begin_ns -= due - now_ns() - PAUSE_MAX;
		due = now_ns() + PAUSE_MAX;
	}
	return due;
}

/* A signal cuts it short. */
static void wait_until(const struct run *run, int64_t due)
{
	const struct timespec until = {.tv_sec = due / NS_PER_SECOND,
				       .tv_nsec = due % NS_PER_SECOND};

	while (!stopped(run) &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void keep_pace(struct run *run, struct run_channel *channel, const struct archive_item *item)
{
	struct r3ring_step_record step;
	int64_t due;

	if (run->options->pace == REPLAY_MAX || item->kind != ARCHIVE_RECORD ||
	    item->view.type != R3RING_STEP || item->view.len < sizeof(step))
		return;
	memcpy(&step, item->view.data, sizeof(step));
	due = due_ns(run, channel, &step);
	if (due > now_ns())
		wait_until(run, due);
}

/* ---- the whole --------------------------------------------------------- */

static void show_progress(struct run *run)
{
	const struct replay_hooks *hooks = run->shared.hooks;
	struct archive_extent extent;

	if (!hooks->progress || ++run->items % PROGRESS_ITEMS)
		return;
	archive_reader_get_extent(run->reader, &extent);
	hooks->progress(hooks->ctx, run->shared.report, archive_reader_passed(run->reader),
			extent.bytes);
}

static int take(struct run *run, const struct archive_item *item)
{
	struct run_channel *channel = NULL;
	int code;

	show_progress(run);
	if (item->kind == ARCHIVE_RESUMED)
		return 0;
	code = channel_of(run, item, &channel);
	if (code || !channel->replay)
		return code;
	keep_pace(run, channel, item);
	return replay_channel_take(channel->replay, item);
}

static int read_all(struct run *run)
{
	struct archive_item item;
	struct r3ring_error why = {0};
	int code = 0;

	while (!code && !stopped(run)) {
		code = archive_reader_next(run->reader, &item, &why);
		if (code == 1) {
			code = take(run, &item);
		} else if (code == -EBADMSG) {
			run->shared.report->damaged++;
			run->shared.hooks->note(run->shared.hooks->ctx, why.text);
			code = 0;
		} else if (code == 0) {
			return 0;
		} else {
			r3ring_error_set(run->shared.err, code, "%s", why.text);
		}
	}
	return code == -EINTR ? 0 : code;
}

/* ---- whether there is what is asked for --------------------------------- */

static bool is_asked_for(const struct run *run, const struct archive_item *item)
{
	const struct replay_options *options = run->options;
	struct r3ring_record record;

	if (item->kind != ARCHIVE_RECORD || item->view.type != R3RING_REQUEST ||
	    r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len, NULL))
		return false;
	for (uint32_t i = 0; i < options->request_count; i++) {
		if (strlen(options->requests[i]) == record.u.request.head.id_len &&
		    !memcmp(options->requests[i], record.u.request.id,
			    record.u.request.head.id_len))
			return true;
	}
	return false;
}

/* Before an engine is fed for as long as the recording took. What cannot be read is told then. */
static int look_for_requests(const struct run *run)
{
	struct r3ring_error *err = run->shared.err;
	struct archive_reader *reader;
	struct archive_item item;
	bool found = false;
	int code = archive_reader_open(&reader, run->options->dir, err);

	if (code)
		return code;
	do {
		code = archive_reader_next(reader, &item, NULL);
		found = code == 1 && is_asked_for(run, &item);
	} while ((code == 1 || code == -EBADMSG) && !found && !stopped(run));
	archive_reader_close(reader);
	if (found || code || stopped(run))
		return 0;
	return r3ring_error_set(err, -ENODATA,
				"request \"%.*s\" is not in the archive%s: nothing is replayed",
				R3RING_TEXT_ID_MAX, run->options->requests[0],
				run->options->request_count > 1 ? ", nor are the others" : "");
}

/* Told at the end only: each may come in the last segment. */
static void tell_absent(struct run *run)
{
	const struct replay_options *options = run->options;
	char text[R3RING_TEXT_ID_MAX + 64];

	for (uint32_t i = 0; i < options->request_count && !stopped(run); i++) {
		if (run->shared.met[i])
			continue;
		run->shared.report->absent++;
		snprintf(text, sizeof(text), "request \"%.*s\" is not in the archive",
			 R3RING_TEXT_ID_MAX, options->requests[i]);
		run->shared.hooks->note(run->shared.hooks->ctx, text);
	}
}

static int finish(struct run *run)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < run->count; i++) {
		if (run->channels[i].replay)
			code = replay_channel_finish(run->channels[i].replay);
	}
	if (code)
		return code;
	tell_absent(run);
	if (run->shared.report->channels || stopped(run))
		return 0;
	return r3ring_error_set(run->shared.err, -ENODATA, "the archive has no channel of %s",
				run->options->source ? run->options->source : "any instance");
}

int replay_run(const struct replay_options *options, const struct replay_hooks *hooks,
	       struct replay_report *report, struct r3ring_error *err)
{
	struct run run = {
		.options = options,
		.shared = {.options = options, .hooks = hooks, .report = report, .err = err},
	};
	int code;

	*report = (struct replay_report){0};
	run.shared.met = calloc(options->request_count + 1u, sizeof(bool));
	code = run.shared.met ? archive_reader_open(&run.reader, options->dir, err)
			      : r3ring_error_set(err, -ENOMEM, "no memory for a replay");
	if (!code && options->request_count)
		code = look_for_requests(&run);
	run.begin_ns = now_ns();
	if (!code)
		code = read_all(&run);
	if (!code)
		code = finish(&run);
	report->stopped = stopped(&run);
	for (uint32_t i = 0; i < run.count; i++)
		replay_channel_destroy(run.channels[i].replay);
	free(run.channels);
	free(run.shared.met);
	archive_reader_close(run.reader);
	report->seconds = (double)(now_ns() - run.begin_ns) / (double)NS_PER_SECOND;
	return code;
}
