/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `r3ring dump`: the loop that reads channels, and the forms that
 * its records are printed in.
 */
#ifndef TOOLS_DUMP_H
#define TOOLS_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <r3ring/reader.h>
#include <r3ring/record.h>

#include "consumer/channel_losses.h"

/* One record, read whole, with the table that names its requests. */
struct dump_item {
	const struct r3ring_view *view;
	const struct r3ring_record *record;
	const struct r3ring_requests *requests; /* NULL: nothing is attributed */
	const char *channel;                    /* NULL: there is but one */
};

/* Records that are not there: this reader was too slow for them, or the ring is damaged. */
struct dump_gap {
	uint64_t generation;
	uint64_t lost;
	uint64_t from_seq, to_seq;
	uint64_t missed;     /* whole generations in front of this one, of which nothing is known */
	const char *channel; /* likewise */
	bool corrupt;        /* they are damaged; else they were overwritten */
};

/* A record that could not be decoded. */
struct dump_unreadable {
	const struct r3ring_view *view;
	int code;         /* -EBADMSG, or -ENOTSUP for a type of a later version */
	const char *text; /* why */
	const char *channel;
};

/*
 * A form of output. Calls return 0 or a negative errno, which ends the dump;
 * that the stream takes what is written is checked by the loop.
 */
struct dump_form {
	int (*record)(void *ctx, const struct dump_item *item);
	int (*gap)(void *ctx, const struct dump_gap *gap);
	int (*unreadable)(void *ctx, const struct dump_unreadable *unreadable);
	void (*left_open)(void *ctx); /* of a ring by itself: nobody told its end; may be NULL */
	int (*finish)(void *ctx);     /* may be NULL */
	void *ctx;
};

/* ---- the loop --------------------------------------------------------- */

/* Which LAYER records are wanted. */
struct dump_layer {
	bool all;
	bool mtp; /* mtp layers have numbers of their own */
	int32_t id;
};

struct dump_options {
	const char *channel; /* or an instance's name alone: all its ranks */
	bool segment;        /* or a segment's, to be read as it lies there */
	enum r3ring_cursor_start from;
	uint64_t seq; /* for R3RING_FROM_SEQ */
	bool lossless;
	bool follow;            /* wait for the channel, then read on for good */
	uint64_t until_idle_ns; /* end when nothing came for so long; 0: never */
	struct dump_layer layer;
};

/* What was found to be damaged. */
struct dump_damage {
	uint64_t records;
	uint64_t tails; /* rings whose newest sequence cannot be */
};

bool dump_wants(const struct dump_layer *layer, const struct r3ring_record *record);

/* Whether the model that a SCHEMA record tells of has that layer. */
bool dump_has_layer(const struct dump_layer *layer, const struct r3ring_record *record);

/*
 * Text id of the request that a REQUEST record is about. An end need not repeat
 * it: then the table knows it. NULL: not known for certain. Not NUL-terminated.
 */
const char *dump_request_id(const struct dump_item *item, size_t *len);

/*
 * Reads the channel and hands all it finds to @form, until the end that the
 * options ask for, SIGINT or SIGTERM.
 *
 * @damage: receives what was damaged, which was told.
 * @err:    receives the reason in words.
 *
 * Returns 0, or a negative errno (-ECONNREFUSED: no daemon, -ENOENT: no such
 * channel).
 */
int dump_run(const struct dump_options *options, const struct dump_form *form, FILE *out,
	     struct dump_damage *damage, struct r3ring_error *err);

/* ---- JSON: one object a line ------------------------------------------ */

/* @out: the FILE to write to; void, since these are a form's calls. */
int dump_json_record(void *out, const struct dump_item *item);
int dump_json_gap(void *out, const struct dump_gap *gap);
int dump_json_unreadable(void *out, const struct dump_unreadable *unreadable);
struct dump_form dump_json_form(FILE *out);

/* ---- text: one line a record, the ids of a layer below it -------------- */

int dump_text_record(void *out, const struct dump_item *item);
int dump_text_gap(void *out, const struct dump_gap *gap);
int dump_text_unreadable(void *out, const struct dump_unreadable *unreadable);
struct dump_form dump_text_form(FILE *out);

/* ---- totals ----------------------------------------------------------- */

struct dump_count {
	FILE *out;
	const char *channel;
	uint64_t first_seq, last_seq;
	uint64_t generation, generations; /* the newest, and how many there were */
	uint64_t records[R3RING_RECORD_TYPES];
	uint64_t repeated; /* of these, said again in keyframes; not in what follows */
	uint64_t requests_begun, requests_ended;
	uint64_t steps_dropped, steps_complete, steps_partial;
	uint64_t step_rows;  /* tokens of this rank in the steps announced */
	uint64_t layer_rows; /* tokens times layers */
	uint64_t ids, ids_missing, ids_out_of_range;
	uint64_t last_step; /* of the newest LAYER record */
	uint16_t last_layer;
	uint64_t layers_missing[R3RING_CAUSE_COUNT];
	struct channel_losses losses; /* the channel's own */
	uint64_t gaps, gap_records;   /* overwritten */
	uint64_t corrupt_records;
	uint64_t missed; /* generations */
	uint64_t unreadable;
};

/* @count: a struct dump_count, zeroed but for `out` and `channel`. */
int dump_count_record(void *count, const struct dump_item *item);
int dump_count_gap(void *count, const struct dump_gap *gap);
int dump_count_unreadable(void *count, const struct dump_unreadable *unreadable);
void dump_count_left_open(void *count);
int dump_count_print(void *count);
struct dump_form dump_count_form(struct dump_count *count);

#endif
