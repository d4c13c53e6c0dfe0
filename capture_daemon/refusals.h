/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who was refused, in the log: one line each, up to so many in ten seconds. What is left out
 * is counted and told when they are over, so that a peer that asks without end cannot fill a
 * disk, nor bury what else the log says.
 */
#ifndef DAEMON_REFUSALS_H
#define DAEMON_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#define REFUSALS_LISTED 20u
#define REFUSALS_SECONDS 10u

/* Zeroed: nobody was. */
struct refusals {
	uint64_t since_ns;
	uint64_t listed, left_out; /* since then */
};

/* Whether the one at @now_ns is listed; else it is counted. refusals_tell() goes before. */
bool refusals_list(struct refusals *refusals, uint64_t now_ns);

/* How many to tell of that were left out in a time that is over; each once. */
uint64_t refusals_left_out(struct refusals *refusals, uint64_t now_ns);

/* Both, with the log's lines. */
void refusals_log(struct refusals *refusals, int pid, unsigned int user, const char *why);
void refusals_tell(struct refusals *refusals);

#endif
