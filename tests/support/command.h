/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the tool `r3ring` of this build, or another of its programs, as a process
 * of its own, and keeps what it prints.
 */
#ifndef TESTS_SUPPORT_COMMAND_H
#define TESTS_SUPPORT_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct container;

struct command {
	pid_t pid; /* 0: not running */
	int code;  /* exit code once it has ended, -signal when one ended it */
	int out_fd, err_fd;
	char *out, *err; /* what it printed, once it has ended; NUL-terminated */
};

/*
 * Starts it.
 *
 * @runtime_dir: its $R3RING_RUNTIME_DIR.
 * @args:        behind "r3ring", NULL-terminated.
 *
 * Ends this process when that fails. The child ends with this process. Pairs
 * with command_free().
 */
void command_start(struct command *command, const char *runtime_dir, const char *const *args);

/*
 * The same of any program of this build, in a container.
 *
 * @container: one that was made; NULL: none.
 * @program:   its path below the build's directory, or an absolute one.
 */
void command_start_in(struct command *command, const struct container *container,
		      const char *program, const char *runtime_dir, const char *const *args);

/* The same, after @prepare(@ctx) in the new process; NULL: nothing. One that returns false
 * makes the program end with 125. */
void command_start_prepared(struct command *command, bool (*prepare)(void *ctx), void *ctx,
			    const char *program, const char *runtime_dir, const char *const *args);

/* Looks, for at most 100 seconds, until what it has printed has @part in it @count times;
 * returns whether it did. It still runs then, or has just ended. */
bool command_prints(const struct command *command, const char *part, unsigned int count);

/* The same of @part on its standard error, once; and whether it is there now. */
bool command_tells(const struct command *command, const char *part);
bool command_has_told(const struct command *command, const char *part);

/* Interrupts it, as Ctrl-C does, and waits. Returns the code. */
int command_interrupt(struct command *command);

/* Whether it has ended, without waiting. */
bool command_ended(struct command *command);

/* Waits for its end, or kills it after 100 seconds. Returns the code. */
int command_wait(struct command *command);

/* Start and wait in one. */
int command_run(struct command *command, const char *runtime_dir, const char *const *args);

/* Kills it if it still runs. */
void command_free(struct command *command);

#endif
