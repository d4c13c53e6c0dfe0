/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of one channel in an archive: whether its entries agree with each other.
 * Sequences, units, steps and their layers, ids, keyframes and their totals.
 */
#ifndef ARCHIVE_ACCOUNT_H
#define ARCHIVE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#include "archive/again.h"
#include "archive/losses.h"
#include "archive/reader.h"

/* The step that is open; a channel has one at a time. */
struct account_step {
	struct r3ring_step_record head; /* step 0: none */
	uint64_t *layer_rows;           /* [layers] that came */
};

struct account_totals {
	struct r3ring_totals base; /* of the newest keyframe, or of the generation's beginning */
	struct r3ring_totals seen; /* behind it */
	bool whole;                /* nothing is missing in between */
	bool skipped;              /* LAYER records were left out on purpose */
};

struct account {
	uint32_t layer_first, layer_end; /* of the archive: layers that are kept */

	bool said; /* its generation */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t seq;   /* of its last record or gap */
	uint64_t units; /* up to there; not known behind a gap: */
	bool units_known;
	bool unended; /* a gap says that all records up to the generation's end are lost */
	bool closed;

	struct r3ring_schema_record schema; /* layers 0: none */
	struct r3ring_layer_entry *layers;
	struct account_step step;
	bool steps_known;      /* else a step may be open of which the beginning is not here */
	uint64_t newest_step;  /* announced */
	uint64_t counted_step; /* or counted by its loss */
	uint32_t repeats;      /* records of a keyframe that are still to come */
	struct account_totals totals;
	struct archive_losses losses; /* taken apart from the rest, */
	struct archive_again again;   /* as this is */
};

/* Zeroed, with the layers kept, it is a new account. */
void account_free(struct account *account);

/*
 * Takes the channel's next entry. @record: what a RECORD was decoded to; NULL where that
 * failed, or of other kinds.
 * Returns 0, 1 (it does not agree with those before: @err says how; the account goes on
 * with what it says), -ENOMEM.
 */
int account_take(struct account *account, const struct archive_item *item,
		 const struct r3ring_record *record, struct r3ring_error *err);

/* Entries are missing that cannot be told: what was known is not any more. */
void account_interrupt(struct account *account);

/* ---- parts ------------------------------------------------------------- */

/* "channel: what" with the entry's place; returns 1. */
int account_lie(struct r3ring_error *err, const struct archive_item *item, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Records of steps. Return as account_take(). */
int account_take_step(struct account *account, const struct archive_item *item,
		      const struct r3ring_record *record, struct r3ring_error *err);
int account_take_layer(struct account *account, const struct archive_item *item,
		       const struct r3ring_record *record, struct r3ring_error *err);
int account_take_end(struct account *account, const struct archive_item *item,
		     const struct r3ring_record *record, struct r3ring_error *err);
void account_take_lost(struct account *account, const struct r3ring_lost_record *lost);

/* A keyframe's totals against what was seen. */
int account_take_keyframe(struct account *account, const struct archive_item *item,
			  const struct r3ring_keyframe_record *keyframe, struct r3ring_error *err);

#endif
