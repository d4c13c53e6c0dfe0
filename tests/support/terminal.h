/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real terminal for programs under test: a window of tmux, with a shell in it, that the
 * test types into, resizes, and reads the screen of.
 */
#ifndef TESTS_SUPPORT_TERMINAL_H
#define TESTS_SUPPORT_TERMINAL_H

#include <stdbool.h>

/* Whether there is a tmux. */
bool terminal_possible(void);

/*
 * Opens it, with a shell whose prompt is "ready$ ".
 *
 * @setting: assignments for the shell's environment, as "TERM=vt100 NO_COLOR=1".
 *
 * Ends this process when it cannot. The terminal ends with this process; pairs with
 * terminal_close().
 */
void terminal_open(int rows, int columns, const char *setting);
void terminal_close(void);

/* Types text, then Enter; or one key by its name: "q", "C-c", "Escape". */
void terminal_line(const char *text);
void terminal_key(const char *key);

void terminal_resize(int rows, int columns);

/* What it shows now, without colours; a buffer that the next call overwrites. */
const char *terminal_screen(void);
/* The same with what sets its colours. */
const char *terminal_coloured(void);

/* Looks until it shows, or no longer shows, @part; false after 60 seconds. */
bool terminal_shows(const char *part);
bool terminal_hides(const char *part);

/* Whether a program has it for itself (the alternate screen). */
bool terminal_is_taken(void);

#endif
