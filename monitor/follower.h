/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that is followed: a thread reads the newest records of an instance's channels,
 * be it there already or not, and keeps its load and its requests' signatures up to date.
 * It reads as any lossy reader does and never holds a writer up.
 *
 * Where the engine comes back with another model these begin anew, once all channels of the one
 * before have ended, with all that the new one's did; sums of what was counted go on.
 */
#ifndef MONITOR_FOLLOWER_H
#define MONITOR_FOLLOWER_H

#include <stdbool.h>

#include <r3ring/load.h>
#include <r3ring/reader.h>
#include <r3ring/signature.h>

#include "monitor/engine_model.h"
#include "monitor/tail.h"

struct follower;

/* For who wants to know more than load and signatures; the follower's thread calls. */
struct follower_hooks {
	void *context;
	/* A record, once load, signatures and names have it; @names: what its channel's handles
	 * mean. NULL: none. */
	void (*record)(void *context, const struct r3ring_requests *names,
		       const struct r3ring_view *view, const struct r3ring_record *record);
	/* Another model is counted from now on. NULL: none. */
	void (*model)(void *context, const struct engine_model *former,
		      const struct engine_model *now);
	/* Channels have ended, or run again: load and names know. NULL: none. */
	void (*ends)(void *context);
	/* Several times a second. NULL: none. */
	void (*turn)(void *context);
};

struct follower_options {
	const char *instance;
	const char *runtime_dir; /* NULL: as readers find it */
	const char *label;       /* of its readers, for status, which lives as long; NULL: none */
	struct r3ring_load_options load;
	/* How often it looks for records, in ms: then writers never have to wake it. 0: it is
	 * woken by them, and has a record within microseconds. */
	uint32_t look_ms;
	struct daemon_watch *watch;     /* tells of ends; outlives it. NULL: none is noticed */
	bool load_only;                 /* no signatures are kept */
	struct r3ring_history *history; /* is given what requests did that ended; NULL: none */
	struct follower_hooks hooks;
};

/*
 * Begins to follow @options->instance; names are copied.
 * Returns 0, -EINVAL (an option, named), -ENOMEM. Pairs with follower_close(), after which
 * no hook is called. *@follower is there before any hook is called, and NULL on failure.
 */
int follower_open(struct follower **follower, const struct follower_options *options,
		  struct r3ring_error *err);
void follower_close(struct follower *follower);

const char *follower_name(const struct follower *follower);

struct follower_status {
	struct tail_status tail;
	uint32_t channels;
	/* Ends of generations that were read here, behind which an engine may have run on, and no
	 * later generation has told what yet: more may be lost than anybody counted. */
	uint64_t ends_unfollowed;
	uint32_t expert_ranks; /* size of the expert parallelism, as a schema said; 0: none did */
	bool other_model; /* a channel that runs is of another model than the one that is counted,
			   * of which others have not ended, as far as is known */
	uint64_t models;  /* that were counted so far */
	char model[R3RING_MODEL_NAME_MAX + 1];     /* that is counted; "" before any schema */
	struct r3ring_signatures_stats signatures; /* all zero without them; of all models but for
						    * what is kept now */
};

/* Any thread. */
void follower_get_status(struct follower *follower, struct follower_status *status);

/*
 * Whether a channel has ended, by that index. It is in the load of all no more once another one
 * runs; of an engine of which all have ended, the load of those that ended last stays to be looked
 * at (tail_status says so). Any thread.
 */
bool follower_channel_ended(struct follower *follower, uint32_t channel);

/* Name of a channel, which has the same index in the load; "" beyond what there are. Any
 * thread. */
void follower_channel_name(struct follower *follower, uint32_t channel, char name[128]);

/* Whether any channel that has not ended runs a request of that text id; draft models and copies
 * aside, which run what others do. Only in hooks. */
bool follower_runs(struct follower *follower, const char *id);

/* A channel that runs and is left out of what is counted: it is of another model. */
struct follower_left_out {
	char channel[128];
	char model[R3RING_MODEL_NAME_MAX + 1];
};

/* Lists them: *@list is the caller's, to be freed; NULL where there are none. Returns how many, or
 * -ENOMEM. Any thread. */
int follower_left_out(struct follower *follower, struct follower_left_out **list);

/* Index of a channel in the load; -ENOENT: no such channel. Any thread. */
int follower_load_channel(struct follower *follower, const char *name);

/* What is counted now, held: engine_model_put(). Any thread. */
struct engine_model *follower_model(struct follower *follower);

/* Whether that is still counted. Any thread. */
bool follower_counts(struct follower *follower, const struct engine_model *model);

#endif
