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
 * In the background it stands still until it is in front.
 *
 * Returns 0, -EIO (in the background without a shell), -ENOTTY (standard input or output is
 * no terminal), -ENOTSUP (nothing is known of $TERM), -ENOMEM, with a message. Pairs with
 * screen_close().
 */
int screen_open(struct r3ring_error *err);
void screen_close(void); /* also while it is left, or was never open */

/* Gives the terminal back for a while, as before a stop, and takes it again: in the
 * background it stands still until it is in front, and returns false where it never can be. */
void screen_leave(void);
bool screen_return(void);

/* Its size has changed. */
void screen_resize(void);
void screen_size(uint32_t *rows, uint32_t *columns);

void screen_show(const struct grid *grid);

/* A key that was pressed, as top_key() knows them; -1 when none was. Never waits. */
int screen_key(void);

#endif
