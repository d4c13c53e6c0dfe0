/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "channel/clock.h"
#include "serve/book_maps.h"
#include "serve/endings.h"
#include "serve/served.h"

#define EXPIRE_NS 50000000ull

struct served {
	struct follower *follower;
	struct routes *routes;   /* NULL: they are not kept */
	uint32_t gpus, capacity; /* as served_options */
	uint64_t start;          /* drawn anew each time it is opened; of its first model */
	void (*replaced)(void *context, const struct served *served,
			 const struct served_change *change);
	void *context;
	/* The follower's thread's own: */
	uint64_t expired_ns; /* when it last looked for reservations that outlived their time */
	struct book_maps maps;
	uint64_t opened_ns;
	struct endings endings;
	struct latency latency; /* read by others */
	pthread_mutex_t lock;   /* of what follows, and of each model's `more` */
	struct served_change change;
};

/* What is promised of a model, as its `more`. */
struct promised {
	struct r3ring_book *book;
	int32_t *layer; /* [layers of the book] the model's numbers */
	uint32_t gpus;  /* of the book */
	uint32_t other; /* GPUs of the map in force, where those are not the book's; else 0 */
};

enum served_state served_state(const struct served *served)
{
	struct follower_status status;

	follower_get_status(served->follower, &status);
	if (status.tail.state == TAIL_WAITING)
		return SERVED_STARTING;
	if (status.tail.state == TAIL_ENDED)
		return SERVED_ENDED;
	return status.other_model ? SERVED_OTHER_MODEL : SERVED_RUNS;
}

/* ---- the book ------------------------------------------------------------- */

static int check_known(const struct served *served, uint32_t gpus, struct r3ring_error *err)
{
	if (!gpus)
		return r3ring_error_set(
			err, -EINVAL,
			"%s: how many GPUs it has is not known: its ranks tell of no "
			"expert parallelism, and no EPLB map that a step ran with is known; say so "
			"with --gpus",
			served_name(served));
	if (!served->capacity)
		return r3ring_error_set(err, -EINVAL,
					"%s: what its GPUs have room for is not known; say so with "
					"--capacity",
					served_name(served));
	return 0;
}

uint32_t served_gpus(const struct served *served)
{
	struct follower_status status;

	if (served->gpus)
		return served->gpus;
	follower_get_status(served->follower, &status);
	return status.expert_ranks;
}

static void drop_promised(void *more)
{
	struct promised *promised = more;

	r3ring_book_destroy(promised->book);
	free(promised->layer);
	free(promised);
}

static int note_layers(struct promised *promised, const struct r3ring_load_info *info)
{
	promised->layer = calloc(info->layers, sizeof(*promised->layer));
	if (!promised->layer)
		return -ENOMEM;
	for (uint32_t i = 0; i < info->layers; i++)
		promised->layer[i] = info->layer[i].layer_id;
	return 0;
}

static int make_book(const struct served *served, const struct r3ring_load_info *info,
		     const struct r3ring_eplb_map *map, struct promised *promised,
		     struct r3ring_error *err)
{
	const struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = {.layers = info->layers, .experts = info->experts, .top_k = info->top_k},
		.gpus = map ? map->gpus : served_gpus(served),
		.capacity = served->capacity,
	};
	int r = check_known(served, options.gpus, err);

	promised->gpus = options.gpus;
	if (r == 0)
		r = note_layers(promised, info);
	if (r == 0)
		r = r3ring_book_create(&promised->book, &options, err);
	if (r == 0 && map)
		r3ring_book_map(promised->book, map, NULL);
	return r;
}

/* Without memory, or a step of the model, nothing can be promised. */
static int make_promised(const struct served *served, struct engine_model *model,
			 const struct r3ring_load_info *info, struct r3ring_error *err)
{
	struct promised *promised = calloc(1, sizeof(*promised));
	struct r3ring_eplb_map *map = book_maps_newest(model, info->epoch);
	int r = promised ? make_book(served, info, map, promised, err) : -ENOMEM;

	r3ring_eplb_map_free(map);
	if (r) {
		if (promised)
			drop_promised(promised);
		return r;
	}
	model->more = promised;
	model->drop = drop_promised;
	return 0;
}

