/* SPDX-License-Identifier: Apache-2.0 */
/* A channel, read step by step. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/step_reader.h"
#include "tests/support/step_source.h"

#define DEADLINE_S 20
#define WAIT_MS 100
#define RECORD_ALIGN 64

static void die(const char *what)
{
	fprintf(stderr, "step reader: %s\n", what);
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

static void free_step(struct read_step *step)
{
	free(step->ids);
	free(step->times);
	free(step->positions);
	free(step->token_ids);
	*step = (struct read_step){0};
}

void step_reader_open(struct step_reader *reader, const char *dir, const char *channel)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.channel = channel,
	};
	struct r3ring_error err;

	memset(reader, 0, sizeof(*reader));
	if (r3ring_reader_open(&reader->reader, &options, &err) < 0)
		die(err.text);
}

void step_reader_close(struct step_reader *reader)
{
	r3ring_reader_close(reader->reader);
	free(reader->buffer);
	free_step(&reader->step);
	memset(reader, 0, sizeof(*reader));
}

/* ---- records ------------------------------------------------------------ */

static void take_schema(struct step_reader *reader, const struct r3ring_record *record)
{
	reader->schema = record->u.schema.head;
	if (reader->schema.layers > STEP_READER_LAYERS)
		die("a schema with more layers than tests have");
	memcpy(reader->layers, record->u.schema.layers,
	       reader->schema.layers * sizeof(reader->layers[0]));
}

static void begin_step(struct step_reader *reader, const struct r3ring_record *record)
{
	size_t rows = record->u.step.head.total_rows;
	size_t layer_rows = rows * reader->schema.layers;
	struct read_step *step = &reader->step;

	free_step(step);
	reader->ended = false;
	step->head = record->u.step.head;
	step->ids = allocate(layer_rows * reader->schema.top_k, sizeof(*step->ids));
	step->times = allocate(layer_rows, sizeof(*step->times));
	step->positions = allocate(rows, sizeof(*step->positions));
	step->token_ids = allocate(rows, sizeof(*step->token_ids));
}

static bool layer_fits(const struct step_reader *reader, const struct r3ring_layer_record *head)
{
	const struct r3ring_step_record *step = &reader->step.head;

	return !reader->ended && head->step == step->step &&
	       head->layer_index < reader->schema.layers &&
	       head->layer_id == reader->layers[head->layer_index].layer_id &&
	       head->kind == reader->layers[head->layer_index].kind &&
	       head->top_k == reader->schema.top_k && head->total_rows == step->total_rows &&
	       head->row >= step->row_begin && head->row + head->rows <= step->row_end &&
	       head->rows <= reader->schema.rows_per_record && head->valid_rows <= head->rows;
}

static void take_layer(struct step_reader *reader, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	struct read_step *step = &reader->step;
	uint32_t layer = head->layer_index;
	size_t first;

	if (!layer_fits(reader, head)) {
		step->bad_records++;
		return;
	}
	first = (size_t)layer * step->head.total_rows + head->row;
	memcpy(step->ids + first * head->top_k, record->u.layer.ids,
	       (size_t)head->rows * head->top_k * sizeof(*step->ids));
	for (uint32_t i = 0; i < head->rows; i++)
		step->times[first + i]++;
	step->layer_records[layer]++;
	step->valid_rows[layer] += head->valid_rows;
	step->ids_missing[layer] = head->missing;
	step->ids_out_of_range[layer] = head->out_of_range;
}

static void take_rows(struct step_reader *reader, const struct r3ring_record *record)
{
	const struct r3ring_rows_record *head = &record->u.rows.head;
	struct read_step *step = &reader->step;
	size_t bytes = head->rows * sizeof(int32_t);

	if (reader->ended || head->step != step->head.step || head->row < step->head.row_begin ||
	    head->row + head->rows > step->head.row_end) {
		step->bad_records++;
		return;
	}
	if (record->u.rows.positions)
		memcpy(step->positions + head->row, record->u.rows.positions, bytes);
	if (record->u.rows.token_ids)
		memcpy(step->token_ids + head->row, record->u.rows.token_ids, bytes);
	step->rows_content |= head->content;
	step->rows_told += head->rows;
}

static void end_step(struct step_reader *reader, const struct r3ring_record *record)
{
	struct read_step *step = &reader->step;

	step->bad_records += record->u.step_end.head.step != step->head.step;
	step->end = record->u.step_end.head;
	memcpy(step->missing, record->u.step_end.missing,
	       step->end.missing * sizeof(step->missing[0]));
	reader->ended = true;
}

static void take(struct step_reader *reader, const struct r3ring_view *view)
{
	struct r3ring_record record;
	struct r3ring_error err;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, &err) < 0)
		die(err.text);
	reader->records++;
	reader->generation = view->generation;
	switch (record.type) {
	case R3RING_SCHEMA:
		take_schema(reader, &record);
		break;
	case R3RING_STEP:
		begin_step(reader, &record);
		break;
	case R3RING_LAYER:
		take_layer(reader, &record);
		break;
	case R3RING_ROWS:
		take_rows(reader, &record);
		break;
	case R3RING_STEP_END:
		end_step(reader, &record);
		break;
	case R3RING_LOST:
		reader->lost = record.u.lost;
		reader->losses++;
		break;
	default:
		break;
	}
}

