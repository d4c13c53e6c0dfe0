/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon serves, at one moment: its channels, what they carried and lost, and the
 * readers that are registered with it. Made from what it tells over its socket, as `r3ring
 * status` shows it; asking costs it a message a channel and takes nothing from readers.
 *
 * A daemon that is gone, or does not answer, is a picture too, and says so in words. Each
 * picture asks anew, so one that comes back is seen by the next.
 *
 * A picture does not change. Any thread may look at it.
 */
#ifndef MONITOR_DAEMON_PICTURE_H
#define MONITOR_DAEMON_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <r3ring/error.h>
#include <r3ring/reader_page.h>
#include <r3ring/record.h>

#include "channel/socket.h"

enum picture_state {
	PICTURE_LIVE,
	PICTURE_NO_DAEMON, /* none is there, or none that this user may ask */
	PICTURE_NO_ANSWER, /* none in time, or none that makes sense */
};

/* One that shares a page with the daemon; others cannot be seen. */
struct picture_reader {
	int64_t pid;
	char label[R3RING_READER_LABEL_BYTES]; /* what it reads for; "": it did not say */
	bool lossless;                         /* still */
	bool demoted;
	uint64_t cursor; /* the sequence that it reads next, when the ring's tail was read */
	uint64_t lag_records, lag_bytes;
	uint64_t got, lost, skipped;       /* as it says */
	uint64_t demoted_from, demoted_to; /* what it has not read, when demoted */
};

/* By enum r3ring_cause. What a newer daemon calls otherwise stands under 0
 * (R3RING_CAUSE_NONE), so that no loss is overlooked. */
struct picture_lost {
	uint64_t steps[R3RING_CAUSE_COUNT];
	uint64_t rows[R3RING_CAUSE_COUNT];
	uint64_t all_steps, all_rows;
};

/*
 * Totals are of the generation: they only grow while `generation` and `uuid` stay what
 * they are, also over a daemon's death.
 */
struct picture_channel {
	char name[CHANNEL_NAME_TEXT]; /* "INSTANCE/RANK[.draft]" */
	char model[R3RING_MODEL_NAME_MAX + 1];
	char uuid[40];
	char state[16]; /* "live", "ended", "orphan" */
	uint64_t generation;
	int64_t producer_pid;           /* 0: not known */
	struct r3ring_coordinates rank; /* sizes 0: not known */
	bool crashed;                   /* more may be lost than `lost` says */
	bool producer_died;             /* the engine went without closing the channel */
	uint64_t steps;                 /* announced, lost ones too */
	uint64_t steps_complete, steps_partial;
	uint64_t rows;
	uint64_t records; /* published, of all types; the newest one's sequence */
	uint64_t bytes;   /* of published records' payloads */
	uint64_t ids_missing, ids_out_of_range;
	struct picture_lost lost;
	double steps_per_s;       /* as the daemon measures it; 0: at rest */
	int64_t last_step_age_ms; /* -1: no step yet */
	int32_t *bound;           /* [bound_count] model layer numbers that capture is bound to */
	size_t bound_count;
	int32_t *
		unbound; /* [unbound_count] of the schema's others those that do not come: missing */
	size_t unbound_count;
	size_t captured_count; /* layers that are bound, or come by call with nothing bound */
	struct picture_reader *readers; /* [reader_count] */
	size_t reader_count;
	uint64_t attached_readers; /* connected, with or without a page */
	uint64_t waits_for_readers, waited_for_readers_ms, readers_demoted;
};

struct daemon_picture {
	uint32_t references;
	enum picture_state state;
	char error[R3RING_ERROR_TEXT]; /* "" while live */
	uint64_t taken_ns;             /* CLOCK_MONOTONIC */
	int64_t pid;
	uint64_t pid_namespace; /* that its and producers' numbers are of; 0: not told */
	char version[32];
	uint64_t uptime_s;
	struct picture_channel *channels; /* [channel_count] in the daemon's order */
	size_t channel_count;
};

/*
 * Takes a picture of the daemon in @runtime_dir (NULL: as readers find it).
 *
 * @timeout_ms: what it takes at most; connecting never waits.
 *
 * Returns NULL only without memory. Pairs with daemon_picture_put(). Any thread.
 */
struct daemon_picture *daemon_picture_take(const char *runtime_dir, int timeout_ms);

/* The same from what daemon_status_ask() gave; fields that are not told are 0. */
struct daemon_picture *daemon_picture_of(const json_t *status);

/* One more that holds it, or one less; the last one frees it. NULL is fine. Any thread. */
struct daemon_picture *daemon_picture_get(struct daemon_picture *picture);
void daemon_picture_put(struct daemon_picture *picture);

/* NULL when it has no channel of that name. */
const struct picture_channel *daemon_picture_find(const struct daemon_picture *picture,
						  const char *name);

/* A word for the state: "live", "no daemon", "no answer". */
const char *picture_state_name(enum picture_state state);

/*
 * Steps and losses of a generation do not go back in @now (whom nobody else reads yet):
 * those that the ring lacked when its daemon died are known to the next daemon only once
 * the engine is back. @before: an earlier picture of a daemon; NULL: there is none.
 */
void picture_carry_on(struct daemon_picture *now, const struct daemon_picture *before);

/* ---- rates (picture_rates.c) ------------------------------------------------ */

struct picture_rates {
	bool known;                          /* false: all are 0 */
	double seconds;                      /* between the two pictures */
	double steps, rows, records, bytes;  /* a second */
	double lost_steps;                   /* a second, of all causes */
	struct picture_lost lost_in_between; /* numbers, not a second */
};

/*
 * How fast a channel was from one picture to a later one. Not known when either is of a
 * daemon that is gone, when the channel was not there, or was another generation (its
 * counts begin anew), or when a count went back: never negative.
 *
 * @channel: of @now.
 */
void picture_rates(const struct daemon_picture *before, const struct daemon_picture *now,
		   const struct picture_channel *channel, struct picture_rates *rates);

#endif
