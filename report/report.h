/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an archive says at a glance. Reading it fills a struct report, in memory that does
 * not grow with the archive; page.h and the heatmap show it.
 *
 *	report_read -> { report_place } -> show -> report_free
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/load.h>

#include "archive/losses.h"
#include "archive/reader.h"
#include "archive/verify.h"
#include "report/placing.h"
#include "report/requests.h"
#include "report/series.h"

#define REPORT_PROBLEMS_TOLD 20u

struct report_options {
	const char *instance;       /* NULL: all */
	const char *const *request; /* [requests] text ids: their routes alone; none: all */
	uint32_t requests;
	uint64_t since_ns, until_ns; /* of the time line; 0: no limit */
	uint64_t max_bytes;          /* of rows of requests at work; 0: the assembler's default */
	uint32_t table;              /* requests told one by one, at most */
};

struct report_channel {
	char *name;                     /* NULL: not of what was asked for */
	struct archive_verified counts; /* its own */
	struct archive_losses losses;   /* of `counts`, while it is read */
};

/* What became of the cells of all requests. */
struct report_coverage {
	uint64_t requests, unfinished, aborted, evicted, not_asked;
	uint64_t tokens, cells, valid;
	uint64_t missing[R3RING_MISSING_CAUSES];
	uint64_t conflicts, unattributed;
};

struct report {
	struct archive_verified counts; /* of all channels; nothing was verified, but what the
					 * reader does anyway */
	struct archive_kept kept;       /* layers; end 0: none were left out */
	uint64_t problems;              /* places that could not be read, or not understood */
	char *problem[REPORT_PROBLEMS_TOLD];

	char model[R3RING_MODEL_NAME_MAX + 1];
	struct report_channel *channel; /* [channels] */
	uint32_t channels;
	struct series series;                 /* counts of layers, in all and over time */
	struct r3ring_load_accounts accounts; /* of all steps of that time */
	uint64_t epoch;              /* of the newest step's EPLB map of any channel, 0: none */
	struct r3ring_eplb_map *map; /* the newest that was captured whole; NULL: none */
	struct r3ring_load *load;
	struct report_coverage coverage;
	uint64_t steps_unknown; /* not counted, as they came in front of a first keyframe */
	struct request_table requests;

	/* Of what is shown: of all steps, or of the requests that were asked for. */
	struct r3ring_layer_entry *layer; /* [layers], in the model's order */
	double *load_counts, *load_rows;  /* [layers][experts], [layers] */
	struct r3ring_load_info info;     /* of these */
	struct placing placing;
	bool placed;
};

typedef void (*report_progress_fn)(void *ctx, uint64_t bytes, uint64_t of);

/*
 * Reads the archive in @dir.
 *
 * @report:   receives it, also on failure; pairs with report_free().
 * @progress: NULL: nobody is told.
 *
 * Returns 0 (also of a damaged archive: report->problems says so), what archive_reader_open()
 * and archive_reader_next() return, -EPROTO (more than one model), -ENOENT (a request that was
 * asked for is not there, or the instance), -ENODATA (no routes at all), -ENOMEM; with the
 * reason.
 */
int report_read(struct report *report, const char *dir, const struct report_options *options,
		report_progress_fn progress, void *ctx, struct r3ring_error *err);
void report_free(struct report *report);

/* How the load lies on GPUs, and would. Returns as placing_make(). */
int report_place(struct report *report, const struct r3ring_eplb_options *place,
		 struct r3ring_error *err);

/* ---- parts of reading -------------------------------------------------------------- */

void report_problem(struct report *report, const char *text);
/* The channel of an entry; NULL: no memory. */
struct report_channel *report_channel_of(struct report *report, const struct archive_item *item);
/* Makes room for what is shown: load_counts and load_rows of zeros, and info. Returns 0, -ENODATA
 * (no layers) or -ENOMEM. */
int report_show(struct report *report, uint32_t layers, uint32_t experts, uint16_t top_k);
/* Fills it from what was counted. Returns 0, -ENODATA or -ENOMEM. */
int report_settle(struct report *report);

#endif
