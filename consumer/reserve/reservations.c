/* SPDX-License-Identifier: Apache-2.0 */
/* How a reservation is made, lives and goes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/reserve/book.h"

static struct reservation *by_key(struct r3ring_book *book, const char *key)
{
	struct reservation *found;

	HASH_FIND(by_key, book->keys, key, strlen(key), found);
	return found;
}

static size_t bytes_of(const struct reservation *reservation)
{
	return sizeof(*reservation) + demand_bytes(reservation->demand);
}

static void destroy(struct reservation *reservation)
{
	r3ring_demand_destroy(reservation->demand);
	free(reservation);
}

void book_drop(struct r3ring_book *book, struct reservation *reservation, uint64_t *counter)
{
	order_remove(&book->order, reservation->id);
	HASH_DELETE(by_key, book->keys, reservation);
	book_discharge(book, reservation->demand);
	book->stats.reservations--;
	book->stats.committed -= reservation->committed;
	book->stats.bytes -= bytes_of(reservation);
	++*counter;
	destroy(reservation);
}

void book_forget_all(struct r3ring_book *book)
{
	HASH_CLEAR(by_key, book->keys);
	for (uint32_t i = 0; i < book->order.end; i++) {
		if (book->order.entry[i].reservation)
			destroy(book->order.entry[i].reservation);
	}
	free(book->order.entry);
}

/* ---- answers -------------------------------------------------------------- */

/* The tightest place of the book as it is. Returns whether everything fits. */
static bool answer_now(const struct r3ring_book *book, const struct r3ring_demand *demand,
		       struct r3ring_reserve_answer *answer)
{
	struct book_place place = book_tightest(book);

	*answer = (struct r3ring_reserve_answer){
		.layer = place.layer,
		.gpu = place.gpu,
		.expert = book_heaviest(book, place.layer, place.gpu),
		.margin = place.margin,
		.evidence_age_ns = demand->age_ns,
		.epoch = book->stats.epoch,
	};
	return place.margin >= 0;
}

/* ---- time ----------------------------------------------------------------- */

/* 0: never; also where no clock comes so far. */
static uint64_t expiry(uint64_t now_ns, uint64_t ttl_ns)
{
	return ttl_ns && ttl_ns <= UINT64_MAX - now_ns ? now_ns + ttl_ns : 0;
}

/* ---- making --------------------------------------------------------------- */

static struct reservation *new_reservation(const struct r3ring_reserve_request *request,
					   const struct r3ring_demand *demand)
{
	struct reservation *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->demand = demand_copy(demand);
	if (!made->demand) {
		free(made);
		return NULL;
	}
	made->owner = request->owner;
	made->expires_ns = expiry(request->now_ns, request->ttl_ns);
	snprintf(made->key, sizeof(made->key), "%s", request->key);
	return made;
}

/* Puts it where it is found; false without memory, and then it is nowhere. */
static bool enter(struct r3ring_book *book, struct reservation *made)
{
	unsigned int entered = HASH_CNT(by_key, book->keys);

	if (order_make_room(&book->order))
		return false;
	HASH_ADD_KEYPTR(by_key, book->keys, made->key, strlen(made->key), made);
	if (HASH_CNT(by_key, book->keys) == entered)
		return false;
	made->id = ++book->next_id;
	order_append(&book->order, made->id, made);
	return true;
}

static int add(struct r3ring_book *book, struct reservation *made,
	       struct r3ring_reserve_answer *answer)
{
	book_charge(book, made->demand);
	if (!answer_now(book, made->demand, answer)) {
		book_discharge(book, made->demand);
		book->stats.refused++;
		return -EBUSY;
	}
	if (!enter(book, made)) {
		book_discharge(book, made->demand);
		return -ENOMEM;
	}
	answer->reservation = made->id;
	book->stats.granted++;
	book->stats.reservations++;
	book->stats.bytes += bytes_of(made);
	return 0;
}

static int again(const struct r3ring_book *book, const struct reservation *known,
		 const struct reservation *made, struct r3ring_reserve_answer *answer)
{
	if (known->owner != made->owner)
		return -EEXIST;
	answer_now(book, known->demand, answer);
	answer->reservation = known->id;
	answer->existed = true;
	return known->demand->units == made->demand->units ? 0 : -EALREADY;
}

static int make(struct r3ring_book *book, struct reservation *made,
		struct r3ring_reserve_answer *answer)
{
	if (book->stats.reservations >= book->max_reservations ||
	    !book_has_range(book, made->demand))
		return -ENOBUFS;
	return add(book, made, answer);
}

