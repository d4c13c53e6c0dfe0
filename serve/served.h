/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that schedulers ask about. A thread follows the newest records of its channels and
 * keeps its load, and the book of what its GPUs have promised, up to date.
 */
#ifndef SERVE_SERVED_H
#define SERVE_SERVED_H

#include <r3ring/load.h>
#include <r3ring/reserve.h>
#include <r3ring/signature.h>

struct served;

struct served_options {
	const char *instance;
	const char *runtime_dir; /* NULL: as readers find it */
	struct r3ring_load_options load;
	uint32_t gpus;     /* 0: those of its EPLB map, else of its expert parallelism */
	uint32_t capacity; /* visits of tokens a step that a GPU has room for; 0: nobody said */
};

/*
 * Begins to follow @options->instance, be it there already or not.
 * Returns 0, -EINVAL (a name or an option, named), -ENOMEM. Pairs with served_close().
 */
int served_open(struct served **served, const struct served_options *options,
		struct r3ring_error *err);
void served_close(struct served *served);

const char *served_name(const struct served *served);

enum served_state {
	SERVED_WAITING, /* no daemon, or it has no such instance */
	SERVED_LIVE,
	SERVED_SILENT, /* no sign of life from any of its channels */
};

struct served_status {
	enum served_state state;
	char error[R3RING_ERROR_TEXT]; /* why it waits, "" otherwise */
	uint32_t channels;
	uint64_t records;
	uint64_t gaps; /* how often records were gone before they were read */
};

void served_get_status(struct served *served, struct served_status *status);

/* Name of a channel, "" beyond what there are. */
void served_channel_name(struct served *served, uint32_t channel, char name[128]);

/* To be read by any thread. */
const struct r3ring_load *served_load(const struct served *served);
const struct r3ring_signatures *served_signatures(const struct served *served);

/*
 * Its book; made when it is first asked for.
 * Returns 0, -ENODATA (no step was seen yet), -EINVAL (nobody knows how many GPUs it has, or
 * what they have room for), -ENOMEM; with a message. The book lives as long as @served.
 */
int served_book(struct served *served, struct r3ring_book **book, struct r3ring_error *err);

#endif
