/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "monitor/tail.h"
#include "serve/routes.h"

#define LOOK_MS 20u
#define KEY_BYTES_MIN 16384u /* that one prefix cache key may stand for, at least */

/* One that ended; the oldest is the first. */
struct ended {
	struct ended *prev, *next;
	struct r3ring_assembled *assembled;
};

struct known {
	char *name;
	uint64_t generation; /* of its newest SCHEMA; 0: none yet */
};

/* One that had to go. */
struct parted {
	char id[R3RING_TEXT_ID_MAX + 1]; /* "": none */
	enum routes_state state;
};

struct routes {
	struct tail *tail;
	uint64_t max_bytes;
	pthread_mutex_t lock; /* of what follows */
	struct r3ring_assembler *assembler;
	struct known *channel; /* [channels] in the tail's order, which is the assembler's */
	uint32_t channels;
	struct ended *ended;
	uint64_t ended_count;
	struct parted *parted;      /* [ROUTES_PARTED_MAX], by their number */
	uint64_t parted_count;      /* so far */
	struct routes_stats before; /* counts of assemblers before this one */
	uint64_t evicted, forgotten;
};

/* ---- what had to go -------------------------------------------------------------- */

static void note_parted(struct routes *routes, const char *id, enum routes_state state)
{
	struct parted *parted = &routes->parted[routes->parted_count++ % ROUTES_PARTED_MAX];

	snprintf(parted->id, sizeof(parted->id), "%s", id);
	parted->state = state;
	if (state == ROUTES_EVICTED)
		routes->evicted++;
	else
		routes->forgotten++;
}

/* Newest first. */
static const struct parted *parted_of(const struct routes *routes, const char *id)
{
	uint64_t kept = routes->parted_count < ROUTES_PARTED_MAX ? routes->parted_count
								 : ROUTES_PARTED_MAX;

	for (uint64_t i = 1; i <= kept; i++) {
		const struct parted *parted =
			&routes->parted[(routes->parted_count - i) % ROUTES_PARTED_MAX];

		if (strcmp(parted->id, id) == 0)
			return parted;
	}
	return NULL;
}

static void drop_oldest(struct routes *routes)
{
	struct ended *oldest = routes->ended;

	DL_DELETE(routes->ended, oldest);
	routes->ended_count--;
	r3ring_assembled_free(oldest->assembled);
	free(oldest);
}

static void forget_oldest(struct routes *routes)
{
	note_parted(routes, r3ring_assembled_get_info(routes->ended->assembled)->id,
		    ROUTES_FORGOTTEN);
	drop_oldest(routes);
}

/* ---- what is fed ------------------------------------------------------------------- */

static void keep(struct routes *routes, struct r3ring_assembled *assembled)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	bool evicted = info->flags & R3RING_ASSEMBLED_EVICTED;
	struct ended *ended = evicted ? NULL : malloc(sizeof(*ended));

	if (!ended) {
		note_parted(routes, info->id, evicted ? ROUTES_EVICTED : ROUTES_FORGOTTEN);
		r3ring_assembled_free(assembled);
		return;
	}
	ended->assembled = assembled;
	DL_APPEND(routes->ended, ended);
	if (++routes->ended_count > ROUTES_ENDED_MAX)
		forget_oldest(routes);
}

static uint64_t bytes_of(const struct routes *routes)
{
	struct r3ring_assembler_stats stats;

	r3ring_assembler_get_stats(routes->assembler, &stats);
	return stats.bytes;
}

static void keep_ready(struct routes *routes)
{
	struct r3ring_assembled *assembled;

	while ((assembled = r3ring_assembler_take(routes->assembler)))
		keep(routes, assembled);
	while (routes->ended && bytes_of(routes) > routes->max_bytes)
		forget_oldest(routes);
}

/* What lives has three quarters, so that there is room for what ended. */
static int make_assembler(struct routes *routes, struct r3ring_error *err)
{
	const struct r3ring_assembler_options options = {
		.size = sizeof(options),
		.max_bytes = routes->max_bytes / 4 * 3,
		.max_keys = routes->max_bytes / KEY_BYTES_MIN + 1,
		.keys_go_first = 1,
	};
	int r = r3ring_assembler_create(&routes->assembler, &options, err);

	for (uint32_t i = 0; r == 0 && i < routes->channels; i++) {
		int index = r3ring_assembler_channel(routes->assembler, routes->channel[i].name);

		r = index < 0 ? index : 0;
	}
	return r;
}

