/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `r3ring replay`: an archive's channels, each fed through a producer of its
 * own into a daemon.
 */
#ifndef TOOLS_REPLAY_H
#define TOOLS_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <r3ring/producer.h>
#include <r3ring/record.h>

#include "archive/reader.h"

enum replay_pace {
	REPLAY_RECORDED = 0, /* as the steps were apart */
	REPLAY_RATE = 1,     /* so many steps of a channel per second */
	REPLAY_MAX = 2,      /* as fast as the daemon takes them */
};

struct replay_options {
	const char *dir;
	const char *instance; /* of the channels to be made */
	const char *source;   /* whose channels are replayed; NULL: the archive has one only */
	enum replay_pace pace;
	double rate;
	const char *const *requests; /* [request_count] text ids; 0: all */
	uint32_t request_count;
	const uint32_t *stop; /* set to 1 from elsewhere to end early */
};

/* What came of it. */
struct replay_report {
	uint64_t channels, generations;
	uint64_t requests; /* begun */
	uint64_t steps, rows, layer_rows;
	uint64_t lost_steps, lost_rows; /* announced as lost: the archive does not have them */
	uint64_t lost_as_too_big;       /* of these steps: for that cause, which is not theirs */
	uint64_t late, late_records;    /* generations without their first records */
	uint64_t missed_generations;    /* of which the archive has no schema */
	uint64_t gaps;                  /* places where records were lost: */
	uint64_t gap_records;           /* so many, */
	uint64_t gaps_unsized;          /* and here nobody knows how many */
	uint64_t skipped;               /* LAYER records that --layers left out */
	uint64_t unfinished;            /* requests without an end */
	uint64_t missing_layers;        /* of steps that are not whole in the archive */
	uint64_t out_of_range;          /* ids that were no experts: they are missing now */
	uint64_t unreadable;            /* records that this version cannot decode */
	uint64_t refused;               /* maps and spans that the producer refused */
	uint64_t dropped_steps;         /* that the new channels had no room for */
	uint64_t damaged;               /* places at which the archive is damaged */
	uint64_t absent;                /* requests asked for that the archive does not have */
	bool stopped;                   /* before the end */
	double seconds;
};

/* Where it is. */
struct replay_hooks {
	void (*progress)(void *ctx, const struct replay_report *report, uint64_t passed,
			 uint64_t bytes);          /* may be NULL */
	void (*note)(void *ctx, const char *text); /* something that cannot be replayed */
	void *ctx;
};

/*
 * Replays the archive to its end, or until *options->stop.
 * Returns 0, -EINVAL (an option cannot be), -ENODATA (the archive has no such instance), as archive_reader_open() and
 * r3ring_producer_open(), -EOWNERDEAD (the daemon went away), -ENOMEM.
 */
int replay_run(const struct replay_options *options, const struct replay_hooks *hooks,
	       struct replay_report *report, struct r3ring_error *err);

/* ---- a step ------------------------------------------------------------ */

/* A LAYER record of it. */
struct replay_part {
	struct r3ring_layer_record head;
	size_t first; /* of its ids, in the step's */
};

/* A step as it is gathered from its records; kept for the next one. */
struct replay_step {
	struct r3ring_step_record head; /* step 0: none */
	struct r3ring_span *spans;
	uint64_t *keys;
	struct replay_part *parts;
	uint16_t *ids;
	int32_t *positions, *token_ids; /* of this rank's rows */
	size_t span_count, key_count, part_count, id_count;
	size_t row_count; /* of which these came */
	size_t span_room, key_room, part_room, id_room, row_room;
	uint32_t content; /* enum r3ring_rows_content: what of the two came */
	void *columns;    /* the spans by field */
	size_t column_room;
};

void replay_step_free(struct replay_step *step);

/* Begins with STEP; adds SPANS that continue it, LAYER, ROWS. Return 0 or -ENOMEM. */
int replay_step_begin(struct replay_step *step, const struct r3ring_record *record);
int replay_step_spans(struct replay_step *step, const struct r3ring_record *record);
int replay_step_layer(struct replay_step *step, const struct r3ring_record *record);
int replay_step_rows(struct replay_step *step, const struct r3ring_record *record);

/* The step's spans as step_begin() takes them, with request handles from @handles;
 * valid until the next call. Returns 0 or -ENOMEM. */
struct replay_handles;
int replay_step_map(struct replay_step *step, const struct replay_handles *handles,
		    struct r3ring_step *map);
/* All of the step as step_begin() takes it; likewise. */
int replay_step_say(struct replay_step *step, const struct replay_handles *handles,
		    struct r3ring_step *said);

/* ---- handles ----------------------------------------------------------- */

/* The new handle of a request; one that nobody announced where there is none. */
uint64_t replay_handle(const struct replay_handles *handles, uint64_t old);
bool replay_handle_known(const struct replay_handles *handles, uint64_t old);
/* @handles: NULL at first. Returns 0 or -ENOMEM. */
int replay_handle_add(struct replay_handles **handles, uint64_t old, uint64_t handle);
void replay_handle_remove(struct replay_handles **handles, uint64_t old);
/* Its request has ended; rows of it may still come. */
void replay_handle_end(struct replay_handles *handles, uint64_t old);
uint64_t replay_handles_live(const struct replay_handles *handles);
void replay_handles_free(struct replay_handles **handles);

/* ---- how far the daemon is --------------------------------------------- */

struct replay_flow;

/* Watches a channel that was opened. Returns as r3ring_reader_open(). */
int replay_flow_open(struct replay_flow **flow, const char *channel, struct r3ring_error *err);
void replay_flow_close(struct replay_flow *flow);

/* Waits until step @step is told, by its end or its loss. Returns 0, -EINTR (*stop),
 * -EOWNERDEAD (the daemon is gone for ten seconds). */
int replay_flow_wait(struct replay_flow *flow, uint64_t step, const uint32_t *stop);

/* ---- a channel --------------------------------------------------------- */

struct replay_channel;

/* What channels share. */
struct replay_shared {
	const struct replay_options *options;
	const struct replay_hooks *hooks;
	struct replay_report *report;
	struct r3ring_error *err;
	bool *met; /* [options->request_count]: it was announced */
};

/* @name: in the archive. NULL: no memory. */
struct replay_channel *replay_channel_create(const struct replay_shared *shared, const char *name);
/* Ends its producer. */
void replay_channel_destroy(struct replay_channel *channel);

/* The channel's next entry. Returns 0 or what ends the replay, with @shared->err filled in. */
int replay_channel_take(struct replay_channel *channel, const struct archive_item *item);

/* No more come: waits until the daemon has told all. Returns likewise. */
int replay_channel_finish(struct replay_channel *channel);

/* CLOCK_REALTIME at which the host began the step that a STEP record tells of, by its
 * schema; 0: not known. */
uint64_t replay_channel_begun(const struct replay_channel *channel,
			      const struct r3ring_step_record *step);

/* ---- reports ----------------------------------------------------------- */

void replay_print(FILE *out, const struct replay_options *options,
		  const struct replay_report *report);
int replay_print_json(const struct replay_options *options, const struct replay_report *report);

#endif
