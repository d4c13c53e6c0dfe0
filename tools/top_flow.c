/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tools/top_flow.h"

#define WORD_MAX 512u

/* ---- gathering ------------------------------------------------------------- */

__attribute__((format(printf, 4, 0))) static void add(struct flow *flow, enum grid_style style,
						      uint64_t steps, const char *format,
						      va_list args)
{
	size_t room = sizeof(flow->text) - flow->used;
	int length = vsnprintf(flow->text + flow->used, room, format, args);

	if (flow->pieces == FLOW_PIECES || length < 0 || (size_t)length >= room) {
		flow->dropped++;
		flow->dropped_steps += steps;
		return;
	}
	flow->piece[flow->pieces++] = (struct flow_piece){flow->used, style, flow->clause, steps};
	flow->clause = false;
	flow->used += (uint32_t)length + 1;
}

void flow_add(struct flow *flow, enum grid_style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(flow, style, 0, format, args);
	va_end(args);
}

void flow_add_steps(struct flow *flow, enum grid_style style, uint64_t steps, const char *format,
		    ...)
{
	va_list args;

	va_start(args, format);
	add(flow, style, steps, format, args);
	va_end(args);
}

void flow_clause(struct flow *flow)
{
	flow->clause = true;
}

void flow_end_list(struct flow *flow)
{
	if (flow->pieces && !flow->dropped && flow->text[flow->used - 2] == ';')
		flow->text[flow->used - 2] = '\0';
}

/* ---- laying out ------------------------------------------------------------ */

/* Where the next word goes. */
struct layout {
	struct grid *grid;
	uint32_t row, column, indent;
	uint32_t end;         /* rows from there on are only found out, not drawn */
	bool within;          /* a row that has something already */
	enum grid_style last; /* of that */
};

static void next_row(struct layout *layout)
{
	layout->row++;
	layout->column = layout->indent;
	layout->within = false;
}

static void put_word(struct layout *layout, enum grid_style style, const char *word)
{
	uint32_t width = grid_measure(layout->grid, word);

	if (layout->within && layout->column + 1 + width > layout->grid->columns)
		next_row(layout);
	if (layout->within && layout->row < layout->end)
		grid_text(layout->grid, layout->row, layout->column,
			  style == layout->last ? style : GRID_PLAIN, " ");
	layout->column += layout->within;
	layout->within = true;
	layout->last = style;
	if (layout->row < layout->end)
		grid_text(layout->grid, layout->row, layout->column, style, word);
	layout->column += width;
}

/* A word that is wider than a row, as a path may be, goes on in the next ones. */
static void put_long(struct layout *layout, enum grid_style style, const char *word, size_t length)
{
	uint32_t columns = layout->grid->columns;
	uint32_t most = columns > layout->indent ? columns - layout->indent : 1;

	while (length) {
		char part[WORD_MAX];
		size_t take = length < sizeof(part) - 1 ? length : sizeof(part) - 1;

		do {
			memcpy(part, word, take);
			part[take] = '\0';
		} while (grid_measure(layout->grid, part) > most && --take);
		take = take ? take : 1;
		put_word(layout, style, part);
		word += take;
		length -= take;
	}
}

static void put_text(struct layout *layout, enum grid_style style, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, " ");

		if (length)
			put_long(layout, style, text, length);
		text += length;
		text += strspn(text, " ");
	}
}

/* Of the clause that begins with piece @first. */
static uint32_t clause_width(const struct flow *flow, struct grid *grid, uint32_t first)
{
	uint32_t width = 0;

	for (uint32_t i = first; i < flow->pieces && (i == first || !flow->piece[i].clause); i++)
		width += grid_measure(grid, flow->text + flow->piece[i].begin) + (i > first);
	return width;
}

/* One that is wider than a row is broken anyway, and need not begin one. */
static void begin_clause(struct layout *layout, const struct flow *flow, uint32_t first)
{
	uint32_t width = clause_width(flow, layout->grid, first), columns = layout->grid->columns;
	uint32_t bar = sizeof(" | ") - 1;

	if (!layout->within)
		return;
	if (layout->column + bar + width > columns && layout->indent + width <= columns)
		next_row(layout);
	else
		put_word(layout, GRID_FAINT, "|");
}

/* The first @count pieces, then @tail; returns the row that they end in. */
static uint32_t lay_out(const struct flow *flow, struct layout layout, uint32_t count,
			const char *tail)
{
	layout.indent = flow->indent;
	if (flow->label) {
		if (layout.row < layout.end)
			grid_text(layout.grid, layout.row, 0, GRID_PLAIN, flow->label);
		layout.column = flow->indent;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (flow->piece[i].clause)
			begin_clause(&layout, flow, i);
		put_text(&layout, flow->piece[i].style, flow->text + flow->piece[i].begin);
	}
	put_text(&layout, GRID_WARN, tail);
	return layout.row;
}

uint32_t flow_rows(const struct flow *flow, const struct grid *grid)
{
	struct grid same = *grid;

	if (!flow->pieces)
		return 0;
	return lay_out(flow, (struct layout){.grid = &same}, flow->pieces, "") + 1 +
	       (flow->dropped > 0);
}

/* "+2 more: 123 steps (d shows them)" */
static void say_more(const struct flow *flow, uint32_t count, char *text, size_t size)
{
	uint64_t steps = flow->dropped_steps;
	int used;

	for (uint32_t i = count; i < flow->pieces; i++)
		steps += flow->piece[i].steps;
	used = snprintf(text, size, "+%" PRIu32 " more", flow->pieces - count + flow->dropped);
	if (steps)
		used += snprintf(text + used, size - (size_t)used, ": %" PRIu64 " steps", steps);
	if (flow->more)
		snprintf(text + used, size - (size_t)used, " (%s)", flow->more);
}

/* Not even the first piece has room: as much of it as has, and that it goes on. */
static void draw_first(const struct flow *flow, struct layout layout, struct top_space *space)
{
	static const char goes_on[] = "~ enlarge the terminal";
	uint32_t width = (uint32_t)strlen(goes_on), columns = space->grid->columns;

	layout.end = space->end;
	lay_out(flow, layout, 1, "");
	grid_text(space->grid, space->end - 1, columns > width ? columns - width : 0, GRID_WARN,
		  goes_on);
	space->row = space->end;
}

void flow_draw(const struct flow *flow, struct top_space *space)
{
	struct layout layout = {.grid = space->grid, .row = space->row};
	uint32_t count = flow->pieces;
	char tail[96] = "";

	if (!count || space->row >= space->end)
		return;
	if (flow->dropped)
		say_more(flow, count, tail, sizeof(tail));
	while (count && lay_out(flow, layout, count, tail) >= space->end)
		say_more(flow, --count, tail, sizeof(tail));
	if (!count) {
		draw_first(flow, layout, space);
		return;
	}
	layout.end = space->end;
	space->row = lay_out(flow, layout, count, tail) + 1;
}
