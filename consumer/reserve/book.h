/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a book. Sums of demand by layer and logical expert are the truth; what each GPU
 * is charged with follows from them and the map. Callers hold the lock.
 */
#ifndef RESERVE_BOOK_H
#define RESERVE_BOOK_H

#include <pthread.h>
#include <uthash.h>

#include "consumer/reserve/demand.h"
#include "consumer/reserve/order.h"

/* One line's worth of what reserving touches. */
struct book_expert {
	uint64_t units; /* that reservations name */
	uint32_t replicas;
	uint32_t place; /* the GPU of its only replica; of several, where their list begins */
};

struct book_layer {
	struct book_expert *expert; /* [experts] */
	uint32_t *gpu;              /* lists of replicas' GPUs */
	double *part;               /* [gpus] of what is spread over all experts */
	uint64_t *charge;           /* [gpus] what of the named units falls to each */
	uint64_t *room;             /* [gpus] units */
	uint64_t spread;
};

/* What a layer may hold: a double tells all such numbers apart. */
#define LAYER_UNITS_MAX (1ull << 53)

struct reservation {
	uint64_t id;
	uint64_t owner;
	uint64_t expires_ns;
	bool committed;
	struct r3ring_demand *demand;
	UT_hash_handle by_key;
	char key[R3RING_TEXT_ID_MAX + 1];
};

struct r3ring_book {
	pthread_mutex_t door, lock; /* see book_lock() */
	struct r3ring_demand_shape shape;
	uint32_t gpus;
	uint32_t max_reservations;
	bool any_epoch; /* the next map is taken whatever its epoch */
	uint64_t next_id;
	struct book_layer *layer;
	struct order order;
	struct reservation *keys; /* the same ones */
	struct r3ring_book_stats stats;
};

/* The tightest place. */
struct book_place {
	uint32_t layer, gpu;
	int64_t margin;
};

/*
 * Whoever waits for the lock holds the door, so that who goes through all reservations, a few
 * with the lock at a time, cannot take it again before him.
 */
static inline void book_lock(struct r3ring_book *book)
{
	pthread_mutex_lock(&book->door);
	pthread_mutex_lock(&book->lock);
	pthread_mutex_unlock(&book->door);
}

static inline void book_unlock(struct r3ring_book *book)
{
	pthread_mutex_unlock(&book->lock);
}

/* Adds a demand to all sums, or takes it away again, exactly. */
void book_charge(struct r3ring_book *book, const struct r3ring_demand *demand);
void book_discharge(struct r3ring_book *book, const struct r3ring_demand *demand);

/* Whether the sums would still fit their types. */
bool book_has_range(const struct r3ring_book *book, const struct r3ring_demand *demand);

struct book_place book_tightest(const struct r3ring_book *book);
uint64_t book_gpu_units(const struct book_layer *layer, uint32_t gpu);

/* The expert that costs the GPU most in the layer, its part of what is spread included; the one with
 * the lowest number of equals. */
uint32_t book_heaviest(const struct r3ring_book *book, uint32_t layer, uint32_t gpu);

/* Charges a layer's GPUs anew, by its map of now. */
void book_project(struct book_layer *layer, uint32_t experts, uint32_t gpus);

/* Experts lie on GPUs in even, contiguous parts, whatever map there was. */
void book_layer_order(struct book_layer *layer, uint32_t experts, uint32_t gpus);

/* A layer whose experts do. Returns 0 or -ENOMEM. */
int book_layer_init(struct book_layer *layer, uint32_t experts, uint32_t gpus);
void book_layer_free(struct book_layer *layer);

/* Takes a reservation out of the book, its demand too, and frees it; @counter is one of the
 * book's, of how they went. */
void book_drop(struct r3ring_book *book, struct reservation *reservation, uint64_t *counter);

/* Frees all reservations; for the end. */
void book_forget_all(struct r3ring_book *book);

#endif
