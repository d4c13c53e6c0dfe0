/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which EPLB map a book goes by: that which the load of its engine lies by, so that what is told of
 * either is true of the other. The follower's thread alone.
 */
#ifndef SERVE_BOOK_MAPS_H
#define SERVE_BOOK_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reserve.h>

#include "monitor/engine_model.h"

struct book_maps {
	uint64_t epoch; /* of the load, when that was looked at last */
	bool due;       /* the book has to be given the map of now */
};

/* The map that is in force, which the caller frees; NULL where none is known at all. */
struct r3ring_eplb_map *book_maps_newest(const struct engine_model *model, uint64_t epoch);

/* Any record, once the load has it. A map may be told in several, comes into force with a step of
 * whichever rank, and is none of those of a rank that began anew. */
void book_maps_note(struct book_maps *maps, const struct engine_model *model,
		    const struct r3ring_record *record);

/* Ranks have ended: they take their map along, where all others are behind. */
void book_maps_ended(struct book_maps *maps, const struct engine_model *model);

/*
 * Gives the book what is due: the map in force, whatever its epoch, or experts in order where none is
 * known. One of other GPUs than the book's it does not take.
 * Returns how many GPUs the map in force is of, 0: none is known.
 */
uint32_t book_maps_give(struct book_maps *maps, const struct engine_model *model,
			struct r3ring_book *book);

#endif