int r3ring_book_make(struct r3ring_book *book, const struct r3ring_reserve_request *request,
		     const struct r3ring_demand *demand, struct r3ring_reserve_answer *answer)
{
	struct reservation *made, *known;
	int r;

	if (!answer)
		return -EINVAL;
	*answer = (struct r3ring_reserve_answer){0};
	if (!request || !demand || !request->key || !request->key[0] ||
	    strlen(request->key) > R3RING_TEXT_ID_MAX ||
	    !demand_shapes_equal(&demand->shape, &book->shape))
		return -EINVAL;
	/* Before the lock: what others wait for is the book alone. */
	made = new_reservation(request, demand);
	if (!made)
		return -ENOMEM;
	book_lock(book);
	known = by_key(book, request->key);
	r = known ? again(book, known, made, answer) : make(book, made, answer);
	book_unlock(book);
	if (known || r)
		destroy(made);
	return r;
}

int r3ring_book_ask(struct r3ring_book *book, const struct r3ring_demand *demand,
		    struct r3ring_reserve_answer *answer)
{
	bool fits;

	if (!answer)
		return -EINVAL;
	*answer = (struct r3ring_reserve_answer){0};
	if (!demand || !demand_shapes_equal(&demand->shape, &book->shape))
		return -EINVAL;
	book_lock(book);
	if (!book_has_range(book, demand)) {
		book_unlock(book);
		return -ENOBUFS;
	}
	book_charge(book, demand);
	fits = answer_now(book, demand, answer);
	book_discharge(book, demand);
	book_unlock(book);
	return fits ? 0 : -EBUSY;
}

/* ---- living --------------------------------------------------------------- */

static int renew(struct r3ring_book *book, uint64_t reservation, bool commit, uint64_t expires_ns)
{
	struct reservation *found;

	book_lock(book);
	found = order_find(&book->order, reservation);
	if (found) {
		book->stats.committed += commit && !found->committed;
		found->committed |= commit;
		found->expires_ns = expires_ns;
	}
	book_unlock(book);
	return found ? 0 : -ENOENT;
}

int r3ring_book_commit(struct r3ring_book *book, uint64_t reservation, uint64_t ttl_ns,
		       uint64_t now_ns)
{
	return renew(book, reservation, true, expiry(now_ns, ttl_ns));
}

int r3ring_book_renew(struct r3ring_book *book, uint64_t reservation, uint64_t ttl_ns,
		      uint64_t now_ns)
{
	return renew(book, reservation, false, expiry(now_ns, ttl_ns));
}

static void replace_demand(struct r3ring_book *book, struct reservation *of,
			   struct r3ring_demand **demand)
{
	struct r3ring_demand *old = of->demand;

	book->stats.bytes -= bytes_of(of);
	book_discharge(book, old);
	of->demand = *demand;
	book_charge(book, of->demand);
	book->stats.bytes += bytes_of(of);
	*demand = old;
}

int r3ring_book_update(struct r3ring_book *book, uint64_t reservation,
		       const struct r3ring_demand *demand, struct r3ring_reserve_answer *answer)
{
	struct r3ring_demand *copy;
	struct reservation *found;
	int r = 0;

	if (!answer)
		return -EINVAL;
	*answer = (struct r3ring_reserve_answer){0};
	if (!demand || !demand_shapes_equal(&demand->shape, &book->shape))
		return -EINVAL;
	copy = demand_copy(demand);
	if (!copy)
		return -ENOMEM;
	book_lock(book);
	found = order_find(&book->order, reservation);
	if (!found) {
		r = -ENOENT;
	} else if (!book_has_range(book, copy)) {
		r = -ENOBUFS;
	} else {
		replace_demand(book, found, &copy);
		answer_now(book, found->demand, answer);
		answer->reservation = reservation;
		answer->existed = true;
	}
	book_unlock(book);
	r3ring_demand_destroy(copy);
	return r;
}

/* ---- going ---------------------------------------------------------------- */

int r3ring_book_free(struct r3ring_book *book, uint64_t reservation)
{
	struct reservation *found;

	book_lock(book);
	found = order_find(&book->order, reservation);
	if (found)
		book_drop(book, found, &book->stats.freed);
	book_unlock(book);
	return found ? 0 : -ENOENT;
}

int r3ring_book_ended(struct r3ring_book *book, const char *key)
{
	struct reservation *found;

	if (!key)
		return -EINVAL;
	book_lock(book);
	found = by_key(book, key);
	if (found)
		book_drop(book, found, &book->stats.ended);
	book_unlock(book);
	return found ? 0 : -ENOENT;
}