/* ---- reading ------------------------------------------------------------ */

static void make_room(struct step_reader *reader)
{
	size_t need = r3ring_reader_max_record(reader->reader) + RECORD_ALIGN;

	if (need <= reader->capacity)
		return;
	free(reader->buffer);
	reader->capacity = need / RECORD_ALIGN * RECORD_ALIGN;
	reader->buffer = aligned_alloc(RECORD_ALIGN, reader->capacity);
	if (!reader->buffer)
		die("out of memory");
}

/* Takes one record; false when there is none. These tests lose none. */
static bool read_one(struct step_reader *reader)
{
	struct r3ring_view view;
	int code;

	do {
		make_room(reader);
		code = r3ring_reader_read(reader->reader, &view, reader->buffer, reader->capacity);
	} while (code == -EMSGSIZE);
	if (code == 1)
		take(reader, &view);
	else if (code && code != -EPIPE)
		die("records were lost or corrupt");
	return code == 1;
}

typedef bool (*done_fn)(const struct step_reader *reader, uint64_t argument);

static bool read_until(struct step_reader *reader, done_fn done, uint64_t argument)
{
	struct timespec now;
	time_t until;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec + DEADLINE_S;
	while (!done(reader, argument)) {
		if (read_one(reader))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > until)
			return false;
		r3ring_reader_wait(reader->reader, WAIT_MS);
	}
	return true;
}

static bool has_end(const struct step_reader *reader, uint64_t argument)
{
	(void)argument;
	return reader->ended;
}

bool step_reader_next(struct step_reader *reader)
{
	reader->ended = false;
	return read_until(reader, has_end, 0);
}

static bool has_begun(const struct step_reader *reader, uint64_t step)
{
	return reader->step.head.step >= step;
}

bool step_reader_begun(struct step_reader *reader, uint64_t step)
{
	return read_until(reader, has_begun, step);
}

static bool has_layers(const struct step_reader *reader, uint64_t count)
{
	return read_step_records(reader) >= count;
}

bool step_reader_layers(struct step_reader *reader, uint32_t count)
{
	return read_until(reader, has_layers, count);
}

static bool has_losses(const struct step_reader *reader, uint64_t count)
{
	return reader->losses >= count;
}

bool step_reader_lost(struct step_reader *reader)
{
	return read_until(reader, has_losses, reader->losses + 1);
}

static bool has_generation(const struct step_reader *reader, uint64_t generation)
{
	return reader->generation >= generation;
}

bool step_reader_generation(struct step_reader *reader, uint64_t generation)
{
	return read_until(reader, has_generation, generation);
}

bool step_reader_has_more(struct step_reader *reader, int ms)
{
	return r3ring_reader_wait(reader->reader, ms) == 1;
}

/* ---- what was read ------------------------------------------------------ */

uint32_t read_step_records(const struct step_reader *reader)
{
	uint32_t records = 0;

	for (uint32_t layer = 0; layer < reader->schema.layers; layer++)
		records += reader->step.layer_records[layer];
	return records;
}

uint16_t read_step_id(const struct step_reader *reader, uint32_t layer, uint32_t row, uint32_t k)
{
	size_t at = (size_t)layer * reader->step.head.total_rows + row;

	return reader->step.ids[at * reader->schema.top_k + k];
}

static bool row_is_right(const struct step_reader *reader, uint32_t layer, uint32_t row)
{
	const struct read_step *step = &reader->step;

	if (step->times[(size_t)layer * step->head.total_rows + row] != 1)
		return false;
	for (uint32_t k = 0; k < reader->schema.top_k; k++) {
		if (read_step_id(reader, layer, row, k) !=
		    step_source_id(step->head.step, layer, row, k, reader->schema.experts))
			return false;
	}
	return true;
}

uint32_t read_step_wrong(const struct step_reader *reader, uint32_t layer, uint32_t begin,
			 uint32_t end)
{
	uint32_t wrong = 0;

	for (uint32_t row = begin; row < end; row++)
		wrong += !row_is_right(reader, layer, row);
	return wrong;
}

uint32_t read_step_all_wrong(const struct step_reader *reader, uint32_t begin, uint32_t end)
{
	uint32_t wrong = 0;

	for (uint32_t layer = 0; layer < reader->schema.layers; layer++)
		wrong += read_step_wrong(reader, layer, begin, end);
	return wrong;
}

uint32_t read_step_came(const struct step_reader *reader, uint32_t layer, uint32_t begin,
			uint32_t end)
{
	uint32_t came = 0;

	for (uint32_t row = begin; row < end; row++)
		came += reader->step.times[(size_t)layer * reader->step.head.total_rows + row] > 0;
	return came;
}
