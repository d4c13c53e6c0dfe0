/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/book_maps.h"

struct r3ring_eplb_map *book_maps_newest(const struct engine_model *model, uint64_t epoch)
{
	struct r3ring_eplb_map *map = NULL;

	r3ring_load_map_in_force(model->load, R3RING_LOAD_MERGED, epoch, &map);
	return map;
}

void book_maps_note(struct book_maps *maps, const struct r3ring_record *record)
{
	if (record->type == R3RING_EPLB)
		maps->due = true;
	if (record->type != R3RING_STEP || record->u.step.head.eplb_epoch <= maps->step_epoch)
		return;
	maps->step_epoch = record->u.step.head.eplb_epoch;
	maps->due = true;
}

uint32_t book_maps_give(struct book_maps *maps, const struct engine_model *model,
			struct r3ring_book *book)
{
	struct r3ring_eplb_map *map = book_maps_newest(model, maps->step_epoch);
	uint32_t gpus = map ? map->gpus : 0;

	maps->due = false;
	if (map && map->epoch >= maps->epoch && r3ring_book_map(book, map, NULL) == 0)
		maps->epoch = map->epoch;
	r3ring_eplb_map_free(map);
	return gpus;
}

/* ---- ends ------------------------------------------------------------------- */

static void give_order(struct r3ring_book *book, const struct r3ring_load_info *info, uint32_t gpus)
{
	struct r3ring_eplb_map *map;

	if (r3ring_eplb_map_plain(&map, info->layers, info->experts, gpus, NULL))
		return;
	r3ring_book_map(book, map, NULL);
	r3ring_eplb_map_free(map);
}

static void fall_back(struct book_maps *maps, const struct r3ring_load_info *info,
		      struct r3ring_book *book, uint32_t gpus)
{
	if (info->epoch >= maps->step_epoch)
		return;
	book_maps_begin_anew(maps, book);
	maps->step_epoch = info->epoch;
	maps->due = info->epoch > 0;
	if (!info->epoch && book)
		give_order(book, info, gpus);
}

void book_maps_ended(struct book_maps *maps, const struct engine_model *model,
		     struct r3ring_book *book, uint32_t gpus)
{
	struct r3ring_load_snapshot *snapshot;

	if (r3ring_load_snapshot_create(&snapshot))
		return;
	if (r3ring_load_read(model->load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
			     R3RING_LOAD_ANY_EPOCH, snapshot) == 0)
		fall_back(maps, r3ring_load_snapshot_info(snapshot), book, gpus);
	r3ring_load_snapshot_free(snapshot);
}

void book_maps_begin_anew(struct book_maps *maps, struct r3ring_book *book)
{
	if (book)
		r3ring_book_forget_epoch(book);
	maps->epoch = 0;
	maps->step_epoch = 0;
}
