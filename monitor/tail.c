/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/instance.h>

#include "channel/clock.h"
#include "channel/namespaces.h"
#include "monitor/ends.h"
#include "monitor/life.h"
#include "monitor/tail.h"

#define WAIT_MS 100
#define RETRY_MS 500
#define FIRST_PICTURE_MS 10
#define ENDS_NS 20000000u /* between two looks at the daemon's picture */

struct tail {
	char *name;
	char *runtime_dir; /* NULL: as readers find it */
	const char *label;
	uint32_t look_ms;
	uint64_t pid_namespace;     /* of this process; 0: not known */
	struct daemon_watch *watch; /* NULL: ends are not noticed */
	struct tail_hooks hooks;
	pthread_t thread;
	uint32_t stopping; /* set by whoever closes; the joining orders the rest */

	/* The thread's own. */
	struct r3ring_instance *reader;
	uint32_t channels; /* that were told */
	void *buffer;
	size_t capacity;
	struct come *come;       /* [judged] where a channel is read */
	bool *ended;             /* [judged] */
	uint32_t judged;         /* channels that are judged */
	uint64_t ends_looked_ns; /* when they last were */
	bool silent;             /* nothing was read since there was no sign of life */
	bool heard;              /* a daemon that lives has told what has ended */

	/* The thread writes them before it hands on what it counted: who sees that sees them. */
	uint64_t records, gaps;

	pthread_mutex_t lock; /* of what follows */
	struct tail_status status;
};

/* The generation that is read of a channel, since when, and its process. */
struct come {
	uint64_t generation;
	uint64_t since_ns;
	struct life life;
};

static bool stopping(const struct tail *tail)
{
	return r3ring_load_relaxed_u32(&tail->stopping);
}

static void set_state(struct tail *tail, enum tail_state state, const char *error)
{
	pthread_mutex_lock(&tail->lock);
	tail->status.state = state;
	snprintf(tail->status.error, sizeof(tail->status.error), "%s", error);
	pthread_mutex_unlock(&tail->lock);
}

/* ---- records ---------------------------------------------------------------- */

/* Whether the channel was told, and those before it. */
static bool announce(struct tail *tail, uint32_t channel)
{
	for (; tail->channels <= channel; tail->channels++) {
		const char *name = r3ring_instance_channel(tail->reader, tail->channels);

		if (tail->hooks.channel(tail->hooks.context, tail->channels, name))
			return false;
	}
	return true;
}

static void count(uint64_t *total)
{
	r3ring_store_relaxed_u64(total, r3ring_load_relaxed_u64(total) + 1);
}

static void take_gap(struct tail *tail, uint32_t channel)
{
	count(&tail->gaps);
	if (announce(tail, channel))
		tail->hooks.gap(tail->hooks.context, channel);
}

/* A record that is none is as one that was never read. */
static void take(struct tail *tail, uint32_t channel, const struct r3ring_view *view)
{
	struct r3ring_record record;

	count(&tail->records);
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0)
		take_gap(tail, channel);
	else if (announce(tail, channel))
		tail->hooks.record(tail->hooks.context, channel,
				   r3ring_instance_channel(tail->reader, channel), view, &record);
}

/* Room for the largest record of any channel. */
static bool make_room(struct tail *tail)
{
	size_t most = r3ring_instance_max_record(tail->reader);
	void *buffer;

	if (most <= tail->capacity)
		return true;
	most = (most + 63) / 64 * 64;
	buffer = aligned_alloc(64, most);
	if (!buffer)
		return false;
	free(tail->buffer);
	tail->buffer = buffer;
	tail->capacity = most;
	return true;
}

/* Takes what there is. Returns 0, or what the reader said last. */
static int take_all(struct tail *tail)
{
	struct r3ring_view view;
	bool got = false;
	int r = 1;

	while (!stopping(tail) && (r == 1 || r == -EOVERFLOW || r == -EBADMSG)) {
		if (!make_room(tail))
			return -ENOMEM;
		r = r3ring_instance_read(tail->reader, &view, tail->buffer, tail->capacity);
		if (r == 1) {
			take(tail, r3ring_instance_current(tail->reader), &view);
			got = true;
		} else if (r == -EOVERFLOW || r == -EBADMSG) {
			take_gap(tail, r3ring_instance_current(tail->reader));
		} else if (r == -EMSGSIZE) {
			r = 1;
		}
	}
	if (tail->hooks.read)
		tail->hooks.read(tail->hooks.context);
	tail->silent = tail->silent && !got;
	return r;
}

