/* SPDX-License-Identifier: Apache-2.0 */
/* What a follower is made of, for the files that are its: follower.c and follower_look.c. */
#ifndef MONITOR_FOLLOWER_INTERNAL_H
#define MONITOR_FOLLOWER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "consumer/channel_losses.h"
#include "monitor/follower.h"

struct follower {
	struct follower_hooks hooks;
	struct tail *tail;
	struct engine_model_options model;

	/* The tail's thread's own. */
	struct heard *heard; /* [named] of each channel */
	uint32_t named;
	struct engine_model *next; /* of an engine that has come back with it, while there are
				    * channels of the one before; NULL: none */

	pthread_mutex_t lock;     /* of what follows */
	struct engine_model *now; /* the thread alone sets it, and reads it as it likes */
	struct r3ring_signatures_stats signatures_stats, signatures_before;
	struct followed *channel; /* [channels] */
	uint32_t channels;
};

/* Which model a channel is of. */
enum counts_in {
	COUNTS_NOW,
	COUNTS_NEXT,
	COUNTS_NOWHERE, /* of a third, or without memory */
};

struct heard {
	struct r3ring_requests *names; /* what its handles mean */
	uint64_t generation;           /* of its newest record; 0: none yet */
	bool follows;                  /* of a draft model, or a copy */
	enum counts_in counts;
	struct channel_losses losses; /* of which ends that nobody follows are told */
};

struct followed {
	char name[128];
	int load; /* its index there, or why it has none */
	bool ended;
	uint64_t ends_unfollowed;
	bool other_model;                      /* than the one that is counted now */
	char model[R3RING_MODEL_NAME_MAX + 1]; /* as its newest schema says */
};

/* Adds what one table of signatures counted to the sums of those before it. */
void follower_add_signatures(struct r3ring_signatures_stats *to,
			     const struct r3ring_signatures_stats *from);

#endif
