/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane's writing end: records of one channel's generation into its
 * ring, with running totals, and keyframes when they are due.
 */
#ifndef DAEMON_PUBLISH_H
#define DAEMON_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

#include "capture_daemon/stall.h"
#include "record/live.h"

/* A keyframe takes so much of the ring at most, and is due when as much was written. */
#define KEYFRAME_SHARE 4

/* One thread at a time. */
struct publisher {
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	struct stall stall; /* what lossless readers may do to this channel */
	struct r3ring_schema_record schema;
	struct r3ring_layer_entry *layers; /* [schema.layers], owned */
	struct live live;
	struct r3ring_totals totals;
	uint64_t newest_step;
	uint64_t keyframe_position; /* arena position and sequence behind the newest keyframe */
	uint64_t keyframe_seq;
	bool keyframe_owed; /* the next boundary gets one */
	uint32_t left_out;  /* live requests that the newest one had no room for */
	uint32_t said;      /* so many of the next records were published by another daemon */
	size_t arena_bytes;
	uint32_t depth;
	uint8_t *scratch; /* one record's bytes */
	size_t scratch_bytes;
};

/*
 * Starts writing into @segment with the schema that @schema says; copies it.
 * Publishes nothing yet. Returns 0, -ENOMEM or what the ring refused.
 * Pairs with publisher_close(), which leaves the segment alone.
 */
int publisher_open(struct publisher *publisher, struct r3ring_segment *segment,
		   const struct r3ring_record *schema);
void publisher_close(struct publisher *publisher);

/*
 * Serves registered readers from now on, the lossless among them by @policy. While
 * the writer waits for one, @carry_on(@ctx) is asked again and again whether it may:
 * false ends all patience. Returns 0 or -ENOMEM.
 */
int publisher_serve(struct publisher *publisher, const struct stall_policy *policy,
		    bool (*carry_on)(void *ctx), void *ctx);

/* As r3ring_writer_put() and _reserve(); instead of returning -EAGAIN they wait, as
 * long as the policy says. Nothing may be reserved before. */
int publisher_put(struct publisher *publisher, const struct r3ring_record_spec *spec,
		  const void *payload);
int publisher_reserve(struct publisher *publisher, const struct r3ring_record_spec *spec,
		      struct r3ring_slot *slot);

/* Publishes one record. Returns 0, -EMSGSIZE (longer than the ring takes), or
 * -EINVAL (what no decoder would take). */
int publish_record(struct publisher *publisher, const struct r3ring_record *record, uint16_t flags);

/*
 * Publishes STEP (@record), its spans in further SPANS records where they do not fit
 * one. Returns 0, or -EMSGSIZE when one span alone does not fit; then nothing
 * was published.
 */
int publish_step(struct publisher *publisher, const struct r3ring_record *record);

/* Publishes SPANS likewise. */
int publish_spans(struct publisher *publisher, const struct r3ring_record *record);

/* Publishes EPLB, by layers where the map does not fit one record, and keeps it
 * for keyframes. Returns 0 or -EMSGSIZE (one layer alone does not fit). */
int publish_map(struct publisher *publisher, const struct r3ring_record *record);

/*
 * Publishes maps, and BEGIN of requests, that an earlier generation left live, and keeps
 * them; @live is empty afterwards, or as it was on failure. A map of which one layer alone
 * does not fit becomes LOST.
 */
int publish_carried(struct publisher *publisher, struct live *live);

/* Publishes LOST and counts it. */
int publish_lost(struct publisher *publisher, const struct r3ring_lost_record *lost);

/* Publishes LOST in place of a record that does not fit the ring: what it would have said
 * leaves keys in doubt, so readers must forget theirs. */
int publish_too_big(struct publisher *publisher);

/* Publishes SCHEMA again, after what is bound has changed. */
int publish_schema(struct publisher *publisher, uint16_t flags);

/* Publishes the last record and finishes the ring. */
int publish_closed(struct publisher *publisher, const struct r3ring_closed_record *closed);

/* Only between steps. Of more live requests than fit a keyframe the oldest are left out, and
 * it is flagged as abridged. */
bool keyframe_due(const struct publisher *publisher);
int publish_keyframe(struct publisher *publisher);

#endif
