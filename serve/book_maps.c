/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/book_maps.h"

struct r3ring_eplb_map *book_maps_newest(const struct engine_model *model, uint64_t epoch)
{
	struct r3ring_eplb_map *map = NULL;

	r3ring_load_map_in_force(model->load, R3RING_LOAD_MERGED, epoch, &map);
	return map;
}

/* Where nothing runs any more the book stays by what it has. */
static void look(struct book_maps *maps, const struct engine_model *model)
{
	const uint64_t before = maps->epoch;

	if (r3ring_load_epoch(model->load, R3RING_LOAD_MERGED, &maps->epoch) == 0)
		maps->due |= maps->epoch != before;
}

void book_maps_note(struct book_maps *maps, const struct engine_model *model,
		    const struct r3ring_record *record)
{
	maps->due |= record->type == R3RING_EPLB || record->type == R3RING_SCHEMA;
	look(maps, model);
}

void book_maps_ended(struct book_maps *maps, const struct engine_model *model)
{
	maps->due = true;
	look(maps, model);
}

uint32_t book_maps_give(struct book_maps *maps, const struct engine_model *model,
			struct r3ring_book *book)
{
	struct r3ring_eplb_map *map = book_maps_newest(model, maps->epoch);
	uint32_t gpus = map ? map->gpus : 0;

	maps->due = false;
	if (map) {
		r3ring_book_forget_epoch(book);
		r3ring_book_map(book, map, NULL);
	} else {
		r3ring_book_forget_map(book);
	}
	r3ring_eplb_map_free(map);
	return gpus;
}
