/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: what is to be recorded, the loop that does it, and what is shown of it. */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <r3ring/error.h>
#include <r3ring/instance.h>
#include <r3ring/record.h>

#include "archive/ranks.h"
#include "archive/writer.h"
#include "consumer/channel_losses.h"

struct record_options {
	const char *instance;
	const char *const *only; /* channels, up to NULL; NULL: all of `models` */
	enum r3ring_instance_models models;
	uint64_t until_idle_ns; /* 0: never */
	struct archive_writer_options archive;
};

/* What came of it. */
struct record_report {
	uint64_t records;                   /* read and given to the archive */
	uint64_t lost;                      /* in gaps of known size */
	uint64_t gaps;                      /* all, also those of unknown size */
	uint64_t unsized;                   /* of these gaps */
	uint64_t missed;                    /* generations that were gone before it came to them */
	uint64_t corrupt;                   /* records that the ring's reader refused */
	uint64_t unreadable;                /* that it took, and whose payload says nothing */
	uint64_t demotions;                 /* how often a channel no longer waited for it */
	struct lost_account channels_lost;  /* what the channels themselves lost in its time */
	struct archive_absent_ranks absent; /* where all channels told what they are part of */
	uint64_t partial_steps;             /* with layers missing */
	uint64_t layers;                    /* that --layers keeps, of all channels' schemas */
	uint64_t schemas;
	uint32_t channels;
	uint64_t ns; /* since the first channel was there */
	bool begun;  /* there was a channel: what failed then is no lack of one */
	bool full;   /* ended by the archive's own limit */
	bool resumed;
	uint64_t cut_bytes; /* of what the recorder before had not finished */
	char dir[PATH_MAX]; /* where the archive is: it may have been renamed */
	struct archive_writer_stats archive;
};

/*
 * Records until SIGINT, SIGTERM, SIGHUP, the idle limit or the archive's; notes on what happens go
 * to stderr, and progress where that is a terminal.
 *
 * Returns 0, or a negative errno with its reason in @err: -ECONNREFUSED (no daemon), -ENOENT
 * (no channel of the instance came in time), others as of instance and archive. @report is
 * filled in either way.
 */
int record_run(const struct record_options *options, struct record_report *report,
	       struct r3ring_error *err);

/* ---- record_report.c ------------------------------------------------------ */

/* A line on a terminal that is kept up to date. Zeroed: none. */
struct record_progress {
	FILE *terminal; /* NULL: there is none */
	uint64_t shown_ns;
	bool drawn;
};

void record_progress_show(struct record_progress *progress, const struct record_report *report);
void record_progress_clear(struct record_progress *progress);

/* The summary. */
void record_print_text(FILE *out, const struct record_report *report);
/* Returns an exit code. */
int record_print_json(const struct record_options *options, const struct record_report *report);

/* ---- record_content.c ------------------------------------------------------ */

/* Whether records of its type are of what channels themselves lose. */
bool record_content_tells(const struct r3ring_view *view);

/* Counts what a record says of losses; @losses: its channel's. */
void record_content_note(struct record_report *report, struct channel_losses *losses,
			 const struct r3ring_view *view);

/* Notes what a SCHEMA record says that its channel is a part of. Returns 0 or -ENOMEM. */
int record_content_rank(struct archive_ranks *ranks, const char *channel,
			const struct r3ring_view *view);

/* Looks in a SCHEMA record for layers that @archive keeps; tells where there is none. */
void record_content_schema(struct record_report *report, const char *channel,
			   const struct archive_writer_options *archive,
			   const struct r3ring_view *view);

/* ---- record_before.c -------------------------------------------------------- */

/* The newest generations that the daemon's channels of the instance have had up to now, to be
 * freed; NULL: that cannot be known, as where this user may not read of it. */
json_t *record_before_read(const char *instance);

/* That of one channel, 0: it had none. False where it is not known. */
bool record_before_get(const json_t *before, const char *channel, uint64_t *generation);

/* ---- record_channels.c: each channel's accounts -------------------------- */

struct record_channel {
	int index;           /* in the archive */
	bool begun;          /* its generation is the archive's */
	bool read;           /* something of it came since this recorder began */
	bool resumed;        /* the archive had it */
	bool followed;       /* it is read to its end: the reader was in its ring */
	uint64_t generation; /* of the newest entry */
	uint8_t uuid[16];
	uint64_t seq;                 /* of its last record or gap */
	uint64_t step;                /* of the generation, that was announced last; 0: none was */
	uint64_t lost;                /* of this generation, as told */
	bool closed;                  /* CLOSED was its last record */
	bool demoted;                 /* told */
	bool known;                   /* its layers were looked at */
	bool placed;                  /* it told what it is a part of */
	struct channel_losses losses; /* since this recorder began */
};

struct record_channels {
	struct r3ring_instance *instance;
	struct archive_writer *writer;
	const struct archive_writer_options *archive;
	const char *runtime_dir;         /* where its daemon was at first */
	const json_t *before;            /* as of record_before_read() */
	struct record_channel *channels; /* by the instance's index */
	uint32_t count;
	struct archive_ranks ranks; /* of these */
	struct record_report *report;
	struct record_progress *progress; /* to be cleared before a note */
};

/* Makes those known that appeared. Returns 0 or as the archive's calls. */
int record_channels_meet(struct record_channels *channels);
/* Tells the report of ranks that are not among them; of none where a channel did not say. */
void record_channels_find_absent(const struct record_channels *channels);
void record_channels_release(struct record_channels *channels);

/*
 * A record, or that records were lost, of the current channel. @view may lie where the writer's
 * next payload goes (archive_writer_room()). Return as the archive's calls.
 */
int record_channels_record(struct record_channels *channels, const struct r3ring_view *view);
int record_channels_gap(struct record_channels *channels, bool corrupt);

/* Brings the report's losses up to date. */
void record_channels_sum_losses(struct record_channels *channels);

/* ---- record_unfollowed.c ---------------------------------------------------- */

/* At the end: tells, and notes in the archive, behind what nobody tells any more, or yet, what
 * engines run. Returns as the archive's calls. */
int record_unfollowed_tell(struct record_channels *channels);

#endif
