/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that were given up, as they did not fit into the memory. One that goes on is said
 * again, in keyframes and segments, and the assembler takes it for another request then: this
 * tells them apart.
 */
#ifndef REPORT_GIVEN_UP_H
#define REPORT_GIVEN_UP_H

#include <stdbool.h>

#include <r3ring/assembler.h>
#include <r3ring/record.h>
#include <r3ring/ring.h>

struct given_up {
	struct given_up_request *requests; /* a uthash table, by their ids */
};

/* A record is going to be fed: whether another request with the id of one begins. */
void given_up_note(struct given_up *given_up, const struct r3ring_view *view,
		   const struct r3ring_record *record);

/*
 * A request was taken from the assembler.
 *
 * Returns 1 (it is what one that was given up before ran since), 0 (it is none such), or
 * -ENOMEM.
 */
int given_up_take(struct given_up *given_up, const struct r3ring_assembled_info *info);

void given_up_free(struct given_up *given_up);

#endif
