/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of a test's own: segment, writer and cursors with names that carry the pid. */
#ifndef TESTS_UNIT_RING_FIXTURE_H
#define TESTS_UNIT_RING_FIXTURE_H

#include <stdint.h>

#include <r3ring/ring.h>

struct ring_fixture {
	char name[64];
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	struct r3ring_segment *seen; /* the same, opened as a reader does */
};

/* Options for a segment with a fresh name of this process, written to @name. */
struct r3ring_segment_options ring_fixture_options(char name[64], uint32_t depth,
						   uint64_t arena_bytes);

/* Makes and opens a ring; a failure ends the test. */
void ring_fixture_open(struct ring_fixture *ring, uint32_t depth, uint64_t arena_bytes);
void ring_fixture_open_options(struct ring_fixture *ring,
			       const struct r3ring_segment_options *options);

/* The writer's side goes, as when its process dies; readers and name stay. */
void ring_fixture_kill_writer(struct ring_fixture *ring);

/* A new writer adopts what ring_fixture_kill_writer() left. */
void ring_fixture_adopt(struct ring_fixture *ring);

/* Closes everything and removes the name. */
void ring_fixture_close(struct ring_fixture *ring);

struct r3ring_cursor *ring_fixture_cursor(const struct ring_fixture *ring,
					  enum r3ring_cursor_mode mode,
					  enum r3ring_cursor_start from, uint64_t seq);

/* The byte at @offset of record @seq in all these tests. */
uint8_t ring_fixture_byte(uint64_t seq, uint64_t offset);

/* Puts one record of @len such bytes, @units and @flags; returns its sequence. */
uint64_t ring_fixture_put(struct ring_fixture *ring, uint32_t len, uint64_t units, uint16_t flags);

/* Puts @count records of @len bytes, one unit each. */
void ring_fixture_put_many(struct ring_fixture *ring, uint64_t count, uint32_t len);

/* Whether @view has @seq and exactly its bytes. */
int ring_fixture_matches(const struct r3ring_view *view, uint64_t seq, uint32_t len);

/* Asserts that the next record is @seq, whole, and takes it. */
void ring_fixture_expect(struct r3ring_cursor *cursor, uint64_t seq, uint32_t len);

/* Asserts got + lost + skipped == cursor - start; returns the stats. */
struct r3ring_cursor_stats ring_fixture_account(const struct r3ring_cursor *cursor);

#endif
