/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive in a directory of its own, and records for it by a rule: record s of a channel
 * has a type, a length and bytes that follow from the channel and s.
 */
#ifndef TESTS_UNIT_ARCHIVE_FIXTURE_H
#define TESTS_UNIT_ARCHIVE_FIXTURE_H

#include <stdint.h>

#include "archive/writer.h"
#include "tests/support/archive_walk.h"

#define FIXTURE_CHANNELS 2u
#define FIXTURE_UUID 7 /* every byte of a generation's, plus its number */

struct archive_fixture {
	char dir[64];
	struct archive_writer_options options;
	struct archive_writer *writer;
	int channel[FIXTURE_CHANNELS];
	uint64_t next[FIXTURE_CHANNELS]; /* sequence of the next record */
	uint32_t length;                 /* of payloads, at most; 0: 3000 */
	uint8_t *payload;
};

/* Makes the directory. */
void archive_fixture_init(struct archive_fixture *fixture);
/* Removes it with all that is in it. */
void archive_fixture_free(struct archive_fixture *fixture);

/* Opens the writer; goes on where its cursors say. */
int archive_fixture_open(struct archive_fixture *fixture, struct r3ring_error *err);
/* Gives one record of a channel. */
int archive_fixture_put(struct archive_fixture *fixture, unsigned int channel);
/* So many, in turns; asserts that they are taken. */
void archive_fixture_fill(struct archive_fixture *fixture, unsigned int records);
int archive_fixture_close(struct archive_fixture *fixture);

/* What record @seq is. Returns its length; @payload holds @fixture->length bytes. */
uint32_t archive_fixture_record(const struct archive_fixture *fixture, unsigned int channel,
				uint64_t seq, uint8_t *payload, uint16_t *type);

/* Walks the archive, asserts that all holds, and that each of its records is as given. */
void archive_fixture_check(const struct archive_fixture *fixture, struct archive_walk *walk);

/* Path of a segment; a static text. */
const char *archive_fixture_segment(const struct archive_fixture *fixture, unsigned int number);

#endif
