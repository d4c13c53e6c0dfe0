/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a channel step by step: all that its records say of a step, put together
 * by row and layer.
 */
#ifndef TESTS_SUPPORT_STEP_READER_H
#define TESTS_SUPPORT_STEP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/reader.h>

#define STEP_READER_LAYERS 128u

/* One step, as it was told. Arrays are by place in the schema's table and by row
 * numbered over the whole step. */
struct read_step {
	struct r3ring_step_record head;
	uint16_t *ids;  /* [layers][total_rows][top_k] */
	uint8_t *times; /* [layers][total_rows]: how often a row came */
	uint32_t layer_records[STEP_READER_LAYERS];
	uint32_t valid_rows[STEP_READER_LAYERS];
	uint32_t ids_missing[STEP_READER_LAYERS], ids_out_of_range[STEP_READER_LAYERS];
	uint32_t bad_records; /* LAYER and ROWS that do not fit their step and schema */
	struct r3ring_step_end_record end;
	struct r3ring_missing_layer missing[STEP_READER_LAYERS];
	int32_t *positions, *token_ids;   /* [total_rows] */
	uint32_t rows_content, rows_told; /* of ROWS records */
};

struct step_reader {
	struct r3ring_reader *reader;
	void *buffer;
	size_t capacity;
	struct r3ring_schema_record schema; /* the newest */
	struct r3ring_layer_entry layers[STEP_READER_LAYERS];
	struct r3ring_lost_record lost; /* the newest */
	uint32_t losses;
	uint64_t records;
	uint64_t generation; /* of the newest record */
	struct read_step step;
	bool ended; /* its STEP_END was read */
};

/* From the oldest record on; ends the process when it cannot. */
void step_reader_open(struct step_reader *reader, const char *dir, const char *channel);
void step_reader_close(struct step_reader *reader);

/* Reads to the end of the next step; false when it does not come in 20 seconds. */
bool step_reader_next(struct step_reader *reader);

/* Reads until that step is announced. */
bool step_reader_begun(struct step_reader *reader, uint64_t step);

/* Reads until @count LAYER records of the present step were told. */
bool step_reader_layers(struct step_reader *reader, uint32_t count);

/* Reads until a LOST record more was told. */
bool step_reader_lost(struct step_reader *reader);

/* Reads until a record of that generation was told. */
bool step_reader_generation(struct step_reader *reader, uint64_t generation);

/* Whether something is there to be read now, or comes within @ms. */
bool step_reader_has_more(struct step_reader *reader, int ms);

/* LAYER records of the present step so far. */
uint32_t read_step_records(const struct step_reader *reader);

/* Rows of [begin, end) at one layer that did not come exactly once, with the ids
 * of the rule in step_source.h. */
uint32_t read_step_wrong(const struct step_reader *reader, uint32_t layer, uint32_t begin,
			 uint32_t end);

/* The same over all layers. */
uint32_t read_step_all_wrong(const struct step_reader *reader, uint32_t begin, uint32_t end);

/* Rows of [begin, end) at one layer that came. */
uint32_t read_step_came(const struct step_reader *reader, uint32_t layer, uint32_t begin,
			uint32_t end);

/* One id as it came. */
uint16_t read_step_id(const struct step_reader *reader, uint32_t layer, uint32_t row, uint32_t k);

#endif