/* ---- ends ------------------------------------------------------------------- */

static bool judge_more(struct tail *tail, uint32_t channels)
{
	struct come *come = realloc(tail->come, channels * sizeof(*come));
	bool *ended = realloc(tail->ended, channels * sizeof(*ended));

	tail->come = come ? come : tail->come;
	tail->ended = ended ? ended : tail->ended;
	if (!come || !ended)
		return false;
	for (; tail->judged < channels; tail->judged++) {
		come[tail->judged] = (struct come){.life = life_of_nobody()};
		ended[tail->judged] = false;
	}
	return true;
}

/* Another generation has not ended because the one before it had. */
static void note_generation(struct tail *tail, uint32_t channel, uint64_t generation)
{
	struct come *come = &tail->come[channel];

	if (come->since_ns && come->generation == generation)
		return;
	life_forget(&come->life);
	come->generation = generation;
	come->since_ns = clock_now_ns();
	tail->ended[channel] = false;
}

/* One that could not be attached to is of no generation. */
static void judge(struct tail *tail, uint32_t channel, const struct daemon_picture *picture)
{
	const char *name = r3ring_instance_channel(tail->reader, channel);
	const struct picture_channel *told = daemon_picture_find(picture, name);
	struct life *life = &tail->come[channel].life;
	struct r3ring_reader_stats stats = {0};

	r3ring_instance_get_stats(tail->reader, channel, &stats);
	note_generation(tail, channel, stats.generation);
	if (told && told->generation == stats.generation)
		life_watch(life, picture, told, tail->pid_namespace);
	tail->ended[channel] = ends_judge(
		&(struct ends_channel){
			.name = name,
			.generation = stats.generation,
			.next = stats.now.cursor,
			.since_ns = tail->come[channel].since_ns,
			.ended = tail->ended[channel],
			.died = life_is_over(life),
		},
		picture);
}

static void judge_all(struct tail *tail, const struct daemon_picture *picture)
{
	bool changed = false;

	for (uint32_t i = 0; i < tail->judged; i++) {
		bool before = tail->ended[i];

		judge(tail, i, picture);
		changed |= before != tail->ended[i];
	}
	if (changed && tail->hooks.ends)
		tail->hooks.ends(tail->hooks.context, tail->ended, tail->judged);
}

/* Now and then: records come more often than pictures. */
static void look_for_ends(struct tail *tail)
{
	struct daemon_picture *before, *now;

	if (!tail->watch || clock_coarse_ns() < tail->ends_looked_ns + ENDS_NS ||
	    !judge_more(tail, r3ring_instance_channels(tail->reader)))
		return;
	tail->ends_looked_ns = clock_coarse_ns();
	daemon_watch_look(tail->watch, &before, &now);
	judge_all(tail, now);
	tail->heard |= now && now->state == PICTURE_LIVE;
	daemon_picture_put(before);
	daemon_picture_put(now);
}

static bool all_ended(const struct tail *tail)
{
	for (uint32_t i = 0; i < tail->judged; i++) {
		if (!tail->ended[i])
			return false;
	}
	return tail->judged;
}

/* ---- the thread ------------------------------------------------------------- */

static void nap(uint32_t ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int attach(struct tail *tail)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = tail->runtime_dir,
		.instance = tail->name,
		.label = tail->label,
		.models = R3RING_TARGET_CHANNELS,
		.mode = R3RING_LATEST,
		.from = R3RING_FROM_KEYFRAME,
	};
	struct r3ring_error err = {0};
	int r = r3ring_instance_open(&tail->reader, &options, &err);

	set_state(tail, TAIL_WAITING, r ? err.text : "what there was is not read to its end yet");
	return r;
}

