/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ncurses.h>

#include "tools/top.h"
#include "tools/top_rescue.h"
#include "tools/top_screen.h"

#define ESCAPE_MS 100 /* that a key which begins with an escape may take to come */

static struct screen {
	FILE *out; /* the terminal: standard output is the tool's own stream */
	SCREEN *screen;
	attr_t attributes[GRID_STYLES];
	bool left; /* it is as it was found, for now */
} screen;

/* ---- how styles look ------------------------------------------------------- */

static void without_colours(void)
{
	static const attr_t attributes[GRID_STYLES] = {
		[GRID_TITLE] = A_REVERSE, [GRID_HEAD] = A_UNDERLINE, [GRID_GOOD] = A_NORMAL,
		[GRID_WARN] = A_BOLD,     [GRID_BAD] = A_REVERSE,    [GRID_FAINT] = A_NORMAL,
	};

	for (unsigned int i = 0; i < GRID_STYLES; i++)
		screen.attributes[i] = attributes[i];
}

static void colour(enum grid_style style, short text, short ground, attr_t more)
{
	short pair = (short)(style + 1);

	init_pair(pair, text, ground);
	screen.attributes[style] = (attr_t)COLOR_PAIR(pair) | more;
}

/* From dark to light, so that it reads without telling colours apart. */
static void many_heat_colours(void)
{
	static const short grounds[GRID_HEAT_LEVELS + 1] = {-1,  17,  54,  90, 125,
							    160, 202, 214, 228};

	for (unsigned int level = 1; level <= GRID_HEAT_LEVELS; level++)
		colour(GRID_HEAT + level, grounds[level], grounds[level], 0);
}

/* The characters tell the levels, colours help. */
static void few_heat_colours(void)
{
	static const short texts[GRID_HEAT_LEVELS + 1] = {-1,           COLOR_BLUE, COLOR_BLUE,
							  COLOR_CYAN,   COLOR_CYAN, COLOR_GREEN,
							  COLOR_YELLOW, COLOR_RED,  COLOR_RED};

	for (unsigned int level = 1; level <= GRID_HEAT_LEVELS; level++)
		colour(GRID_HEAT + level, texts[level], -1,
		       level == GRID_HEAT_LEVELS ? A_BOLD : A_NORMAL);
}

static void with_colours(void)
{
	start_color();
	use_default_colors();
	colour(GRID_GOOD, COLOR_GREEN, -1, A_NORMAL);
	colour(GRID_WARN, COLOR_YELLOW, -1, A_BOLD);
	colour(GRID_BAD, COLOR_WHITE, COLOR_RED, A_BOLD);
	if (COLORS >= 256 && COLOR_PAIRS > GRID_STYLES)
		many_heat_colours();
	else
		few_heat_colours();
}

static void choose_attributes(void)
{
	const char *refused = getenv("NO_COLOR");

	without_colours();
	if (has_colors() && !(refused && *refused))
		with_colours();
}

/* ---- taking and giving back ------------------------------------------------ */

static int refuse(struct r3ring_error *err, int code, const char *what)
{
	return r3ring_error_set(err, code, "%s; --once and --jsonl need no terminal", what);
}

static void prepare(void)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	choose_attributes();
}

/*
 * Who is in the background and wants the terminal is stopped, until a shell brings it to the
 * front; which asking to be there does, and changes nothing for who is. Returns 0, or -EIO
 * where no shell could.
 */
static int await_foreground(void)
{
	sigset_t set;
	int r;

	signal(SIGTTOU, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	do {
		r = tcsetpgrp(STDOUT_FILENO, getpgrp());
	} while (r && errno == EINTR);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return r && errno == EIO ? -EIO : 0;
}

int screen_open(struct r3ring_error *err)
{
	int fd;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse(err, -ENOTTY, "standard input or output is no terminal");
	if (await_foreground())
		return refuse(err, -EIO, "the terminal belongs to others");
	fd = dup(STDOUT_FILENO);
	screen.out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!screen.out)
		return refuse(err, -ENOMEM, "the terminal cannot be opened");
	rescue_prepare(fd);
	screen.screen = newterm(NULL, screen.out, stdin);
	if (screen.screen && tigetstr("cup")) {
		prepare();
		rescue_arm();
		return 0;
	}
	rescue_end();
	if (screen.screen)
		screen_close();
	else
		fclose(screen.out);
	screen = (struct screen){0};
	return refuse(err, -ENOTSUP, "this terminal ($TERM) is not known, or cannot place text");
}

void screen_close(void)
{
	if (!screen.screen)
		return;
	screen_leave();
	rescue_end();
	delscreen(screen.screen);
	fclose(screen.out);
	screen = (struct screen){0};
}

void screen_leave(void)
{
	if (screen.left)
		return;
	/* Where the frame stays on the screen, what follows begins on a line of its own. */
	move(getmaxy(stdscr) - 1, 0);
	clrtoeol();
	refresh();
	endwin();
	rescue_disarm();
	screen.left = true;
}

bool screen_return(void)
{
	if (await_foreground())
		return false;
	screen.left = false;
	rescue_arm();
	screen_resize();
	clearok(curscr, TRUE);
	refresh();
	return true;
}

void screen_resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
}

void screen_size(uint32_t *rows, uint32_t *columns)
{
	*rows = (uint32_t)getmaxy(stdscr);
	*columns = (uint32_t)getmaxx(stdscr);
}

/* ---- showing --------------------------------------------------------------- */

static void show_cell(const struct grid *grid, uint32_t row, uint32_t column)
{
	const struct grid_cell *cell = grid_at(grid, row, column);
	const wchar_t text[2] = {cell->text, 0};
	attr_t attributes = screen.attributes[cell->style];
	cchar_t shown;

	if (!cell->text)
		return;
	setcchar(&shown, text, attributes & ~(attr_t)A_COLOR, (short)PAIR_NUMBER(attributes), NULL);
	mvadd_wch((int)row, (int)column, &shown);
}

void screen_show(const struct grid *grid)
{
	erase();
	for (uint32_t row = 0; row < grid->rows; row++)
		for (uint32_t column = 0; column < grid->columns; column++)
			show_cell(grid, row, column);
	refresh();
}

int screen_key(void)
{
	int key = getch();

	switch (key) {
	case ERR:
		return -1;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	default:
		return key;
	}
}