static int promise(const struct served *served, struct engine_model *model,
		   struct r3ring_error *err)
{
	struct r3ring_load_snapshot *snapshot;
	int r = r3ring_load_snapshot_create(&snapshot);

	if (r)
		return r;
	r = r3ring_load_read(model->load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
			     R3RING_LOAD_ANY_EPOCH, snapshot);
	if (r == 0)
		r = make_promised(served, model, r3ring_load_snapshot_info(snapshot), err);
	else
		r3ring_error_set(err, r, "%s: no step was seen yet", served_name(served));
	r3ring_load_snapshot_free(snapshot);
	return r;
}

int served_book(struct served *served, struct engine_model *model, struct r3ring_book **book,
		struct r3ring_error *err)
{
	int r = 0;

	pthread_mutex_lock(&served->lock);
	if (!model->more)
		r = promise(served, model, err);
	if (r == -ENOMEM)
		r3ring_error_set(err, r, "no memory for a book of %s", served_name(served));
	if (r == 0)
		*book = ((const struct promised *)model->more)->book;
	pthread_mutex_unlock(&served->lock);
	return r;
}

/* NULL: nothing was asked for yet. */
static struct promised *made(struct served *served, const struct engine_model *model)
{
	struct promised *promised;

	pthread_mutex_lock(&served->lock);
	promised = model->more;
	pthread_mutex_unlock(&served->lock);
	return promised;
}

int served_promises(struct served *served, const struct engine_model *model,
		    struct r3ring_error *err)
{
	const struct promised *promised = made(served, model);
	uint32_t other;

	pthread_mutex_lock(&served->lock);
	other = promised->other;
	pthread_mutex_unlock(&served->lock);
	if (!other)
		return 0;
	return r3ring_error_set(
		err, -ESTALE,
		"%s: its EPLB map is now of %u GPUs, and its reservations were made "
		"on %u: start r3ring serve anew, and reserve again",
		served_name(served), other, promised->gpus);
}

int32_t served_layer(const struct engine_model *model, uint32_t layer)
{
	return ((const struct promised *)model->more)->layer[layer];
}

struct r3ring_book *served_made_book(struct served *served, const struct engine_model *model)
{
	const struct promised *promised = made(served, model);

	return promised ? promised->book : NULL;
}

/* ---- what the follower tells ------------------------------------------------ */

/* What the book has to know of a record that its names know. */
static void tell_book(struct served *served, const struct r3ring_requests *names,
		      const struct r3ring_record *record)
{
	struct engine_model *model;
	struct r3ring_book *book;
	const char *id;

	if (record->type != R3RING_REQUEST || record->u.request.head.event != R3RING_REQUEST_END ||
	    record->u.request.head.reason == R3RING_END_PREEMPTED)
		return;
	id = r3ring_requests_id(names, record->u.request.head.handle);
	model = follower_model(served->follower);
	book = served_made_book(served, model);
	if (id && book)
		endings_told(&served->endings, served->follower, book, id);
	engine_model_put(model);
}

/* What is due, once there is a book to take it. Nothing more is promised while the map in force is of
 * other GPUs than the book's. */
static void give_map(struct served *served, const struct engine_model *model)
{
	struct promised *promised = made(served, model);
	uint32_t gpus;

	if (!served->maps.due || !promised)
		return;
	gpus = book_maps_give(&served->maps, model, promised->book);
	pthread_mutex_lock(&served->lock);
	promised->other = gpus == promised->gpus ? 0 : gpus;
	pthread_mutex_unlock(&served->lock);
}

static void note_ends(void *context)
{
	struct served *served = context;
	struct engine_model *model = follower_model(served->follower);

	book_maps_ended(&served->maps, model);
	give_map(served, model);
	engine_model_put(model);
}

/* A record of which most there are tells nothing of maps. */
static void note_map(struct served *served, const struct r3ring_record *record)
{
	struct engine_model *model;

	if (record->type == R3RING_LAYER)
		return;
	model = follower_model(served->follower);
	book_maps_note(&served->maps, model, record);
	give_map(served, model);
	engine_model_put(model);
}

/* What was published before somebody followed waited for nobody. */
static void note_latency(struct served *served, uint64_t published_ns)
{
	uint64_t now = clock_now_ns();

	if (published_ns >= served->opened_ns && published_ns <= now)
		latency_note(&served->latency, now - published_ns);
}

