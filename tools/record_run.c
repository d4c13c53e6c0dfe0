/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: the loop. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "archive/index.h"
#include "archive/segments.h"
#include "channel/clock.h"
#include "channel/socket.h"
#include "tools/record.h"
#include "tools/record_index.h"

#define LOOK_MS 100 /* how often it looks for a signal, the idle limit and old blocks */
#define MS_NS 1000000ull
#define REMOVED_NS 60000000000ull      /* between two notes of segments that were removed */
#define CHANNEL_WAIT_NS 30000000000ull /* with an idle limit: for the first channel, at least */

struct record_loop {
	const struct record_options *options;
	struct record_report *report;
	struct r3ring_error *err;
	struct archive_writer *writer;
	struct r3ring_instance *instance;
	struct record_channels channels;
	struct record_progress progress;
	struct record_index *index;
	int dir_fd;                 /* of the archive, wherever it is */
	char runtime_dir[PATH_MAX]; /* "": nobody was there when it began */
	json_t *before;             /* what there was then */
	uint32_t wanted;            /* bytes of a record that had no room */
	uint64_t begun_ns;
	uint64_t last_ns;    /* when something last came, or it attached */
	uint64_t removed;    /* segments, told */
	uint64_t removed_ns; /* when */
	bool met;            /* a daemon was there */
	bool alone;          /* it is not any more, told */
	bool done;
};

/* ---- signals ------------------------------------------------------------ */

static uint32_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	r3ring_store_relaxed_u32(&interrupted, 1);
}

