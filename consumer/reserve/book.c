/* SPDX-License-Identifier: Apache-2.0 */
/* The book: its model, its GPUs, their capacity and map. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/reserve/book.h"

#define GPUS_MAX 4096u
#define RESERVATIONS_DEFAULT 65536u

static int check_options(const struct r3ring_book_options *options, struct r3ring_error *err)
{
	if (options->size != sizeof(*options))
		return r3ring_error_set(err, -EINVAL, "size of the options: %zu, not %zu",
					options->size, sizeof(*options));
	if (!demand_shape_is_one(&options->shape))
		return r3ring_error_set(
			err, -EINVAL, "no model has %u layers, %u experts and %u of them a token",
			options->shape.layers, options->shape.experts, options->shape.top_k);
	if (options->gpus < 1 || options->gpus > GPUS_MAX)
		return r3ring_error_set(err, -EINVAL, "gpus: %u, not 1 to %u", options->gpus,
					GPUS_MAX);
	if (options->capacity > R3RING_DEMAND_TOKENS_MAX)
		return r3ring_error_set(err, -EINVAL, "capacity: %u, more than %u",
					options->capacity, R3RING_DEMAND_TOKENS_MAX);
	return 0;
}

static int make_layers(struct r3ring_book *book)
{
	book->layer = calloc(book->shape.layers, sizeof(*book->layer));
	if (!book->layer)
		return -ENOMEM;
	for (uint32_t i = 0; i < book->shape.layers; i++) {
		if (book_layer_init(&book->layer[i], book->shape.experts, book->gpus))
			return -ENOMEM;
	}
	return 0;
}

int r3ring_book_create(struct r3ring_book **book, const struct r3ring_book_options *options,
		       struct r3ring_error *err)
{
	struct r3ring_book *made;
	int r;

	if (!book || !options)
		return r3ring_error_set(err, -EINVAL, "r3ring_book_create: %s is NULL",
					book ? "options" : "book");
	r = check_options(options, err);
	if (r)
		return r;
	made = calloc(1, sizeof(*made));
	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for a book");
	pthread_mutex_init(&made->door, NULL);
	pthread_mutex_init(&made->lock, NULL);
	made->shape = options->shape;
	made->gpus = options->gpus;
	made->max_reservations = options->max_reservations ? options->max_reservations
							   : RESERVATIONS_DEFAULT;
	if (make_layers(made)) {
		r3ring_book_destroy(made);
		return r3ring_error_set(err, -ENOMEM, "no memory for a book of %u x %u experts",
					options->shape.layers, options->shape.experts);
	}
	r3ring_book_set_capacity(made, R3RING_UNKNOWN_U32, R3RING_UNKNOWN_U32, options->capacity);
	*book = made;
	return 0;
}

void r3ring_book_destroy(struct r3ring_book *book)
{
	if (!book)
		return;
	book_forget_all(book);
	for (uint32_t i = 0; book->layer && i < book->shape.layers; i++)
		book_layer_free(&book->layer[i]);
	free(book->layer);
	pthread_mutex_destroy(&book->lock);
	pthread_mutex_destroy(&book->door);
	free(book);
}

/* ---- capacity ------------------------------------------------------------- */

/* [first, end) of what one number, or all, stand for; false beyond @count. */
static bool choose(uint32_t one, uint32_t count, uint32_t *first, uint32_t *end)
{
	*first = one == R3RING_UNKNOWN_U32 ? 0 : one;
	*end = one == R3RING_UNKNOWN_U32 ? count : one + 1;
	return *first < count;
}

int r3ring_book_set_capacity(struct r3ring_book *book, uint32_t layer, uint32_t gpu,
			     uint32_t tokens)
{
	uint32_t layer_first, layer_end, gpu_first, gpu_end;

	if (!choose(layer, book->shape.layers, &layer_first, &layer_end) ||
	    !choose(gpu, book->gpus, &gpu_first, &gpu_end))
		return -ERANGE;
	book_lock(book);
	for (uint32_t i = layer_first; i < layer_end; i++) {
		for (uint32_t g = gpu_first; g < gpu_end; g++)
			book->layer[i].room[g] = (uint64_t)tokens * R3RING_DEMAND_TOKEN;
	}
	book_unlock(book);
	return 0;
}

/* ---- EPLB maps ------------------------------------------------------------ */

static int check_map(const struct r3ring_book *book, const struct r3ring_eplb_map *map,
		     struct r3ring_error *err)
{
	if (map->layers != book->shape.layers || map->experts != book->shape.experts)
		return r3ring_error_set(
			err, -EINVAL, "the map is of %u layers of %u experts, the book of %u of %u",
			map->layers, map->experts, book->shape.layers, book->shape.experts);
	if (map->gpus != book->gpus || map->physical % map->gpus)
		return r3ring_error_set(
			err, -EINVAL,
			"the map puts %u physical experts on %u GPUs, the book has %u",
			map->physical, map->gpus, book->gpus);
	return 0;
}

/* Where one layer's experts are by the map; their units are not set. */
struct new_layer {
	struct book_expert *expert;
	uint32_t *gpu;
};

