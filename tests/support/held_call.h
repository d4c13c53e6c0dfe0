/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system call of another program, held as long as a test likes: what is slow on a
 * large machine lasts exactly until something else was seen to happen. By a seccomp
 * filter whose supervisor the test is; the call is made once it is let go.
 *
 * Source: seccomp_unotify(2).
 */
#ifndef TESTS_SUPPORT_HELD_CALL_H
#define TESTS_SUPPORT_HELD_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_call {
	/* Which: its number, and from where to where (32 bits) one of its arguments is. */
	unsigned int number;
	unsigned int argument;
	uint32_t from, to;

	int ends[2];        /* of the way on which the supervisor's descriptor comes */
	int supervisor;     /* -1: not yet */
	uint64_t held;      /* cookie of the call that is; 0: none */
	uint64_t values[6]; /* its arguments */
};

/* Whether this kernel, or container, lets a process have such a filter; else @why says
 * what it refuses. */
bool held_call_possible(char *why, size_t capacity);

/* The four fields above must be filled in. Pairs with held_call_close(). */
void held_call_make(struct held_call *call);
void held_call_close(struct held_call *call);

/* For `prepare` of a test_daemon: from now on the process's calls of that kind are held.
 * @call: a struct held_call that was made. */
bool held_call_prepare(void *call);

/* Waits until one is; false after ten seconds. */
bool held_call_await(struct held_call *call);

/* Lets it go on. */
void held_call_release(struct held_call *call);

#endif