/* Nothing of another model's is kept; without memory for an assembler the old one stays. */
static bool begin_anew(struct routes *routes)
{
	struct r3ring_assembler *old = routes->assembler;
	struct r3ring_assembler_stats stats;

	if (make_assembler(routes, NULL) < 0) {
		if (routes->assembler != old)
			r3ring_assembler_destroy(routes->assembler);
		routes->assembler = old;
		return false;
	}
	while (routes->ended)
		drop_oldest(routes);
	r3ring_assembler_get_stats(old, &stats);
	routes->before.rows += stats.rows_placed;
	routes->before.rows_unattributed += stats.rows_unattributed;
	r3ring_assembler_destroy(old);
	return true;
}

static int take_channel(void *context, uint32_t channel, const char *name)
{
	struct routes *routes = context;
	struct known *channels = realloc(routes->channel, (channel + 1) * sizeof(*channels));
	int index = -ENOMEM;

	if (!channels)
		return -ENOMEM;
	pthread_mutex_lock(&routes->lock);
	routes->channel = channels;
	channels[channel] = (struct known){.name = strdup(name)};
	if (channels[channel].name)
		index = r3ring_assembler_channel(routes->assembler, name);
	if (index < 0)
		free(channels[channel].name);
	else
		routes->channels = channel + 1;
	pthread_mutex_unlock(&routes->lock);
	return index < 0 ? index : 0;
}

/* Whether the record is a schema of another generation than that of the channel's last one. */
static bool begins_generation(struct known *known, const struct r3ring_view *view,
			      const struct r3ring_record *record)
{
	uint64_t before = known->generation;

	if (record->type == R3RING_SCHEMA)
		known->generation = view->generation;
	return before != known->generation;
}

static void take_record(void *context, uint32_t channel, const char *name,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct routes *routes = context;
	bool begins = begins_generation(&routes->channel[channel], view, record);
	int r;

	(void)name;
	pthread_mutex_lock(&routes->lock);
	r = r3ring_assembler_feed(routes->assembler, channel, view, record);
	/* The engine began anew with another model; who goes on with another one is refused. */
	if (r == -EPROTO && begins && begin_anew(routes))
		r3ring_assembler_feed(routes->assembler, channel, view, record);
	keep_ready(routes);
	pthread_mutex_unlock(&routes->lock);
}

static void take_gap(void *context, uint32_t channel)
{
	struct routes *routes = context;

	pthread_mutex_lock(&routes->lock);
	r3ring_assembler_gap(routes->assembler, channel);
	keep_ready(routes);
	pthread_mutex_unlock(&routes->lock);
}

/* ---- looking ------------------------------------------------------------------------ */

static const struct r3ring_assembled *ended_of(const struct routes *routes, const char *id)
{
	const struct r3ring_assembled *newest = NULL;
	const struct ended *ended;

	DL_FOREACH(routes->ended, ended)
	{
		if (strcmp(r3ring_assembled_get_info(ended->assembled)->id, id) == 0)
			newest = ended->assembled;
	}
	return newest;
}

static int read_running(struct routes *routes, const char *id, const struct routes_range *range,
			struct routes_excerpt *excerpt)
{
	struct r3ring_assembled *looked;
	int r = r3ring_assembler_look(routes->assembler, id, &looked);

	if (r)
		return r;
	r = routes_excerpt_of(looked, range, excerpt);
	r3ring_assembled_free(looked);
	excerpt->state = ROUTES_RUNNING;
	return r;
}

static int read_any(struct routes *routes, const char *id, const struct routes_range *range,
		    struct routes_excerpt *excerpt)
{
	const struct parted *parted = parted_of(routes, id);
	const struct r3ring_assembled *ended;
	int r = read_running(routes, id, range, excerpt);

