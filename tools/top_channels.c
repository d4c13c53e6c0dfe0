/* SPDX-License-Identifier: Apache-2.0 */
/* The table of channels, each with its registered readers. */
#include <inttypes.h>
#include <string.h>

#include "tools/quantity.h"
#include "tools/top_frame.h"

#define NAME_LEAST 12u
#define NAME_MOST 48u
#define REST_COLUMNS 60u /* of a channel's line behind its name */

static uint32_t name_width(const struct grid *grid)
{
	uint32_t width = grid->columns > REST_COLUMNS ? grid->columns - REST_COLUMNS : 0;

	if (width < NAME_LEAST)
		return NAME_LEAST;
	return width < NAME_MOST ? width : NAME_MOST;
}

/* At most four digits before a point or a letter. */
static const char *short_number(char text[16], double value)
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
	return text;
}

static const char *rate(char text[16], const struct picture_rates *rates, double value)
{
	if (!rates->known)
		return "-";
	return short_number(text, value);
}

/* ---- a channel ------------------------------------------------------------- */

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

static uint32_t draw_rates(struct grid *grid, uint32_t row, uint32_t column,
			   const struct picture_channel *channel, const struct picture_rates *rates)
{
	char text[4][16];

	return grid_print(grid, row, column, GRID_PLAIN, " %7s %7s %7s %7s",
			  rate(text[0], rates, steps_rate(channel, rates)),
			  rate(text[1], rates, rates->rows), rate(text[2], rates, rates->records),
			  rate(text[3], rates, rates->bytes));
}

static void draw_channel(const struct top_frame *frame, struct grid *grid, uint32_t row, size_t i)
{
	const struct picture_channel *channel = &frame->picture->channels[i];
	const struct picture_rates *rates = &frame->rates[i];
	uint32_t column;
	char text[16];

	column = grid_field(grid, row, 0, name_width(grid), GRID_PLAIN, channel->name);
	column = grid_field(grid, row, column + 1, 6, state_style(channel), channel->state);
	column = grid_print(grid, row, column, GRID_PLAIN, " %4" PRIu64, channel->generation);
	column = draw_rates(grid, row, column, channel, rates);
	column = grid_print(grid, row, column, channel->unbound_count ? GRID_WARN : GRID_PLAIN,
			    " %3zu/%-3zu", channel->bound_count,
			    channel->bound_count + channel->unbound_count);
	grid_print(grid, row, column, lost_style(channel, rates), " %7s",
		   lost_of(channel) ? short_number(text, (double)lost_of(channel)) : "none");
}

static void draw_head(struct grid *grid, uint32_t row)
{
	uint32_t column = grid_field(grid, row, 0, name_width(grid), GRID_HEAD, "CHANNEL");

	grid_print(grid, row, column, GRID_HEAD, " %-6s %4s %7s %7s %7s %7s %7s %7s", "STATE",
		   "GEN", "STEPS/S", "ROWS/S", "REC/S", "BYTES/S", "BOUND", "LOST");
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
	uint32_t column;

	column = grid_print(grid, row, 2, style,
			    "reader %" PRId64 "%s %s, at %" PRIu64 ", %" PRIu64
			    " records (%s) behind",
			    reader->pid, reader->pid == frame->own_pid ? " (this one)" : "",
			    reader->lossless ? "lossless" : "lossy", reader->cursor,
			    reader->lag_records, quantity_bytes(bytes, reader->lag_bytes));
	if (reader->lost)
		column = grid_print(grid, row, column, style, ", lost %" PRIu64, reader->lost);
	if (reader->demoted)
		grid_text(grid, row, column, style, ", DEMOTED");
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
			   "and %" PRIu32 " more lines of channels and readers%s",
			   wanted - room + 1, frame->keys ? " (t shows more)" : "");
}
