/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grid of character cells, which a frame of `r3ring top` is drawn onto: a terminal shows
 * it, --once prints it, tests look at it.
 */
#ifndef TOOLS_TOP_GRID_H
#define TOOLS_TOP_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#define GRID_HEAT_LEVELS 8u

/* What a cell means; how that looks is the terminal's affair. */
enum grid_style {
	GRID_PLAIN = 0,
	GRID_TITLE,
	GRID_HEAD, /* of a table */
	GRID_GOOD,
	GRID_WARN,
	GRID_BAD,
	GRID_FAINT,
	GRID_HEAT, /* level 0; those up to GRID_HEAT + GRID_HEAT_LEVELS are the others */
	GRID_STYLES = GRID_HEAT + GRID_HEAT_LEVELS + 1,
};

struct grid_cell {
	wchar_t text; /* 0: the right half of the wide character before it */
	uint8_t style;
};

struct grid {
	uint32_t rows, columns;
	bool utf8;               /* whether there may be characters beyond ASCII */
	struct grid_cell *cells; /* [rows][columns] */
};

/* All blank. Characters of text are those of the locale (LC_CTYPE). Returns 0 or -ENOMEM;
 * pairs with grid_free(). */
int grid_make(struct grid *grid, uint32_t rows, uint32_t columns);
void grid_free(struct grid *grid);

/* So many blank rows more, below the others. Returns 0, or -ENOMEM: it is as it was. */
int grid_grow(struct grid *grid, uint32_t rows);

struct grid_cell *grid_at(const struct grid *grid, uint32_t row, uint32_t column);

/*
 * Writes text from a place on, as far as the row goes; rows beyond the grid take nothing.
 * Text is hostile: of what would steer a terminal, or has no width of its own, nothing
 * is written but its number or a question mark.
 *
 * Returns the column behind it.
 */
uint32_t grid_text(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style,
		   const char *text);
uint32_t grid_print(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* How many columns grid_text() would take where there is room. */
uint32_t grid_measure(struct grid *grid, const char *text);

/* The same as grid_text(), at most @width columns of it: what does not fit ends in '~'. Nothing is written
 * behind it. Returns @column + @width. */
uint32_t grid_field(struct grid *grid, uint32_t row, uint32_t column, uint32_t width,
		    enum grid_style style, const char *text);

/* Gives a row from a column on a style. */
void grid_paint(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style);

/* A cell of heat: by its character also where there are no colours. */
void grid_heat(struct grid *grid, uint32_t row, uint32_t column, uint32_t level);

/* Prints the grid without spaces at the ends of lines, nor blank lines at its end. */
void grid_dump(const struct grid *grid, FILE *out);

#endif