	if (r == -ENOENT) {
		ended = ended_of(routes, id);
		if (ended)
			r = routes_excerpt_of(ended, range, excerpt);
		excerpt->state = ROUTES_ENDED;
	}
	if (r == -ENOENT && parted) {
		excerpt->state = parted->state;
		return 0;
	}
	excerpt->evicted_before = parted && parted->state == ROUTES_EVICTED;
	return r;
}

int routes_read(struct routes *routes, const char *id, const struct routes_range *range,
		struct routes_excerpt *excerpt)
{
	int r;

	*excerpt = (struct routes_excerpt){0};
	pthread_mutex_lock(&routes->lock);
	r = read_any(routes, id, range, excerpt);
	pthread_mutex_unlock(&routes->lock);
	return r;
}

static void enter(struct routes_entry *entry, const char *id, enum routes_state state)
{
	snprintf(entry->id, sizeof(entry->id), "%s", id);
	entry->state = state;
}

static int list(struct routes *routes, const char **ids, struct routes_entry *entries,
		uint32_t most)
{
	int live = r3ring_assembler_live(routes->assembler, ids, most);
	uint32_t count = 0;
	struct ended *ended = routes->ended ? routes->ended->prev : NULL;

	if (live < 0)
		return live;
	while (count < (uint32_t)live) {
		enter(&entries[count], ids[count], ROUTES_RUNNING);
		count++;
	}
	for (; ended && count < most; ended = ended == routes->ended ? NULL : ended->prev)
		enter(&entries[count++], r3ring_assembled_get_info(ended->assembled)->id,
		      ROUTES_ENDED);
	return (int)count;
}

int routes_list(struct routes *routes, struct routes_entry *entries, uint32_t most)
{
	const char **ids = malloc((most + 1u) * sizeof(*ids));
	int r = -ENOMEM;

	if (!ids)
		return r;
	pthread_mutex_lock(&routes->lock);
	r = list(routes, ids, entries, most);
	pthread_mutex_unlock(&routes->lock);
	free(ids);
	return r;
}

void routes_get_stats(struct routes *routes, struct routes_stats *stats)
{
	struct r3ring_assembler_stats assembled;
	struct tail_status tail;

	tail_get_status(routes->tail, &tail);
	pthread_mutex_lock(&routes->lock);
	r3ring_assembler_get_stats(routes->assembler, &assembled);
	*stats = (struct routes_stats){
		.live = assembled.requests_live,
		.ended = routes->ended_count,
		.evicted = routes->evicted,
		.forgotten = routes->forgotten,
		.bytes = assembled.bytes,
		.max_bytes = routes->max_bytes,
		.rows = routes->before.rows + assembled.rows_placed,
		.rows_unattributed = routes->before.rows_unattributed + assembled.rows_unattributed,
		.gaps = tail.gaps,
	};
	pthread_mutex_unlock(&routes->lock);
}

/* ---- opening and closing -------------------------------------------------------------- */

void routes_close(struct routes *routes)
{
	if (!routes)
		return;
	tail_close(routes->tail);
	while (routes->ended)
		drop_oldest(routes);
	r3ring_assembler_destroy(routes->assembler);
	for (uint32_t i = 0; i < routes->channels; i++)
		free(routes->channel[i].name);
	free(routes->channel);
	free(routes->parted);
	pthread_mutex_destroy(&routes->lock);
	free(routes);
}

int routes_open(struct routes **routes, const struct routes_options *options,
		struct r3ring_error *err)
{
	struct routes *made = calloc(1, sizeof(*made));
	const struct tail_options tail = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.label = "serve:routes",
		.look_ms = LOOK_MS,
		.hooks = {.context = made,
			  .channel = take_channel,
			  .record = take_record,
			  .gap = take_gap},
	};
	int r = -ENOMEM;

	if (!made)
		return r3ring_error_set(err, r, "no memory for routes of %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->max_bytes = options->max_bytes;
	made->parted = calloc(ROUTES_PARTED_MAX, sizeof(*made->parted));
	if (made->parted)
		r = make_assembler(made, err);
	else
		r3ring_error_set(err, r, "no memory for routes of %s", options->instance);
	if (r == 0)
		r = tail_open(&made->tail, &tail, err);
	if (r) {
		routes_close(made);
		return r;
	}
	*routes = made;
	return 0;
}