/* As r3ring_instance_wait(). */
static int await_records(struct tail *tail)
{
	if (!tail->look_ms)
		return r3ring_instance_wait(tail->reader, WAIT_MS);
	nap(tail->look_ms);
	return r3ring_instance_wait(tail->reader, 0);
}

/* An engine that had ended before is not taken for one that lives until there is a picture. */
static void await_picture(struct tail *tail)
{
	struct daemon_picture *before, *now = NULL;

	while (tail->watch && !now && !stopping(tail)) {
		daemon_watch_look(tail->watch, &before, &now);
		if (!now)
			nap(FIRST_PICTURE_MS);
		daemon_picture_put(before);
		daemon_picture_put(now);
	}
}

/* @said, @waited: what reading and waiting returned last. Rings that are all closed though not all
 * of their engines have ended are those of a daemon that has. */
static void tell_state(struct tail *tail, int said, int waited)
{
	if (waited == 1)
		tail->silent = false;
	if (waited == -EOWNERDEAD || said == -EPIPE)
		tail->silent = true;
	if (all_ended(tail))
		set_state(tail, TAIL_ENDED, "");
	else if (tail->watch && !tail->heard && !tail->silent)
		set_state(tail, TAIL_WAITING, "the daemon has not said yet whether it has ended");
	else
		set_state(tail, tail->silent ? TAIL_SILENT : TAIL_LIVE, "");
}

static void *follow(void *arg)
{
	struct tail *tail = arg;
	int waited = 0;

	await_picture(tail);
	while (!stopping(tail)) {
		int said;

		if (tail->hooks.turn)
			tail->hooks.turn(tail->hooks.context);
		if (!tail->reader && attach(tail)) {
			nap(RETRY_MS);
			continue;
		}
		said = take_all(tail);
		look_for_ends(tail);
		tell_state(tail, said, waited);
		waited = await_records(tail);
	}
	return NULL;
}

/* ---- opening, closing, looking ----------------------------------------------- */

static void free_tail(struct tail *tail)
{
	r3ring_instance_close(tail->reader);
	for (uint32_t i = 0; i < tail->judged; i++)
		life_forget(&tail->come[i].life);
	free(tail->come);
	free(tail->ended);
	free(tail->buffer);
	pthread_mutex_destroy(&tail->lock);
	free(tail->runtime_dir);
	free(tail->name);
	free(tail);
}

static int copy_names(struct tail *tail, const struct tail_options *options)
{
	tail->name = strdup(options->instance);
	if (options->runtime_dir)
		tail->runtime_dir = strdup(options->runtime_dir);
	return tail->name && (tail->runtime_dir || !options->runtime_dir) ? 0 : -ENOMEM;
}

int tail_open(struct tail **tail, const struct tail_options *options, struct r3ring_error *err)
{
	struct tail *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->label = options->label;
	made->look_ms = options->look_ms;
	made->pid_namespace = namespaces_of_this_process().pid;
	made->watch = options->watch;
	made->hooks = options->hooks;
	/* Hooks may be called from then on. */
	*tail = made;
	r = copy_names(made, options);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, follow, made);
	if (r) {
		*tail = NULL;
		free_tail(made);
		return r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
					strerror(-r));
	}
	return 0;
}

void tail_close(struct tail *tail)
{
	if (!tail)
		return;
	r3ring_store_relaxed_u32(&tail->stopping, 1);
	pthread_join(tail->thread, NULL);
	free_tail(tail);
}

const char *tail_name(const struct tail *tail)
{
	return tail->name;
}

const char *tail_state_name(enum tail_state state)
{
	static const char *const names[TAIL_STATES] = {
		[TAIL_WAITING] = "waiting",
		[TAIL_LIVE] = "live",
		[TAIL_SILENT] = "silent",
		[TAIL_ENDED] = "ended",
	};

	return names[state];
}

void tail_get_status(struct tail *tail, struct tail_status *status)
{
	pthread_mutex_lock(&tail->lock);
	*status = tail->status;
	pthread_mutex_unlock(&tail->lock);
	status->records = r3ring_load_relaxed_u64(&tail->records);
	status->gaps = r3ring_load_relaxed_u64(&tail->gaps);
}
