/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expert-route reservation: a book of the expert capacity that an engine has promised.
 * A scheduler asks, before it lets a request run, whether every GPU still has room in
 * every layer for the experts that the request will most likely need.
 *
 *	create -> map -> { demand -> make -> commit -> update ... -> free } ... -> destroy
 *
 * Demand is kept per layer and logical expert, in integers, and projected to GPUs through
 * the EPLB map of the day. What a GPU is charged with is a function of the sums alone, so
 * that books balance: when the last reservation is gone, all is zero, whatever maps came
 * and went meanwhile.
 *
 * One book serves all data-parallel ranks of one engine: they run their layers together, on
 * the same GPUs, so what counts is the sum over their steps.
 *
 * All functions on a book may be called from any number of threads.
 */
#ifndef R3RING_RESERVE_H
#define R3RING_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/eplb.h>
#include <r3ring/error.h>
#include <r3ring/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One token's visit to one expert, in the units of demand and capacity: a fixed point that
 * lets a request that shares one token among many likely experts be told exactly. */
#define R3RING_DEMAND_TOKEN 1024u

/* Experts of a layer that a demand names; what falls to others is spread over all. */
#define R3RING_DEMAND_NAMED_MAX 64u

/* Rows that a demand may be of: more than any step has. */
#define R3RING_DEMAND_TOKENS_MAX R3RING_ROWS_MAX

/* ---- demand: what a request is expected to need in a step ----------------- */

struct r3ring_demand;

struct r3ring_demand_shape {
	uint32_t layers;
	uint32_t experts; /* logical, of a layer */
	uint32_t top_k;
};

/*
 * Room for the demand of a model's request. It then is uniform, of no tokens.
 *
 * @demand: receives the handle; untouched on failure. Pairs with r3ring_demand_destroy().
 * Returns 0, -EINVAL (a shape that no model has, or a NULL), -ENOMEM. One thread.
 */
R3RING_API int r3ring_demand_create(struct r3ring_demand **demand,
				    const struct r3ring_demand_shape *shape);
R3RING_API void r3ring_demand_destroy(struct r3ring_demand *demand);

/*
 * What it rests on. Counts are of visits, [layers][experts]; a layer without any is taken as
 * uniform. Experts that were not seen get a little of it all the same: each is counted as if
 * it had been visited once more.
 */
struct r3ring_evidence {
	const uint32_t *counts; /* NULL: none, every expert is as likely */
	uint64_t age_ns;        /* of the newest count; told again with each answer */
};

/*
 * Predicts that @tokens rows a step (1 in decode, a chunk in prefill) are routed as the
 * evidence says: tokens x top_k visits in each layer, to the unit. The experts that are named
 * are those with the most; equal ones by their number. A token visits an expert once: what one
 * would get beyond @tokens visits is spread over all experts of its layer, so that it is held at
 * @tokens, or a little above where nearly all are named.
 * @tokens: 0 (a demand of nothing) to R3RING_DEMAND_TOKENS_MAX.
 *
 * Returns 0, or -EINVAL (@tokens is more, or a NULL): the demand stays as it was.
 */
R3RING_API int r3ring_demand_predict(struct r3ring_demand *demand,
				     const struct r3ring_evidence *evidence, uint32_t tokens);

/* Units in a layer on an expert, the part that is spread over all included (rounded down).
 * 0 beyond the shape. */
R3RING_API uint64_t r3ring_demand_of(const struct r3ring_demand *demand, uint32_t layer,
				     uint32_t expert);

/* ---- the book ------------------------------------------------------------- */

struct r3ring_book;

struct r3ring_book_options {
	size_t size; /* sizeof(struct r3ring_book_options) */
	struct r3ring_demand_shape shape;
	uint32_t gpus;     /* 1 to 4096. Until a map is given: experts in even, contiguous parts */
	uint32_t capacity; /* visits of tokens a step that a GPU has room for in a layer; see
			    * r3ring_book_set_capacity() */
	uint32_t max_reservations; /* 0: 65536 */
};

