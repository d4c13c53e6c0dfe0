/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are not over: those that were begun and have not ended, by handle, and those that
 * were preempted and may go on, by text id, so that a later attempt can say whose it is.
 */
#ifndef PRODUCER_ONGOING_H
#define PRODUCER_ONGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONGOING_PREEMPTED_MAX 65536u

struct ongoing_request;

struct ongoing {
	struct ongoing_request *live;
	struct ongoing_request *preempted;
	/* More were preempted, and did not go on, than are kept: which ones wait is not known. */
	bool forgot;
};

/* @first: handle of its first attempt. Returns 0 or -ENOMEM. @handle: none that lives. */
int ongoing_begin(struct ongoing *ongoing, uint64_t handle, uint64_t first, const char *id,
		  size_t id_len);

bool ongoing_lives(const struct ongoing *ongoing, uint64_t handle);

/* One that does not live: nothing. */
void ongoing_end(struct ongoing *ongoing, uint64_t handle, bool preempted);

/* The first handle of the one request of the id that was preempted, and so is the one that a later attempt
 * goes on with; 0: there is none, there are several, or it is not known. */
uint64_t ongoing_first(const struct ongoing *ongoing, const char *id, size_t id_len);

/* It went on: it does not wait any more. */
void ongoing_resume(struct ongoing *ongoing, uint64_t first, const char *id, size_t id_len);

void ongoing_clear(struct ongoing *ongoing);

#endif
