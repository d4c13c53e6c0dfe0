/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of segments in a runtime directory, and whose a listed one is. The list
 * is a directory with a file for each segment, named as it without the '/', which
 * holds one line: its uuid as 32 hexadecimal digits, the number of the user whose
 * channel it is, its producer's process, and, once it is known, how it ended.
 */
#ifndef CHANNEL_LEFTOVER_H
#define CHANNEL_LEFTOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum leftover_state {
	LEFTOVER_GONE,    /* there is no such segment */
	LEFTOVER_UNOWNED, /* nobody holds its lock */
	LEFTOVER_HELD,    /* somebody holds its lock who is not its writer */
	LEFTOVER_ALIVE,   /* its writer lives */
	LEFTOVER_FOREIGN, /* another user's, or made by the daemon of another directory */
};

enum leftover_end {
	LEFTOVER_GOES_ON,  /* its producer may come back */
	LEFTOVER_ENDED,    /* all was told and nobody comes back */
	LEFTOVER_FORSAKEN, /* its producer did not come back after a daemon's death */
};

/* A process of one PID namespace, by its number there and when it began. */
struct leftover_process {
	uint64_t pid, start_time;
	uint64_t pid_namespace;
};

/* What the list says of a segment. */
struct leftover_entry {
	struct leftover_process producer; /* zeroed: not known */
	uid_t user;
	enum leftover_end end;
};

/* Lists a segment of @user's channel, before it is made; @name begins with '/'.
 * Returns 0 or an errno. */
int leftover_list(int list_fd, const char *name, const uint8_t uuid[16], uid_t user);
void leftover_unlist(int list_fd, const char *name);

/* Notes whose process a segment's producer is, before the end can be. Returns 0 or an errno. */
int leftover_note_producer(int list_fd, const char *name, const struct leftover_process *producer);

/* Notes how a listed segment ended: should its daemon die, the next one waits for no
 * producer. Returns 0 or an errno. */
int leftover_note_end(int list_fd, const char *name, enum leftover_end end);

/* What was noted; of what a crash cut short: of this user, goes on. */
struct leftover_entry leftover_read(int list_fd, const char *name);

/* Whether the list of a runtime directory says that a segment's engine had ended and all of it was
 * told; false also where the list cannot be read. */
bool leftover_has_ended(const char *runtime_dir, const char *name);

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
