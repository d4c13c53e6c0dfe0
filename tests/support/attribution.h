/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what a reader is given back where it came from: each row by the request
 * and the position that the step's spans say, and compares it with the recording
 * there. Nothing is taken from the order in which things come.
 */
#ifndef TESTS_SUPPORT_ATTRIBUTION_H
#define TESTS_SUPPORT_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/reader.h>

#include "tests/support/recording.h"

#define ATTRIBUTION_STEP_ROWS 1024u

/* Which row of the recording a row of the step is. */
struct attribution_owner {
	bool known;
	uint32_t row;
};

struct attribution {
	const struct recording *recording;
	struct r3ring_requests *requests;
	void *buffer; /* of one record */
	size_t capacity;

	uint64_t step; /* the owners are those of its rows */
	struct attribution_owner owners[ATTRIBUTION_STEP_ROWS];

	/* What is known by the test's own account of keyframes. */
	bool ready;
	uint64_t ready_step;    /* the newest step before that */
	uint64_t keyframe_next; /* sequence of the keyframe's next record */
	uint64_t keyframe_step;
	uint32_t keyframe_left;

	uint8_t *seen;              /* [rows][layers] of the recording: how often delivered */
	uint64_t *counts;           /* [layers][experts] of all ids delivered with an owner */
	uint64_t records;           /* taken */
	uint64_t units;             /* valid rows of LAYER records taken */
	uint64_t right;             /* rows x layers with an owner and the recording's ids */
	uint64_t wrong;             /* with an owner and other ids, or not where any row can be */
	uint64_t early;             /* spans that got a name before a keyframe */
	uint64_t unowned;           /* rows x layers delivered without an owner */
	uint64_t unowned_ready;     /* of these, after a keyframe */
	uint64_t padding_not_empty; /* ids behind the valid rows that are not missing */
	uint64_t ids_missing;       /* as LAYER records tell them */
	uint64_t externals, ends;   /* spans and requests that were as they must be */
	uint64_t wrong_spans, wrong_ends;
	uint64_t steps_complete, steps_partial;
	uint64_t newest_step_end;
	uint64_t overruns;    /* times that it was told of a loss */
	uint64_t refused;     /* views that were overwritten while they were used */
	uint64_t wrong_lines; /* of a dump, that are not what the manual says */
	uint64_t gap_records; /* that a dump tells it lost */
};

void attribution_init(struct attribution *attribution, const struct recording *recording);
void attribution_free(struct attribution *attribution);

/* How many rows x layers of the recording did not come exactly once. */
uint64_t attribution_not_once(const struct attribution *attribution);

/* How many did not come as often as they must to one who attributes nothing but
 * what ran after its ready_step. @step_of_row: in which step each row ran. */
uint64_t attribution_not_as_late(const struct attribution *attribution,
				 const uint64_t *step_of_row);

/* ---- fed record by record --------------------------------------------- */

/* Every record: whether names may be given from here on. @keyframe: its head, NULL
 * for other records. */
void attribution_follow(struct attribution *attribution, uint64_t seq, uint16_t type,
			const struct r3ring_keyframe_record *keyframe);

void attribution_step(struct attribution *attribution, uint64_t step);
/* @request: text id, NULL when it is not known. */
void attribution_span(struct attribution *attribution, const char *request,
		      const struct r3ring_span *span);
void attribution_layer(struct attribution *attribution, const struct r3ring_layer_record *head,
		       const uint16_t *ids);
void attribution_end(struct attribution *attribution, const char *request,
		     const struct r3ring_request_record *head);

/* ---- fed from a reader ------------------------------------------------- */

enum attribution_way {
	ATTRIBUTION_COPY,     /* r3ring_reader_read() */
	ATTRIBUTION_IN_PLACE, /* r3ring_reader_next(), compared in the ring, then check */
};

/*
 * Takes one record. Returns 1 when there was one (or the news of a loss), 0 when
 * there is nothing to read; a corrupt record counts as wrong.
 */
int attribution_take(struct attribution *attribution, struct r3ring_reader *reader,
		     enum attribution_way way);

/* Takes all there is. */
void attribution_take_all(struct attribution *attribution, struct r3ring_reader *reader,
			  enum attribution_way way);

/* Takes records until @done, for at most 30 seconds; returns whether it came. */
bool attribution_take_until(struct attribution *attribution, struct r3ring_reader *reader,
			    bool (*done)(const struct attribution *attribution, uint64_t argument),
			    uint64_t argument);

/* For attribution_take_until(). */
bool attribution_has_step(const struct attribution *attribution, uint64_t step);
bool attribution_has_ends(const struct attribution *attribution, uint64_t requests);

#endif
