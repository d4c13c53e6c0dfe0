/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a channel of a small model says, put into an archive by hand: requests, steps and
 * their ids, which are a function of generation, step, row and layer, with the accounts
 * that a daemon keeps.
 */
#ifndef TESTS_SUPPORT_ARCHIVE_STORY_H
#define TESTS_SUPPORT_ARCHIVE_STORY_H

#include <r3ring/record.h>

#include "tests/support/archive_builder.h"

#define STORY_LAYERS 3u
#define STORY_TOP_K 2u
#define STORY_EXPERTS 1000u
#define STORY_LIVE_MAX 8u

struct story_request {
	uint64_t handle; /* 0: none */
	char id[32];
	uint32_t prompt;
};

struct story {
	struct archive_builder *builder;
	uint16_t channel; /* in the archive */
	const char *name;
	uint64_t generation;
	uint64_t seq, units, step; /* the newest */
	uint64_t weight_version;
	uint16_t continues; /* of the SCHEMA that is said */
	bool absent;        /* what is said now is not recorded */
	struct r3ring_totals totals;
	struct story_request live[STORY_LIVE_MAX];
};

/* The id at place @k. */
uint16_t story_id(uint64_t generation, uint64_t step, uint32_t row, uint32_t layer, uint32_t k);

/* Declares the channel, begins generation 1, says its SCHEMA. */
void story_begin(struct story *story, struct archive_builder *builder, uint16_t channel,
		 const char *name);
void story_generation(struct story *story, uint64_t generation);

/* What a new segment says again of the channel. */
void story_repeat(const struct story *story);

/* Closes the segment and begins the next, with what is said again of @count channels. */
void story_next_segment(struct story *const *stories, uint32_t count);

void story_request(struct story *story, uint64_t handle, const char *id, uint32_t prompt);
void story_end(struct story *story, uint64_t handle, uint32_t accepted);

/* A whole step, in which @rows tokens of one request are run, from @position on. */
void story_step(struct story *story, uint64_t handle, uint32_t position, uint32_t rows);

/* Its parts. */
void story_step_begin(struct story *story, uint64_t handle, uint32_t position, uint32_t rows);
void story_layer(struct story *story, uint32_t layer, uint32_t rows);
void story_step_end(struct story *story, uint32_t rows);

void story_lost(struct story *story, uint64_t steps, uint64_t rows, enum r3ring_cause cause);
void story_keyframe(struct story *story);
void story_closed(struct story *story);

/* CLOSED of an engine that lived, and CRASHED. */
void story_closed_for(struct story *story, enum r3ring_closed_reason reason, bool engine_lives);

/* Any record. */
void story_record(struct story *story, const struct r3ring_record *record, uint64_t step,
		  uint64_t units, uint16_t flags);

#endif