/*
 * @book:    receives the handle; untouched on failure. Pairs with r3ring_book_destroy().
 * @options: copied.
 * Returns 0, -EINVAL (@book or @options is NULL, or an option, named), -ENOMEM. The handle given to
 * the other calls must not be NULL.
 */
R3RING_API int r3ring_book_create(struct r3ring_book **book,
				  const struct r3ring_book_options *options,
				  struct r3ring_error *err);

/* No thread may be using it any more. NULL is fine. */
R3RING_API void r3ring_book_destroy(struct r3ring_book *book);

/*
 * Sets the capacity of one GPU in one layer, or of all: R3RING_UNKNOWN_U32 stands for every.
 * What is reserved already stays, though it be more.
 * Returns 0, -ERANGE (layer or GPU).
 */
R3RING_API int r3ring_book_set_capacity(struct r3ring_book *book, uint32_t layer, uint32_t gpu,
					uint32_t tokens);

/*
 * Takes a new EPLB map, of all layers: the demand of a logical expert is shared evenly by its
 * replicas. What is reserved stays.
 *
 * Returns 0; -EINVAL (@map is NULL, another number of layers, experts or GPUs than the book's, an expert
 * without a place, a physical expert beyond what there are; nothing is changed: an engine that
 * goes on with other GPUs needs another book, in which is reserved again); -ESTALE (an
 * epoch before the one that the book has); -ENOMEM.
 */
R3RING_API int r3ring_book_map(struct r3ring_book *book, const struct r3ring_eplb_map *map,
			       struct r3ring_error *err);

/* The engine began anew, and its epochs with it, or the rank that had the newest map has ended and
 * all others are behind: the next map is taken whatever its epoch. Until then the book stays by the
 * one that it has, and answers tell its epoch. */
R3RING_API void r3ring_book_forget_epoch(struct r3ring_book *book);

/* No map is known any more, as of an engine that is back without one: experts lie in even, contiguous
 * parts, as before the first map, and the epoch is 0. What is reserved stays. */
R3RING_API void r3ring_book_forget_map(struct r3ring_book *book);

/* ---- reservations --------------------------------------------------------- */

struct r3ring_reserve_request {
	const char *key; /* names the reservation, 1 to R3RING_TEXT_ID_MAX bytes: the request's
			  * text id, most likely */
	uint64_t owner;  /* whose death frees it (r3ring_book_owner_gone()); 0: nobody's */
	uint64_t ttl_ns; /* until it must be committed or renewed; 0, or so long that `now_ns` and
			  * it are more than 64 bits hold: for ever */
	uint64_t now_ns; /* the caller's clock, any that only goes forward */
};

/* The tightest place, had the demand been (or as it is) added. */
struct r3ring_reserve_answer {
	uint64_t reservation; /* 0: not granted */
	bool existed;         /* granted before, under the same key */
	uint32_t layer, gpu;  /* where the least is left */
	uint32_t expert;      /* the one with the most demand there, its part of what is spread over
			       * all included; of replicas, those on that GPU */
	int64_t margin;       /* units left there; below 0: what is wanting */
	uint64_t evidence_age_ns;
	uint64_t epoch; /* of the map that was used; 0: none, experts lie in order */
};

/*
 * Reserves what @demand says. Idempotent: where the key is taken already, and by the same
 * owner, nothing is added and the answer is the one of now. Its demand is then of as many units:
 * which experts they fall to may have changed with the evidence, and what is held stays.
 *
 * Returns 0 (granted), -EBUSY (the answer says where and how much is wanting; nothing is
 * added), -EALREADY (the key is this owner's, of more units or fewer; nothing is changed, and the
 * answer names what is held: r3ring_book_update() changes it), -EEXIST (the key is another
 * owner's), -EINVAL (key, a demand of another shape, or a NULL),
 * -ENOBUFS (max_reservations, or more units than can be counted), -ENOMEM.
 */
R3RING_API int r3ring_book_make(struct r3ring_book *book,
				const struct r3ring_reserve_request *request,
				const struct r3ring_demand *demand,
				struct r3ring_reserve_answer *answer);

