/* SPDX-License-Identifier: Apache-2.0 */
/* The table of channels, each with its registered readers. */
#include <inttypes.h>
#include <string.h>

#include "tools/quantity.h"
#include "tools/top_frame.h"

#define NAME_LEAST 12u
#define NAME_MOST 48u

/* At most four digits before a point or a letter. */
static void short_number(char text[16], double value)
{
	static const char units[] = " kMGTP";
	unsigned int unit = 0;

	while (value >= 9999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	if (unit)
		snprintf(text, 16, value < 99.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
	else
		snprintf(text, 16, value < 99.95 ? "%.1f" : "%.0f", value);
}

static void tell_rate(char text[16], const struct picture_rates *rates, double value)
{
	if (rates->known)
		short_number(text, value);
	else
		snprintf(text, 16, "-");
}

/* ---- figures --------------------------------------------------------------- */

static enum grid_style state_style(const struct picture_channel *channel)
{
	if (channel->crashed)
		return GRID_BAD;
	return strcmp(channel->state, "live") == 0 ? GRID_GOOD : GRID_WARN;
}

static uint64_t lost_of(const struct picture_channel *channel)
{
	return channel->lost.all_steps + channel->steps_partial;
}

static enum grid_style lost_style(const struct picture_channel *channel,
				  const struct picture_rates *rates)
{
	if (!lost_of(channel))
		return GRID_GOOD;
	return rates->known && !rates->lost_in_between.all_steps ? GRID_WARN : GRID_BAD;
}

/* Fewer steps than looks have a rate too: the daemon's, from step to step. */
static double steps_rate(const struct picture_channel *channel, const struct picture_rates *rates)
{
	return rates->steps > 0 ? rates->steps : channel->steps_per_s;
}

/* ---- columns ---------------------------------------------------------------- */

struct channel_line {
	const struct picture_channel *channel;
	const struct picture_rates *rates;
};

static void tell_state(const struct channel_line *line, char text[16])
{
	const struct picture_channel *channel = line->channel;
	const bool died = channel->producer_died && !strcmp(channel->state, "ended");

	snprintf(text, 16, "%-6.15s", died ? "died" : channel->state);
}

static void tell_generation(const struct channel_line *line, char text[16])
{
	snprintf(text, 16, "%" PRIu64, line->channel->generation);
}

static void tell_steps(const struct channel_line *line, char text[16])
{
	tell_rate(text, line->rates, steps_rate(line->channel, line->rates));
}

static void tell_rows(const struct channel_line *line, char text[16])
{
	tell_rate(text, line->rates, line->rates->rows);
}

static void tell_records(const struct channel_line *line, char text[16])
{
	tell_rate(text, line->rates, line->rates->records);
}

static void tell_bytes(const struct channel_line *line, char text[16])
{
	tell_rate(text, line->rates, line->rates->bytes);
}

static void tell_bound(const struct channel_line *line, char text[16])
{
	const struct picture_channel *channel = line->channel;

	snprintf(text, 16, "%zu/%-3zu", channel->captured_count,
		 channel->captured_count + channel->unbound_count);
}

static void tell_lost(const struct channel_line *line, char text[16])
{
	uint64_t lost = lost_of(line->channel);

	if (lost > 9999)
		short_number(text, (double)lost);
	else if (lost)
		snprintf(text, 16, "%" PRIu64, lost);
	else
		snprintf(text, 16, "none");
}

/* In the order that they stand in; where there is not room for all, those of the lowest
 * number stay. */
static const struct column {
	const char *head;
	uint32_t width, number;
	void (*tell)(const struct channel_line *line, char text[16]);
} columns[] = {
	{"STATE", 6, 1, tell_state}, {"GEN", 4, 7, tell_generation}, {"STEPS/S", 7, 3, tell_steps},
	{"ROWS/S", 7, 4, tell_rows}, {"REC/S", 7, 6, tell_records},  {"BYTES/S", 7, 5, tell_bytes},
	{"BOUND", 7, 2, tell_bound}, {"LOST", 7, 0, tell_lost},
};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* How many columns fit beside a name, by number. */
static uint32_t columns_shown(const struct grid *grid)
{
	uint32_t width = NAME_LEAST, shown = 0;

	for (uint32_t i = 0; i < COLUMNS; i = i + 1, shown++) {
		for (size_t j = 0; j < COLUMNS; j++)
			width += columns[j].number == i ? columns[j].width + 1 : 0;
		if (width > grid->columns)
			break;
	}
	return shown;
}

static uint32_t name_width(const struct grid *grid)
{
	uint32_t shown = columns_shown(grid), rest = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		rest += columns[i].number < shown ? columns[i].width + 1 : 0;
	if (grid->columns < rest + NAME_LEAST)
		return NAME_LEAST;
	return grid->columns - rest < NAME_MOST ? grid->columns - rest : NAME_MOST;
}

/* ---- a channel ------------------------------------------------------------- */

/* A name that is too long is cut in its middle: the rank is at its end. */
static uint32_t draw_name(struct grid *grid, uint32_t row, uint32_t width, const char *name)
{
	const char *rank = strrchr(name, '/');
	uint32_t tail = rank ? grid_measure(grid, rank) : 0;

	if (grid_measure(grid, name) <= width || !tail || tail + 2 > width)
		return grid_field(grid, row, 0, width, GRID_PLAIN, name);
	grid_field(grid, row, 0, width - tail, GRID_PLAIN, name);
	return grid_field(grid, row, width - tail, tail, GRID_PLAIN, rank);
}

static enum grid_style style_of(const struct column *column, const struct channel_line *line)
{
	if (column->tell == tell_state)
		return state_style(line->channel);
	if (column->tell == tell_lost)
		return lost_style(line->channel, line->rates);
	return column->tell == tell_bound && line->channel->unbound_count ? GRID_WARN : GRID_PLAIN;
}

static void draw_channel(const struct top_frame *frame, struct grid *grid, uint32_t row, size_t i)
{
	const struct channel_line line = {&frame->picture->channels[i], &frame->rates[i]};
	uint32_t at = draw_name(grid, row, name_width(grid), line.channel->name);
	uint32_t shown = columns_shown(grid);
	char text[16];

	for (size_t j = 0; j < COLUMNS; j++) {
		if (columns[j].number >= shown)
			continue;
		columns[j].tell(&line, text);
		at = grid_print(grid, row, at, style_of(&columns[j], &line), " %*s",
				(int)columns[j].width, text);
	}
}

static void draw_head(struct grid *grid, uint32_t row)
{
	uint32_t at = grid_field(grid, row, 0, name_width(grid), GRID_HEAD, "CHANNEL");
	uint32_t shown = columns_shown(grid);

	for (size_t j = 0; j < COLUMNS; j++) {
		bool left = columns[j].tell == tell_state;

		if (columns[j].number < shown)
			at = grid_print(grid, row, at, GRID_HEAD, " %*s",
					left ? -(int)columns[j].width : (int)columns[j].width,
					columns[j].head);
	}
	grid_paint(grid, row, 0, GRID_HEAD);
}

/* ---- a reader -------------------------------------------------------------- */

static enum grid_style reader_style(const struct picture_reader *reader)
{
	if (reader->demoted)
		return GRID_BAD;
	return reader->lost ? GRID_WARN : GRID_PLAIN;
}

static void draw_reader(const struct top_frame *frame, struct grid *grid, uint32_t row,
			const struct picture_reader *reader)
{
	enum grid_style style = reader_style(reader);
	char bytes[QUANTITY_TEXT];
	uint32_t column = grid_print(grid, row, 2, style, "reader %" PRId64 "%s%s", reader->pid,
				     reader->label[0] ? " " : "", reader->label);

	/* What it lost stands where there is room on any terminal. */
	if (reader->demoted)
		column = grid_text(grid, row, column, style, " DEMOTED");
	if (reader->lost)
		column = grid_print(grid, row, column, style, " lost %" PRIu64, reader->lost);
	grid_print(grid, row, column, style, "%s %s, %" PRIu64 " records (%s) behind, at %" PRIu64,
		   reader->pid == frame->own_pid ? " (this one)" : "",
		   reader->lossless ? "lossless" : "lossy", reader->lag_records,
		   quantity_bytes(bytes, reader->lag_bytes), reader->cursor);
}

/* ---- the table ------------------------------------------------------------- */

/* This program itself matters least; the whole table has it. */
static bool is_shown(const struct top_frame *frame, const struct picture_reader *reader)
{
	return frame->page == TOP_TABLE || reader->pid != frame->own_pid;
}

static uint32_t rows_of(const struct top_frame *frame, const struct picture_channel *channel)
{
	uint32_t rows = 1;

	for (size_t i = 0; i < channel->reader_count; i++)
		rows += is_shown(frame, &channel->readers[i]);
	return rows;
}

uint32_t top_channels_rows(const struct top_frame *frame)
{
	const struct daemon_picture *picture = frame->picture;
	uint32_t rows = 1;

	for (size_t i = 0; picture && i < picture->channel_count; i++)
		rows += rows_of(frame, &picture->channels[i]);
	return rows;
}

/* The followed instance's channels come first. */
static bool is_followed(const struct top_frame *frame, const struct picture_channel *channel)
{
	size_t length = strlen(frame->instance);

	return length && strncmp(channel->name, frame->instance, length) == 0 &&
	       channel->name[length] == '/';
}

static void draw_lines(const struct top_frame *frame, struct top_space *space, size_t i)
{
	const struct picture_channel *channel = &frame->picture->channels[i];

	if (space->row < space->end)
		draw_channel(frame, space->grid, space->row++, i);
	for (size_t j = 0; j < channel->reader_count && space->row < space->end; j++) {
		if (is_shown(frame, &channel->readers[j]))
			draw_reader(frame, space->grid, space->row++, &channel->readers[j]);
	}
}

static void draw_those(const struct top_frame *frame, struct top_space *space, bool followed)
{
	for (size_t i = 0; frame->picture && i < frame->picture->channel_count; i++) {
		if (is_followed(frame, &frame->picture->channels[i]) == followed)
			draw_lines(frame, space, i);
	}
}

void top_draw_channels(const struct top_frame *frame, struct top_space *space)
{
	uint32_t wanted = top_channels_rows(frame), room = space->end - space->row;
	bool cut = wanted > room;

	if (!room)
		return;
	space->end -= cut;
	if (space->row < space->end)
		draw_head(space->grid, space->row++);
	draw_those(frame, space, true);
	draw_those(frame, space, false);
	if (cut)
		grid_print(space->grid, space->row++, 0, GRID_FAINT,
			   "+%" PRIu32 " channels and readers%s", wanted - room + 1,
			   frame->keys ? " (t: more)" : "");
}
