/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: a ring of buckets, each of the steps of an eighth of the window that ran with
 * one EPLB map, and the sum of them all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

/* The sum of all buckets then fits 32 bits. */
#define BUCKET_IDS (UINT32_MAX / LOAD_BUCKETS)

int load_window_open(struct load_window *window, enum r3ring_load_over over, uint64_t length,
		     const struct cells_shape *shape)
{
	size_t bytes = cells_sum_bytes(shape);

	window->over = over;
	window->length = (length - 1) / LOAD_BUCKETS + 1;
	window->most = length / window->length < LOAD_BUCKETS ? (uint32_t)(length / window->length)
							      : LOAD_BUCKETS;
	window->sum = cells_alloc(bytes);
	for (uint32_t i = 0; i < LOAD_BUCKETS; i++) {
		window->bucket[i].counts = cells_alloc(bytes);
		if (!window->bucket[i].counts)
			return -ENOMEM;
	}
	return window->sum ? 0 : -ENOMEM;
}

void load_window_close(struct load_window *window)
{
	for (uint32_t i = 0; i < LOAD_BUCKETS; i++)
		free(window->bucket[i].counts);
	free(window->sum);
	free(window->since);
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

static void stretch_add(struct load_stretch *to, const struct load_stretch *from)
{
	if (!to->steps) {
		to->from_step = from->from_step;
		to->from_ns = from->from_ns;
	}
	to->steps += from->steps;
	to->to_step = from->to_step;
	to->to_ns = from->to_ns;
	to->ids += from->ids;
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

static bool all_of(struct load_window *window, uint64_t epoch)
{
	for (uint32_t i = 0; i < window->used; i++)
		if (bucket_at(window, i)->epoch != epoch)
			return false;
	return true;
}

/* @epoch: the newest, which `since` is of. */
static void oldest_leaves(struct load_window *window, const struct cells_shape *shape,
			  uint64_t epoch)
{
	struct load_bucket *oldest = bucket_at(window, 0);

	cells_subtract(window->sum, oldest->counts, cells_sum_count(shape));
	if (window->mixed && window->since && oldest->epoch == epoch)
		cells_subtract(window->since, oldest->counts, cells_sum_count(shape));
	memset(oldest->counts, 0, cells_sum_bytes(shape));
	window->first = (window->first + 1) % LOAD_BUCKETS;
	window->used--;
}

/* Time passes by buckets in which nothing ran. */
static void leave_by_time(struct load_window *window, const struct cells_shape *shape,
			  uint64_t number, uint64_t epoch)
{
	while (window->used && bucket_at(window, 0)->number + LOAD_BUCKETS <= number)
		oldest_leaves(window, shape, epoch);
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
		    const struct load_step *step, uint64_t number, uint64_t ids)
{
	if (bucket->epoch != step->head.eplb_epoch || bucket->stretch.ids + ids > BUCKET_IDS)
		return true;
	if (window->over == R3RING_LOAD_TIME)
		return bucket->number != number;
	return bucket->stretch.steps >= window->length;
}

/* The steps that ran with the newest map, where others in the window did not. */
static void begin_epoch(struct load_window *window, const struct cells_shape *shape, uint64_t epoch)
{
	if (!window->since)
		window->since = cells_alloc(cells_sum_bytes(shape));
	if (window->since)
		memset(window->since, 0, cells_sum_bytes(shape));
	for (uint32_t i = 0; window->since && i < window->used; i++)
		if (bucket_at(window, i)->epoch == epoch)
			cells_add(window->since, bucket_at(window, i)->counts,
				  cells_sum_count(shape));
	window->mixed = true;
}

static struct load_bucket *bucket_for(struct load_window *window, const struct cells_shape *shape,
				      const struct load_step *step, uint64_t ids)
{
	struct load_bucket *last = newest(window);
	uint64_t number = number_of(window, last, step);
	struct load_bucket *bucket;

	if (last && !is_full(window, last, step, number, ids))
		return last;
	if (last && last->epoch != step->head.eplb_epoch)
		begin_epoch(window, shape, step->head.eplb_epoch);
	if (window->over == R3RING_LOAD_TIME)
		leave_by_time(window, shape, number, step->head.eplb_epoch);
	if (window->used == window->most)
		oldest_leaves(window, shape, step->head.eplb_epoch);
	bucket = bucket_at(window, window->used++);
	bucket->epoch = step->head.eplb_epoch;
	bucket->number = number;
	bucket->stretch = (struct load_stretch){0};
	window->mixed = !all_of(window, bucket->epoch);
	return bucket;
}

void load_window_add(struct load_window *window, const struct cells_shape *shape,
		     const struct load_step *step, uint16_t top_k)
{
	const struct load_stretch stretch = {
		.steps = 1,
		.from_step = step->head.step,
		.to_step = step->head.step,
		.from_ns = step->ns,
		.to_ns = step->ns,
		.ids = (uint64_t)step->rows * top_k,
		.accounts = step->accounts,
	};
	struct load_bucket *bucket = bucket_for(window, shape, step, stretch.ids);
	const size_t count = cells_sum_count(shape);

	cells_add(bucket->counts, step->counts, count);
	cells_add(window->sum, step->counts, count);
	if (window->mixed && window->since)
		cells_add(window->since, step->counts, count);
	stretch_add(&bucket->stretch, &stretch);
}

void load_window_account(struct load_window *window, const struct r3ring_load_accounts *accounts)
{
	struct load_bucket *bucket = newest(window);

	if (bucket)
		load_accounts_add(&bucket->stretch.accounts, accounts);
}

void load_window_sum(const struct load_window *window, struct load_stretch *all,
		     struct load_stretch *since)
{
	const struct load_bucket *last =
		&window->bucket[(window->first + window->used - 1) % LOAD_BUCKETS];

	*all = (struct load_stretch){0};
	*since = (struct load_stretch){0};
	for (uint32_t i = 0; i < window->used; i++) {
		const struct load_bucket *bucket =
			&window->bucket[(window->first + i) % LOAD_BUCKETS];

		stretch_add(all, &bucket->stretch);
		if (bucket->epoch == last->epoch)
			stretch_add(since, &bucket->stretch);
	}
}
