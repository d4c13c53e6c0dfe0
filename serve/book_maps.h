/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which EPLB map a book goes by: the newest that a step of a rank which has not ended ran with. The
 * follower's thread alone.
 */
#ifndef SERVE_BOOK_MAPS_H
#define SERVE_BOOK_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reserve.h>

#include "monitor/engine_model.h"

struct book_maps {
	uint64_t epoch;      /* of the newest map that the book was given */
	uint64_t step_epoch; /* of the newest one that such a step ran with */
	bool due;            /* such a step, or a map, came since there was one to give */
};

/* The map that is in force, which the caller frees; NULL where none is known at all. */
struct r3ring_eplb_map *book_maps_newest(const struct engine_model *model, uint64_t epoch);

/* Any record. A map may be told in several, and comes into force with a step of whichever rank. */
void book_maps_note(struct book_maps *maps, const struct r3ring_record *record);

/*
 * Gives the book what is due. One of other GPUs than the book's it does not take.
 * Returns how many GPUs the map in force is of, 0: none is known.
 */
uint32_t book_maps_give(struct book_maps *maps, const struct engine_model *model,
			struct r3ring_book *book);

/*
 * Ranks have ended: they take their map along, where all others are behind; another is due then, and
 * where those ran without any the experts of the book, if there is one, lie in order.
 * @gpus: of the book.
 */
void book_maps_ended(struct book_maps *maps, const struct engine_model *model,
		     struct r3ring_book *book, uint32_t gpus);

/* Epochs are counted from the beginning: of an engine that began anew, or another model. @book: that
 * goes on; NULL: none does. */
void book_maps_begin_anew(struct book_maps *maps, struct r3ring_book *book);

#endif