/* As r3ring_book_make() would answer a new key, and adds nothing. */
R3RING_API int r3ring_book_ask(struct r3ring_book *book, const struct r3ring_demand *demand,
			       struct r3ring_reserve_answer *answer);

/*
 * The request runs: no ttl ends the reservation any more, but @ttl_ns from @now_ns, if given: as
 * in struct r3ring_reserve_request.
 * Returns 0, -ENOENT (freed or expired; nothing is held).
 */
R3RING_API int r3ring_book_commit(struct r3ring_book *book, uint64_t reservation, uint64_t ttl_ns,
				  uint64_t now_ns);

/*
 * It is waited for on: it lasts @ttl_ns from @now_ns, instead of what was said before; 0 and more
 * than 64 bits hold: for ever.
 * Whether it is committed stays as it is.
 * Returns 0, -ENOENT (freed or expired; nothing is held).
 */
R3RING_API int r3ring_book_renew(struct r3ring_book *book, uint64_t reservation, uint64_t ttl_ns,
				 uint64_t now_ns);

/*
 * Its routes drifted, or it went from prefill to decode: replaces its demand. It runs already,
 * so this is never refused for want of room; a margin below 0 says so.
 * Returns 0, -ENOENT, -EINVAL (shape, or a NULL), -ENOBUFS, -ENOMEM (the old demand stays).
 */
R3RING_API int r3ring_book_update(struct r3ring_book *book, uint64_t reservation,
				  const struct r3ring_demand *demand,
				  struct r3ring_reserve_answer *answer);

/* Returns 0, -ENOENT. */
R3RING_API int r3ring_book_free(struct r3ring_book *book, uint64_t reservation);

/* For a REQUEST END: frees the reservation under that key. Where ranks use the same ids, for the end
 * of the last of them that runs (r3ring_requests_runs()). Returns 0, -ENOENT,
 * -EINVAL (@key is NULL). */
R3RING_API int r3ring_book_ended(struct r3ring_book *book, const char *key);

/* Frees what an owner that died held. Returns how many. */
R3RING_API uint32_t r3ring_book_owner_gone(struct r3ring_book *book, uint64_t owner);

/* Frees what has outlived its ttl. Returns how many. */
R3RING_API uint32_t r3ring_book_expire(struct r3ring_book *book, uint64_t now_ns);

/* ---- what it holds -------------------------------------------------------- */

struct r3ring_book_stats {
	uint32_t reservations;
	uint32_t committed; /* of these */
	uint64_t granted, refused;
	uint64_t freed, ended, expired, orphaned; /* how reservations went */
	uint64_t units;                           /* reserved, over all layers */
	uint64_t bytes;                           /* memory of reservations */
	uint64_t epoch;
};

R3RING_API void r3ring_book_get_stats(struct r3ring_book *book, struct r3ring_book_stats *stats);

/*
 * Units reserved on each GPU, [layers][gpus], and on each logical expert, [layers][experts];
 * either may be NULL.
 */
R3RING_API void r3ring_book_load(struct r3ring_book *book, uint64_t *gpu_load,
				 uint64_t *expert_load);

struct r3ring_reservation_info {
	uint64_t reservation, owner;
	uint64_t expires_ns; /* 0: never */
	bool committed;
	uint64_t units;
	uint64_t evidence_age_ns; /* when it was made or updated */
	char key[R3RING_TEXT_ID_MAX + 1];
};

/*
 * A page of the book: up to @capacity reservations in the order of their making, behind the number
 * @after (0: from the beginning), whether that is still there or not. Who goes on behind the last
 * of each page until one has less than @capacity is given each that is there all the while exactly
 * once; what is made or freed meanwhile may or may not be among them. The lock is held for a few
 * of them at a time, so that nobody who reserves waits longer than for another who does.
 * Returns how many were given. What else goes through all (r3ring_book_owner_gone(),
 * r3ring_book_expire()) does so in the same way.
 */
R3RING_API uint32_t r3ring_book_list(struct r3ring_book *book, uint64_t after,
				     struct r3ring_reservation_info *info, uint32_t capacity);

#ifdef __cplusplus
}
#endif

#endif
