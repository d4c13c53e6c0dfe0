/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: a ring of buckets, each of the steps of an eighth of the window. A bucket remembers
 * what had been counted when it began, so that a window's counts are a difference, and steps
 * leave it without being touched.
 */
#include "consumer/load/load.h"

/* What a window has then fits 32 bits, in which its difference is right. */
#define BUCKET_IDS (UINT32_MAX / LOAD_BUCKETS)

void load_window_open(struct load_window *window, enum r3ring_load_over over, uint64_t length)
{
	window->over = over;
	window->length = (length - 1) / LOAD_BUCKETS + 1;
	window->most = length / window->length < LOAD_BUCKETS ? (uint32_t)(length / window->length)
							      : LOAD_BUCKETS;
}

/* ---- accounts --------------------------------------------------------------- */

void load_accounts_add(struct r3ring_load_accounts *to, const struct r3ring_load_accounts *from)
{
	to->counted += from->counted;
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		to->left_out[i] += from->left_out[i];
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		to->lost[i] += from->lost[i];
	to->gaps += from->gaps;
}

void load_stretch_add(struct load_stretch *to, const struct load_stretch *from)
{
	if (!to->steps) {
		to->from_step = from->from_step;
		to->from_ns = from->from_ns;
	}
	to->steps += from->steps;
	to->to_step = from->to_step;
	to->to_ns = from->to_ns;
	to->ids += from->ids;
	to->cut |= from->cut;
	load_accounts_add(&to->accounts, &from->accounts);
}

/* ---- buckets ------------------------------------------------------------------ */

static struct load_bucket *bucket_at(struct load_window *window, uint32_t i)
{
	return &window->bucket[(window->first + i) % LOAD_BUCKETS];
}

static struct load_bucket *newest(struct load_window *window)
{
	return window->used ? bucket_at(window, window->used - 1) : NULL;
}

static void oldest_leaves(struct load_window *window)
{
	window->first = (window->first + 1) % LOAD_BUCKETS;
	window->used--;
}

/* Of buckets that hold too many ids there are too few. */
static void leave_for_room(struct load_window *window)
{
	window->left = true;
	window->left_number = bucket_at(window, 0)->number;
	oldest_leaves(window);
}

/* Time passes by buckets in which nothing ran. */
static void leave_by_time(struct load_window *window, uint64_t number)
{
	while (window->used && bucket_at(window, 0)->number + LOAD_BUCKETS <= number)
		oldest_leaves(window);
}

static uint64_t number_of(const struct load_window *window, const struct load_bucket *last,
			  const struct load_step *step)
{
	uint64_t number = step->ns / window->length;

	if (window->over != R3RING_LOAD_TIME)
		return 0;
	return last && last->number > number ? last->number : number;
}

static bool is_full(const struct load_window *window, const struct load_bucket *bucket,
		    uint64_t number, uint64_t ids)
{
	if (bucket->stretch.ids + ids > BUCKET_IDS)
		return true;
	if (window->over == R3RING_LOAD_TIME)
		return bucket->number != number;
	return bucket->stretch.steps >= window->length;
}

void load_bucket_begin(struct load_bucket *bucket, struct load_board *board)
{
	bucket->version = ++board->versions;
	bucket->stretch = (struct load_stretch){0};
	load_pool_leave(&board->pool, bucket->start);
	bucket->start = load_pool_share(&board->pool, board->now->running);
}

static struct load_bucket *bucket_for(struct load_window *window, struct load_board *board,
				      const struct load_step *step, uint64_t ids)
{
	struct load_bucket *last = newest(window);
	uint64_t number = number_of(window, last, step);
	struct load_bucket *bucket;

	if (last && !is_full(window, last, number, ids))
		return last;
	if (window->over == R3RING_LOAD_TIME)
		leave_by_time(window, number);
	if (window->used == window->most)
		leave_for_room(window);
	bucket = bucket_at(window, window->used++);
	bucket->number = number;
	load_bucket_begin(bucket, board);
	return bucket;
}

struct load_stretch load_stretch_of(const struct load_board *board, const struct load_step *step)
{
	return (struct load_stretch){
		.steps = 1,
		.from_step = step->head.step,
		.to_step = step->head.step,
		.from_ns = step->ns,
		.to_ns = step->ns,
		.ids = (uint64_t)step->rows * board->top_k,
		.accounts = step->accounts,
	};
}

void load_window_add(struct load_window *window, struct load_board *board,
		     const struct load_step *step)
{
	const struct load_stretch stretch = load_stretch_of(board, step);

	load_stretch_add(&bucket_for(window, board, step, stretch.ids)->stretch, &stretch);
}

void load_window_account(struct load_window *window, const struct r3ring_load_accounts *accounts)
{
	struct load_bucket *bucket = newest(window);

	if (bucket)
		load_accounts_add(&bucket->stretch.accounts, accounts);
}

static const struct load_bucket *const_bucket(const struct load_window *window, uint32_t i)
{
	return &window->bucket[(window->first + i) % LOAD_BUCKETS];
}

/* Steps leave by an eighth of what it is to hold: then it still has more than seven. */
static bool is_cut(const struct load_window *window, uint64_t steps)
{
	if (!window->left)
		return false;
	if (window->over == R3RING_LOAD_TIME)
		return window->left_number + LOAD_BUCKETS >
		       const_bucket(window, window->used - 1)->number;
	return steps <= window->length * (window->most - 1);
}

const struct load_bucket *load_window_begin(const struct load_window *window,
					    struct load_stretch *stretch)
{
	*stretch = (struct load_stretch){0};
	for (uint32_t i = 0; i < window->used; i++)
		load_stretch_add(stretch, &const_bucket(window, i)->stretch);
	stretch->cut = is_cut(window, stretch->steps);
	return const_bucket(window, 0);
}
