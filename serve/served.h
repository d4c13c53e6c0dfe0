/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that schedulers ask about: it is followed, and what its GPUs have promised is kept
 * in a book.
 */
#ifndef SERVE_SERVED_H
#define SERVE_SERVED_H

#include <r3ring/predict.h>
#include <r3ring/reserve.h>

#include "monitor/follower.h"
#include "serve/latency.h"
#include "serve/routes.h"

struct served;

/* The engine came back with another model. */
struct served_change {
	uint64_t number; /* of changes so far, this one too; 0: it never did */
	char former[R3RING_MODEL_NAME_MAX + 1], now[R3RING_MODEL_NAME_MAX + 1];
	uint32_t freed; /* reservations that went with the former one */
};

struct served_options {
	const char *instance;
	const char *runtime_dir;    /* NULL: as readers find it */
	struct daemon_watch *watch; /* tells of ends, outlives it */
	struct r3ring_load_options load;
	struct r3ring_history *history; /* what its requests did is kept there */
	uint32_t gpus;         /* 0: those of its EPLB map, else of its expert parallelism */
	uint32_t capacity;     /* visits of tokens a step that a GPU has room for; 0: nobody said */
	uint64_t routes_bytes; /* for its requests' routes; 0: they are not kept */
	/* Told by the follower's thread of each change. NULL: nobody is. */
	void (*replaced)(void *context, const struct served *served,
			 const struct served_change *change);
	void *context; /* of `replaced` */
};

/* As follower_open(). Pairs with served_close(). */
int served_open(struct served **served, const struct served_options *options,
		struct r3ring_error *err);
void served_close(struct served *served);

/* Its channels and state; and what is counted of its model, to be held while it is looked at. */
struct follower *served_follower(const struct served *served);

/* Whether its GPUs can be promised. What was reserved is freed where they cannot. */
enum served_state {
	SERVED_RUNS,     /* or nobody knows: it is silent */
	SERVED_STARTING, /* it is waited for, or nobody has said yet whether it has ended */
	SERVED_ENDED,
	SERVED_OTHER_MODEL, /* a part of it, while the rest has not ended */
};
enum served_state served_state(const struct served *served);

const char *served_name(const struct served *served);

/* A random number, another one each time it is opened, and one more for each model: a book counts
 * its reservations from 1, and whoever holds one of an earlier book must not be taken for the holder
 * of one of this. */
uint64_t served_start(const struct served *served, const struct engine_model *model);

/* The newest change of its model. Any thread. */
void served_get_change(struct served *served, struct served_change *change);

/* From a step's end in the ring until its load has it, of steps since it was opened. */
const struct latency *served_latency(const struct served *served);

/* Its requests' routes; NULL where they are not kept. */
struct routes *served_routes(const struct served *served);

/* How many GPUs its experts lie on, as was said or as its ranks tell; 0: not known. */
uint32_t served_gpus(const struct served *served);

/*
 * The book of a model that is held; made when it is first asked for, and there until it is put.
 * Returns 0, -ENODATA (no step was seen yet), -EINVAL (nobody knows how many GPUs it has, or
 * what they have room for), -ENOMEM; with a message.
 */
int served_book(struct served *served, struct engine_model *model, struct r3ring_book **book,
		struct r3ring_error *err);

/*
 * Whether anything more can be promised by its book, which is there: what is held by a map of other
 * GPUs cannot be told of those of now. It can be committed, waited for and freed all the same.
 * Returns 0 or -ESTALE, with a message.
 */
int served_promises(struct served *served, const struct engine_model *model,
		    struct r3ring_error *err);

/* The model's number of a layer of its book, which is there. */
int32_t served_layer(const struct engine_model *model, uint32_t layer);

/* Its book if there is one; NULL: nobody has asked for it yet. */
struct r3ring_book *served_made_book(struct served *served, const struct engine_model *model);

#endif
