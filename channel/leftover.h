/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of segments in a runtime directory, and whose a listed one is. The list
 * is a directory with a file for each segment, named as it without the '/', which
 * holds its uuid as 32 hexadecimal digits.
 */
#ifndef CHANNEL_LEFTOVER_H
#define CHANNEL_LEFTOVER_H

#include <stdbool.h>
#include <stdint.h>

enum leftover_state {
	LEFTOVER_GONE,    /* there is no such segment */
	LEFTOVER_UNOWNED, /* nobody holds its lock */
	LEFTOVER_HELD,    /* somebody holds its lock who is not its writer */
	LEFTOVER_ALIVE,   /* its writer lives */
	LEFTOVER_FOREIGN, /* another user's, or made by the daemon of another directory */
};

/* Lists a segment, before it is made; @name begins with '/'. Returns 0 or an errno. */
int leftover_list(int list_fd, const char *name, const uint8_t uuid[16]);
void leftover_unlist(int list_fd, const char *name);

/* Notes of a listed segment that all is told and nobody will come back to it: should
 * its daemon die, the next one waits for no producer. Returns 0 or an errno. */
int leftover_note_ended(int list_fd, const char *name);
bool leftover_has_ended(int list_fd, const char *name);

/* Calls @each with every name listed; it may unlist it. Returns 0 or an errno. */
int leftover_each(int list_fd, void (*each)(void *ctx, const char *name), void *ctx);

/*
 * Whose a listed segment is. Only for who holds the directory's own lock, so that no
 * daemon makes or adopts one meanwhile.
 *
 * The segment's lock alone does not tell: whoever may read a segment can lock it
 * (flock asks for no right to write). A held one is therefore its writer's only if
 * the process lives that the header names by its PID and start time.
 */
enum leftover_state leftover_look(int list_fd, const char *name);

#endif