/* What was reserved goes with the model that it was foretold by, and is held by nobody. */
static void note_change(void *context, const struct engine_model *former,
			const struct engine_model *now)
{
	struct served *served = context;
	struct r3ring_book *book = served_made_book(served, former);
	struct served_change change = {.number = now->number};
	struct r3ring_book_stats stats = {0};

	if (book)
		r3ring_book_get_stats(book, &stats);
	change.freed = stats.reservations;
	memcpy(change.former, former->name, sizeof(change.former));
	memcpy(change.now, now->name, sizeof(change.now));
	served->maps = (struct book_maps){.due = true};
	pthread_mutex_lock(&served->lock);
	served->change = change;
	pthread_mutex_unlock(&served->lock);
	if (served->replaced)
		served->replaced(served->context, served, &change);
}

static void take_record(void *context, const struct r3ring_requests *names,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct served *served = context;

	(void)view;
	tell_book(served, names, record);
	if (record->type == R3RING_STEP_END)
		note_latency(served, record->u.step_end.head.publish_ns);
	note_map(served, record);
}

/* Whoever reserved there has to go elsewhere, and what runs there next has promised nothing. */
static void free_all(struct r3ring_book *book)
{
	struct r3ring_reservation_info info;

	while (r3ring_book_list(book, 0, &info, 1))
		r3ring_book_free(book, info.reservation);
}

static void expire(void *context)
{
	struct served *served = context;
	struct engine_model *model;
	struct r3ring_book *book;
	uint64_t now = clock_now_ns();

	if (now - served->expired_ns < EXPIRE_NS)
		return;
	served->expired_ns = now;
	model = follower_model(served->follower);
	book = served_made_book(served, model);
	if (book && served_state(served) != SERVED_RUNS)
		free_all(book);
	give_map(served, model);
	if (book) {
		endings_settle(&served->endings, served->follower, book);
		r3ring_book_expire(book, now);
	}
	engine_model_put(model);
}

/* ---- opening and closing -------------------------------------------------- */

static void free_served(struct served *served)
{
	routes_close(served->routes);
	follower_close(served->follower);
	endings_clear(&served->endings);
	pthread_mutex_destroy(&served->lock);
	free(served);
}

/* So few bytes are given whole. */
static int draw_start(struct served *served, struct r3ring_error *err)
{
	if (getrandom(&served->start, sizeof(served->start), 0) == sizeof(served->start))
		return 0;
	return r3ring_error_set(err, -errno, "no random number to name reservations by: %s",
				strerror(errno));
}

int served_open(struct served **served, const struct served_options *options,
		struct r3ring_error *err)
{
	struct served *made = calloc(1, sizeof(*made));
	struct follower_options follow = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.watch = options->watch,
		.label = "serve:load",
		.load = options->load,
		.history = options->history,
		.hooks = {.context = made,
			  .record = take_record,
			  .model = note_change,
			  .ends = note_ends,
			  .turn = expire},
	};
	const struct routes_options routes = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.max_bytes = options->routes_bytes,
	};
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->gpus = options->gpus;
	made->opened_ns = clock_now_ns();
	made->capacity = options->capacity;
	made->replaced = options->replaced;
	made->context = options->context;
	r = draw_start(made, err);
	if (r == 0)
		r = follower_open(&made->follower, &follow, err);
	if (r == 0 && routes.max_bytes)
		r = routes_open(&made->routes, &routes, err);
	if (r)
		free_served(made);
	else
		*served = made;
	return r;
}

void served_close(struct served *served)
{
	if (served)
		free_served(served);
}

struct follower *served_follower(const struct served *served)
{
	return served->follower;
}

const char *served_name(const struct served *served)
{
	return follower_name(served->follower);
}

uint64_t served_start(const struct served *served, const struct engine_model *model)
{
	return served->start + model->number;
}

void served_get_change(struct served *served, struct served_change *change)
{
	pthread_mutex_lock(&served->lock);
	*change = served->change;
	pthread_mutex_unlock(&served->lock);
}

struct routes *served_routes(const struct served *served)
{
	return served->routes;
}

const struct latency *served_latency(const struct served *served)
{
	return &served->latency;
}