/* Reads the places of one expert; the list has @count entries before it. */
static int read_expert(const struct r3ring_eplb_map *map, const uint16_t *places,
		       struct new_layer *to, uint32_t expert, uint32_t count)
{
	uint32_t per_gpu = map->physical / map->gpus, replicas = 0;

	for (uint32_t i = 0; i < map->replicas; i++) {
		uint16_t physical = places[(size_t)expert * map->replicas + i];

		if (physical == R3RING_MISSING)
			continue;
		if (physical >= map->physical)
			return -EINVAL;
		to->gpu[count + replicas++] = physical / per_gpu;
	}
	to->expert[expert].replicas = replicas;
	to->expert[expert].place = replicas == 1 ? to->gpu[count] : count;
	return replicas ? 0 : -EINVAL;
}

static int read_layer(const struct r3ring_eplb_map *map, const uint16_t *places,
		      struct new_layer *to)
{
	uint32_t count = 0;

	to->expert = calloc(map->experts, sizeof(*to->expert));
	to->gpu = calloc((size_t)map->experts * map->replicas, sizeof(*to->gpu));
	if (!to->expert || !to->gpu)
		return -ENOMEM;
	for (uint32_t expert = 0; expert < map->experts; expert++) {
		if (read_expert(map, places, to, expert, count))
			return -EINVAL;
		count += to->expert[expert].replicas;
	}
	return 0;
}

static void free_layers(struct new_layer *layers, uint32_t count)
{
	for (uint32_t i = 0; layers && i < count; i++) {
		free(layers[i].expert);
		free(layers[i].gpu);
	}
	free(layers);
}

static int read_layers(const struct r3ring_eplb_map *map, struct new_layer *layers,
		       struct r3ring_error *err)
{
	size_t cells = (size_t)map->experts * map->replicas;
	int r = layers ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < map->layers; i++) {
		r = read_layer(map, map->map + i * cells, &layers[i]);
		if (r == -EINVAL)
			return r3ring_error_set(
				err, r,
				"layer %u of the map has an expert without a place, or "
				"one beyond the %u there are",
				i, map->physical);
	}
	return r ? r3ring_error_set(err, r, "no memory for a map") : 0;
}

/* The layer takes the new places, and its old ones go where those came from. */
static void move_experts(struct r3ring_book *book, uint32_t index, struct new_layer *to)
{
	struct book_layer *layer = &book->layer[index];
	const struct new_layer old = {layer->expert, layer->gpu};

	for (uint32_t expert = 0; expert < book->shape.experts; expert++)
		to->expert[expert].units = old.expert[expert].units;
	layer->expert = to->expert;
	layer->gpu = to->gpu;
	*to = old;
	book_project(layer, book->shape.experts, book->gpus);
}

int r3ring_book_map(struct r3ring_book *book, const struct r3ring_eplb_map *map,
		    struct r3ring_error *err)
{
	struct new_layer *layers;
	int r;

	if (!map)
		return r3ring_error_set(err, -EINVAL, "r3ring_book_map: map is NULL");
	r = check_map(book, map, err);
	if (r)
		return r;
	layers = calloc(map->layers, sizeof(*layers));
	r = read_layers(map, layers, err);
	book_lock(book);
	if (!r && map->epoch < book->stats.epoch && !book->any_epoch)
		r = r3ring_error_set(err, -ESTALE, "the map is of epoch %llu, the book's of %llu",
				     (unsigned long long)map->epoch,
				     (unsigned long long)book->stats.epoch);
	for (uint32_t i = 0; !r && i < map->layers; i++)
		move_experts(book, i, &layers[i]);
	if (!r) {
		book->stats.epoch = map->epoch;
		book->any_epoch = false;
	}
	book_unlock(book);
	free_layers(layers, map->layers);
	return r;
}

void r3ring_book_forget_epoch(struct r3ring_book *book)
{
	book_lock(book);
	book->any_epoch = true;
	book_unlock(book);
}

void r3ring_book_forget_map(struct r3ring_book *book)
{
	book_lock(book);
	for (uint32_t i = 0; i < book->shape.layers; i++)
		book_layer_order(&book->layer[i], book->shape.experts, book->gpus);
	book->stats.epoch = 0;
	book_unlock(book);
}

/* ---- what it holds -------------------------------------------------------- */

void r3ring_book_get_stats(struct r3ring_book *book, struct r3ring_book_stats *stats)
{
	book_lock(book);
	*stats = book->stats;
	book_unlock(book);
}

void r3ring_book_load(struct r3ring_book *book, uint64_t *gpu_load, uint64_t *expert_load)
{
	book_lock(book);
	for (uint32_t i = 0; i < book->shape.layers; i++) {
		const struct book_layer *layer = &book->layer[i];

		for (uint32_t gpu = 0; gpu_load && gpu < book->gpus; gpu++)
			*gpu_load++ = book_gpu_units(layer, gpu);
		for (uint32_t expert = 0; expert_load && expert < book->shape.experts; expert++)
			*expert_load++ =
				layer->expert[expert].units + layer->spread / book->shape.experts;
	}
	book_unlock(book);
}