static void catch_signals(void)
{
	struct sigaction interrupt = {.sa_handler = on_interrupt,
				      .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction present;

	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	/* Under nohup(1) it is ignored, and stays so. */
	if (sigaction(SIGHUP, NULL, &present) == 0 && present.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &interrupt, NULL);
	/* A file size limit is an error of write(), told in words. */
	sigaction(SIGXFSZ, &ignore, NULL);
}

static bool was_interrupted(void)
{
	return r3ring_load_relaxed_u32(&interrupted) != 0;
}

/* ---- opening ------------------------------------------------------------ */

static struct r3ring_instance_options instance_options(const struct record_options *options)
{
	return (struct r3ring_instance_options){
		.size = sizeof(struct r3ring_instance_options),
		.instance = options->instance,
		.models = options->models,
		.only = options->only,
		.from = R3RING_FROM_FIRST,
		.label = "record",
	};
}

/* Nobody is there yet, or no longer: a daemon that was there at the start, and went away, may
 * have a successor. */
static bool may_come(const struct record_loop *loop, int code)
{
	return code == -ENOENT || code == -EPIPE || code == -ECONNRESET ||
	       (loop->met && (code == -ECONNREFUSED || code == -ETIMEDOUT));
}

/* Once each time that it is so. */
static void tell_waiting(struct record_loop *loop, int code)
{
	const bool alone = code == -ECONNREFUSED || code == -ETIMEDOUT;

	if (alone && !loop->alone)
		fputs("r3ring record: the daemon is gone: waiting for a daemon\n", stderr);
	else if (!loop->met)
		fprintf(stderr, "r3ring record: %s: waiting for a channel of %s\n", loop->err->text,
			loop->options->instance);
	loop->alone = alone;
	loop->met = true;
}

/* Returns 0, 1 (interrupted), or as r3ring_instance_open(). */
static int open_patiently(struct record_loop *loop, const struct r3ring_instance_options *options)
{
	uint64_t limit = loop->options->until_idle_ns;
	uint64_t begun = clock_coarse_ns();

	if (limit && limit < CHANNEL_WAIT_NS)
		limit = CHANNEL_WAIT_NS;
	while (!was_interrupted()) {
		int r = r3ring_instance_open(&loop->instance, options, loop->err);

		if (!may_come(loop, r) || (limit && clock_coarse_ns() - begun >= limit))
			return r;
		tell_waiting(loop, r);
		poll(NULL, 0, LOOK_MS);
	}
	return 1;
}

static bool is_there(const struct r3ring_instance *instance, const char *name)
{
	uint32_t count = r3ring_instance_channels(instance);
	uint32_t i = 0;

	while (i < count && strcmp(r3ring_instance_channel(instance, i), name) != 0)
		i++;
	return i < count;
}

/* Of channels that were named: others are recorded while it is waited for these. */
static void tell_absent(const struct record_loop *loop)
{
	const char *const *only = loop->options->only;

	for (; only && *only; only++)
		if (!is_there(loop->instance, *only))
			fprintf(stderr, "r3ring record: %s is not there yet: waiting for it\n",
				*only);
}

/* So that nothing is made where there is nothing to record. Returns as open_patiently(). */
static int await_channel(struct record_loop *loop)
{
	const struct r3ring_instance_options options = instance_options(loop->options);
	int r = open_patiently(loop, &options);

	loop->met = true;
	if (r == 0)
		tell_absent(loop);
	r3ring_instance_close(loop->instance);
	loop->instance = NULL;
	return r;
}

static void tell_resumption(const struct record_loop *loop)
{
	const struct archive_resumption *resumption = archive_writer_resumption(loop->writer);

	loop->report->resumed = resumption->resumed;
	loop->report->cut_bytes = resumption->record.cut_bytes;
	if (!resumption->resumed)
		return;
	fprintf(stderr, "r3ring record: %s: goes on where it ended, %u channels",
		loop->options->archive.dir, resumption->count);
	if (resumption->record.cut_bytes)
		fprintf(stderr,
			"; the last recorder did not end in good order: %" PRIu64
			" bytes that were not whole are cut",
			resumption->record.cut_bytes);
	fputc('\n', stderr);
	if (resumption->missing)
		fprintf(stderr,
			"r3ring record: %s: segment %" PRIu64 " is not there: restore it from a "
			"copy, which can be done while this goes on; r3ring verify says what "
			"else is missing\n",
			loop->options->archive.dir, resumption->missing);
}

/* Where the archive's cursors are, there it is read on. */
static int open_instance(struct record_loop *loop, struct r3ring_instance_start *starts)
{
	struct r3ring_instance_options options = instance_options(loop->options);
	const struct archive_resumption *resumption = archive_writer_resumption(loop->writer);

	for (uint32_t i = 0; i < resumption->count; i++) {
		const struct archive_cursor *cursor = &resumption->cursors[i];

		starts[i] = (struct r3ring_instance_start){
			.channel = cursor->name,
			.generation = cursor->generation,
			.seq = cursor->seq,
		};
		memcpy(starts[i].uuid, cursor->uuid, sizeof(starts[i].uuid));
	}
	options.mode = R3RING_LOSSLESS;
	options.starts = starts;
	options.start_count = resumption->count;
	return open_patiently(loop, &options);
}

/* Where the archive is by now; NULL: nowhere. */
static const char *dir_now(const struct record_loop *loop, char path[PATH_MAX])
{
	return archive_dir_path(loop->options->archive.dir, loop->dir_fd, path);
}

/* ---- recording ---------------------------------------------------------- */

static int archive_failed(struct record_loop *loop, int code)
{
	const char *why = archive_writer_error(loop->writer);

	return r3ring_error_set(loop->err, code, "%s", why[0] ? why : strerror(-code));
}

/* The first at once, those that follow together. */
static void tell_removed(struct record_loop *loop, uint64_t now)
{
	const uint64_t removed = loop->report->archive.removed_segments;
	char path[PATH_MAX];
	const char *dir = dir_now(loop, path);

	if (removed == loop->removed || (loop->removed && now - loop->removed_ns < REMOVED_NS))
		return;
	record_progress_clear(&loop->progress);
	fprintf(stderr,
		"r3ring record: %s: the oldest %" PRIu64
		" segments are removed (--rotate), %" PRIu64 " by now\n",
		dir ? dir : loop->options->archive.dir, removed - loop->removed, removed);
	loop->removed = removed;
	loop->removed_ns = now;
}

/* A few times a second. */
static void look_around(struct record_loop *loop, uint64_t now)
{
	if (now - loop->progress.shown_ns < LOOK_MS * MS_NS)
		return;
	archive_writer_get_stats(loop->writer, &loop->report->archive);
	record_index_segments(loop->index, loop->report->archive.segment);
	loop->report->ns = now - loop->begun_ns;
	tell_removed(loop, now);
	record_progress_show(&loop->progress, loop->report);
	loop->progress.shown_ns = now;
}

static bool idle_is_over(const struct record_loop *loop, uint64_t now)
{
	uint64_t limit = loop->options->until_idle_ns;

	return limit && now - loop->last_ns >= limit;
}

static int wait_for_more(struct record_loop *loop, uint64_t now)
{
	int r;

	if (idle_is_over(loop, now)) {
		loop->done = true;
		return 0;
	}
	r = r3ring_instance_wait(loop->instance, LOOK_MS);
	/* A dead daemon may have a successor. */
	return r < 0 && r != -EOWNERDEAD ? r : 0;
}

/* What one channel refuses concerns the others not; it is tried again. */
static int tell_refusal(struct record_loop *loop, int code)
{
	if (code == -ENOMEM)
		return r3ring_error_set(loop->err, code, "%s",
					r3ring_instance_error(loop->instance));
	record_progress_clear(&loop->progress);
	fprintf(stderr, "r3ring record: %s\n", r3ring_instance_error(loop->instance));
	return 0;
}

static int take(struct record_loop *loop, int code, const struct r3ring_view *view, uint64_t now)
{
	int r;

	loop->wanted = 0;
	if (code)
		loop->last_ns = now;
	if (code == 1)
		r = record_channels_record(&loop->channels, view);
	else
		r = record_channels_gap(&loop->channels, code == -EBADMSG);
	return r < 0 ? archive_failed(loop, r) : 0;
}

static int read_next(struct record_loop *loop)
{
	struct r3ring_view view;
	size_t capacity = 0;
	int r = archive_writer_poll(loop->writer);
	/* Behind that, which may hand on the block that it would be in. */
	void *room = r < 0 ? NULL : archive_writer_room(loop->writer, loop->wanted, &capacity);
	uint64_t now;

	if (!room)
		return archive_failed(loop, r < 0 ? r : -ENOMEM);
	r = r3ring_instance_read(loop->instance, &view, room, capacity);
	now = clock_coarse_ns();
	look_around(loop, now);
	switch (r) {
	case 1:
	case -EOVERFLOW:
	case -EBADMSG:
		return take(loop, r, &view, now);
	case -EMSGSIZE:
		loop->wanted = view.len;
		return 0;
	case 0:
	case -EPIPE:
		return wait_for_more(loop, now);
	default:
		return tell_refusal(loop, r);
	}
}

static int record(struct record_loop *loop, struct r3ring_instance_start *starts)
{
	int r = open_instance(loop, starts);

	if (r)
		return r < 0 ? r : 0;
	loop->channels = (struct record_channels){
		.instance = loop->instance,
		.writer = loop->writer,
		.archive = &loop->options->archive,
		.runtime_dir = loop->runtime_dir,
		.before = loop->before,
		.report = loop->report,
		.progress = &loop->progress,
	};
	loop->last_ns = clock_coarse_ns();
	r = record_channels_meet(&loop->channels);
	if (r < 0)
		return archive_failed(loop, r);
	while (r == 0 && !loop->done && !was_interrupted())
		r = read_next(loop);
	record_progress_clear(&loop->progress);
	if (r == 0)
		r = record_unfollowed_tell(&loop->channels);
	return r;
}

/* ---- from open to close ------------------------------------------------- */

/* It is made of what is recorded, and can be made again: no reason to fail. */
static void finish_index(struct record_loop *loop)
{
	struct r3ring_error why = {0};
	char path[PATH_MAX];
	const char *dir = dir_now(loop, path);

	record_index_end(loop->index);
	if (dir && archive_index_update(dir, &why))
		fprintf(stderr,
			"r3ring record: the index is not up to date: %s; r3ring verify --reindex "
			"%s makes it\n",
			why.text, dir);
	if (dir)
		snprintf(loop->report->dir, sizeof(loop->report->dir), "%s", dir);
}

/* The first error is the one that counts. */
static int close_archive(struct record_loop *loop, int code)
{
	struct r3ring_error why = {0};
	int r;

	r = archive_writer_finish(loop->writer, &why);
	archive_writer_get_stats(loop->writer, &loop->report->archive);
	tell_removed(loop, UINT64_MAX);
	archive_writer_close(loop->writer, NULL);
	finish_index(loop);
	/* Of a full disk the figures are known only now. */
	if (r < 0 && (code == 0 || code == r))
		*loop->err = why;
	return code ? code : r;
}

static int record_into(struct record_loop *loop)
{
	const struct archive_resumption *resumption;
	struct r3ring_instance_start *starts;
	int r = archive_writer_open(&loop->writer, &loop->options->archive, loop->err);

	if (r < 0)
		return r;
	tell_resumption(loop);
	loop->dir_fd = open(loop->options->archive.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	loop->index = record_index_start(loop->options->archive.dir, loop->dir_fd);
	resumption = archive_writer_resumption(loop->writer);
	starts = calloc(resumption->count + 1, sizeof(*starts));
	r = starts ? record(loop, starts)
		   : r3ring_error_set(loop->err, -ENOMEM, "no memory for a recorder");
	record_channels_find_absent(&loop->channels);
	r3ring_instance_close(loop->instance);
	record_channels_release(&loop->channels);
	free(starts);
	r = close_archive(loop, r);
	if (loop->dir_fd >= 0)
		close(loop->dir_fd);
	return r;
}

static int run_begun(struct record_loop *loop)
{
	int r;

	loop->begun_ns = clock_coarse_ns();
	loop->report->begun = true;
	r = record_into(loop);
	loop->report->ns = clock_coarse_ns() - loop->begun_ns;
	loop->report->full = r == -EDQUOT;
	return r;
}

int record_run(const struct record_options *options, struct record_report *report,
	       struct r3ring_error *err)
{
	struct record_loop loop = {
		.options = options,
		.report = report,
		.err = err,
		.progress.terminal = isatty(STDERR_FILENO) ? stderr : NULL,
	};
	int r;

	*report = (struct record_report){0};
	snprintf(report->dir, sizeof(report->dir), "%s", options->archive.dir);
	catch_signals();
	loop.before = record_before_read(options->instance);
	r = await_channel(&loop);
	if (socket_find_dir(loop.runtime_dir, sizeof(loop.runtime_dir)))
		loop.runtime_dir[0] = '\0';
	if (r == 0)
		r = run_begun(&loop);
	json_decref(loop.before);
	return r < 0 ? r : 0;
}
