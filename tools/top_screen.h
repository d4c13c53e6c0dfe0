/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal that shows grids, by ncurses; left as it was found. */
#ifndef TOOLS_TOP_SCREEN_H
#define TOOLS_TOP_SCREEN_H

#include <stdbool.h>

#include <r3ring/error.h>

#include "tools/top_grid.h"

/*
 * Takes the terminal that standard output is. Colours are used where it has some and
 * $NO_COLOR is not set.
 * Returns 0, -ENOTTY (standard input or output is no terminal), -ENOTSUP (nothing is known of
 * $TERM), -ENOMEM, with a message. Pairs with screen_close().
 */
int screen_open(struct r3ring_error *err);
void screen_close(void); /* also while it is left, or was never open */

/* Gives the terminal back for a while, as before a stop, and takes it again. */
void screen_leave(void);
void screen_return(void);

/* Its size has changed. */
void screen_resize(void);
void screen_size(uint32_t *rows, uint32_t *columns);

void screen_show(const struct grid *grid);

/* A key that was pressed, -1 when none was. Never waits. */
int screen_key(void);

#endif
