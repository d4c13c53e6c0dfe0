/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "channel/utf8.h"
#include "tools/top_grid.h"

#define TEXT_MAX 1024 /* of what is printed at once */

int grid_make(struct grid *grid, uint32_t rows, uint32_t columns)
{
	*grid = (struct grid){.columns = columns};
	grid->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	return grid_grow(grid, rows);
}

int grid_grow(struct grid *grid, uint32_t rows)
{
	size_t before = (size_t)grid->rows * grid->columns;
	size_t count = before + (size_t)rows * grid->columns;
	struct grid_cell *cells = realloc(grid->cells, (count ? count : 1) * sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = before; i < count; i++)
		cells[i] = (struct grid_cell){.text = L' '};
	grid->cells = cells;
	grid->rows += rows;
	return 0;
}

void grid_free(struct grid *grid)
{
	free(grid->cells);
	*grid = (struct grid){0};
}

struct grid_cell *grid_at(const struct grid *grid, uint32_t row, uint32_t column)
{
	return &grid->cells[(size_t)row * grid->columns + column];
}

/* ---- characters ------------------------------------------------------------ */

struct pen {
	struct grid *grid;
	uint32_t row, column, end;
	enum grid_style style;
	bool cut; /* something had no room */
	bool dry; /* only goes on, writes nothing */
};

/* Half of a wide character that is written into leaves a blank. */
static void clear_halves(struct pen *pen, uint32_t columns)
{
	uint32_t end = pen->column + columns;

	if (pen->column && !grid_at(pen->grid, pen->row, pen->column)->text)
		grid_at(pen->grid, pen->row, pen->column - 1)->text = L' ';
	if (end < pen->grid->columns && !grid_at(pen->grid, pen->row, end)->text)
		grid_at(pen->grid, pen->row, end)->text = L' ';
}

static void put(struct pen *pen, wchar_t character, uint32_t columns)
{
	if (pen->cut || pen->column + columns > pen->end) {
		pen->cut = true;
		return;
	}
	if (!pen->dry)
		clear_halves(pen, columns);
	for (uint32_t i = 0; i < columns && !pen->dry; i++)
		*grid_at(pen->grid, pen->row, pen->column + i) =
			(struct grid_cell){i ? 0 : character, (uint8_t)pen->style};
	pen->column += columns;
}

static void put_number(struct pen *pen, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	put(pen, L'\\', 1);
	put(pen, L'x', 1);
	put(pen, digits[byte >> 4], 1);
	put(pen, digits[byte & 15], 1);
}

/* Characters that are shown have a width. */
static void put_shown(struct pen *pen, wchar_t character)
{
	int width = wcwidth(character);

	if (!iswprint((wint_t)character) || width < 1 || (character > 127 && !pen->grid->utf8))
		put(pen, L'?', 1);
	else
		put(pen, character, (uint32_t)width);
}

static void write_text(struct pen *pen, const char *text)
{
	size_t left = strlen(text);
	mbstate_t state = {0};

	while (left) {
		unsigned char byte = (unsigned char)*text;
		wchar_t character;
		size_t used = 1;

		if (byte < 32 || byte == 127) {
			put_number(pen, byte);
		} else {
			used = mbrtowc(&character, text, left, &state);
			if (used == 0 || used > left) {
				state = (mbstate_t){0};
				used = 1;
				character = L'\0';
			} else if (pen->grid->utf8 && utf8_steers((const uint8_t *)text, used)) {
				character = L'\0';
			}
			put_shown(pen, character);
		}
		text += used;
		left -= used;
	}
}

/* ---- writing --------------------------------------------------------------- */

uint32_t grid_text(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style,
		   const char *text)
{
	struct pen pen = {
		.grid = grid, .row = row, .column = column, .end = grid->columns, .style = style};

	if (row < grid->rows && column < grid->columns)
		write_text(&pen, text);
	return pen.column;
}

uint32_t grid_measure(struct grid *grid, const char *text)
{
	struct pen pen = {.grid = grid, .end = UINT32_MAX, .dry = true};

	write_text(&pen, text);
	return pen.column;
}

uint32_t grid_print(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style,
		    const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return grid_text(grid, row, column, style, text);
}

uint32_t grid_field(struct grid *grid, uint32_t row, uint32_t column, uint32_t width,
		    enum grid_style style, const char *text)
{
	struct pen pen = {
		.grid = grid, .row = row, .column = column, .end = column + width, .style = style};

	if (row >= grid->rows || column >= grid->columns)
		return column + width;
	if (pen.end > grid->columns)
		pen.end = grid->columns;
	write_text(&pen, text);
	if (pen.cut && width) {
		pen.cut = false;
		pen.column = pen.end - 1;
		put(&pen, L'~', 1);
	}
	return column + width;
}

void grid_paint(struct grid *grid, uint32_t row, uint32_t column, enum grid_style style)
{
	for (; row < grid->rows && column < grid->columns; column++)
		grid_at(grid, row, column)->style = (uint8_t)style;
}

void grid_heat(struct grid *grid, uint32_t row, uint32_t column, uint32_t level)
{
	static const wchar_t blocks[] = L" ▁▂▃▄▅▆▇█";
	static const wchar_t plain[] = L" .:-=+*#@";

	if (row >= grid->rows || column >= grid->columns)
		return;
	if (level > GRID_HEAT_LEVELS)
		level = GRID_HEAT_LEVELS;
	*grid_at(grid, row, column) = (struct grid_cell){
		grid->utf8 ? blocks[level] : plain[level],
		(uint8_t)(GRID_HEAT + level),
	};
}

/* ---- printing -------------------------------------------------------------- */

static bool blank(const struct grid_cell *cell)
{
	return cell->text == L' ';
}

static void dump_row(const struct grid *grid, uint32_t row, FILE *out)
{
	uint32_t end = grid->columns;
	mbstate_t state = {0};

	while (end && blank(grid_at(grid, row, end - 1)))
		end--;
	for (uint32_t column = 0; column < end; column++) {
		const struct grid_cell *cell = grid_at(grid, row, column);
		char bytes[MB_LEN_MAX];
		size_t length = cell->text ? wcrtomb(bytes, cell->text, &state) : 0;

		if (length != (size_t)-1)
			fwrite(bytes, 1, length, out);
	}
	putc('\n', out);
}

void grid_dump(const struct grid *grid, FILE *out)
{
	uint32_t rows = grid->rows;

	for (; rows; rows--) {
		uint32_t column = 0;

		while (column < grid->columns && blank(grid_at(grid, rows - 1, column)))
			column++;
		if (column < grid->columns)
			break;
	}
	for (uint32_t row = 0; row < rows; row++)
		dump_row(grid, row, out);
}
