/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going through all reservations. The lock is held for a few of them at a time, no longer than
 * it takes to make one, so that nobody who reserves waits for all; those that are made
 * meanwhile are not gone through.
 */
#include <string.h>

#include "consumer/reserve/book.h"

/* What is done each time: entries looked at, of which freeing one counts as many. */
#define LOOKS 128u
#define LOOKS_A_DROP 32u

struct walk {
	struct r3ring_book *book;
	uint64_t behind; /* the number that was looked at last */
	uint64_t last;   /* the newest there was when it began */
	uint32_t looks;  /* left of this time */
};

static struct walk walk_begin(struct r3ring_book *book, uint64_t behind)
{
	struct walk walk = {.book = book, .behind = behind};

	book_lock(book);
	walk.last = book->next_id;
	book_unlock(book);
	return walk;
}

static void walk_lock(struct walk *walk)
{
	book_lock(walk->book);
	walk->looks = LOOKS;
}

/* Returns whether there may be more. */
static bool walk_unlock(const struct walk *walk)
{
	book_unlock(walk->book);
	return walk->behind < walk->last;
}

/* The next one; NULL: enough for this time, or there is none. */
static struct reservation *walk_next(struct walk *walk)
{
	const struct order *order = &walk->book->order;

	for (uint32_t i = order_behind(order, walk->behind); walk->looks; i++) {
		if (i == order->end || order->entry[i].id > walk->last) {
			walk->behind = walk->last;
			return NULL;
		}
		walk->looks--;
		walk->behind = order->entry[i].id;
		if (order->entry[i].reservation)
			return order->entry[i].reservation;
	}
	return NULL;
}

/* ---- going ---------------------------------------------------------------- */

static uint32_t drop_those(struct r3ring_book *book,
			   bool (*goes)(const struct reservation *reservation, uint64_t by),
			   uint64_t by, uint64_t *counter)
{
	struct walk walk = walk_begin(book, 0);
	struct reservation *reservation;
	uint32_t count = 0;

	do {
		walk_lock(&walk);
		while ((reservation = walk_next(&walk))) {
			if (!goes(reservation, by))
				continue;
			book_drop(book, reservation, counter);
			walk.looks -= walk.looks < LOOKS_A_DROP ? walk.looks : LOOKS_A_DROP;
			count++;
		}
	} while (walk_unlock(&walk));
	return count;
}

static bool is_of(const struct reservation *reservation, uint64_t owner)
{
	return reservation->owner == owner;
}

uint32_t r3ring_book_owner_gone(struct r3ring_book *book, uint64_t owner)
{
	return owner ? drop_those(book, is_of, owner, &book->stats.orphaned) : 0;
}

static bool is_over(const struct reservation *reservation, uint64_t now_ns)
{
	return reservation->expires_ns && reservation->expires_ns <= now_ns;
}

uint32_t r3ring_book_expire(struct r3ring_book *book, uint64_t now_ns)
{
	return drop_those(book, is_over, now_ns, &book->stats.expired);
}

/* ---- looking -------------------------------------------------------------- */

static void describe(const struct reservation *reservation, struct r3ring_reservation_info *info)
{
	*info = (struct r3ring_reservation_info){
		.reservation = reservation->id,
		.owner = reservation->owner,
		.expires_ns = reservation->expires_ns,
		.committed = reservation->committed,
		.units = reservation->demand->units,
		.evidence_age_ns = reservation->demand->age_ns,
	};
	memcpy(info->key, reservation->key, sizeof(info->key));
}

uint32_t r3ring_book_list(struct r3ring_book *book, uint64_t after,
			  struct r3ring_reservation_info *info, uint32_t capacity)
{
	struct walk walk = walk_begin(book, after);
	const struct reservation *reservation;
	uint32_t count = 0;

	do {
		walk_lock(&walk);
		while (count < capacity && (reservation = walk_next(&walk)))
			describe(reservation, &info[count++]);
	} while (walk_unlock(&walk) && count < capacity);
	return count;
}
