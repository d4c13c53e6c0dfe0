/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of a test's own. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/ring_fixture.h"

struct r3ring_segment_options ring_fixture_options(char name[64], uint32_t depth,
						   uint64_t arena_bytes)
{
	static unsigned int count;

	snprintf(name, 64, "/r3ring-test.%d.%u", getpid(), count++);
	return (struct r3ring_segment_options){
		.size = sizeof(struct r3ring_segment_options),
		.name = name,
		.label = "test/0",
		.arena_bytes = arena_bytes,
		.depth = depth,
		.generation = 7,
		.uuid = {1, 2, 3},
	};
}

void ring_fixture_open_options(struct ring_fixture *ring,
			       const struct r3ring_segment_options *options)
{
	struct r3ring_error err = {0};
	int rc = r3ring_segment_create(&ring->segment, options, &err);

	cr_assert_eq(rc, 0, "%s", err.text);
	rc = r3ring_segment_open(&ring->seen, options->name, &err);
	r3ring_segment_unlink(ring->segment);
	cr_assert_eq(rc, 0, "%s", err.text);
	cr_assert_eq(r3ring_writer_open(&ring->writer, ring->segment), 0);
}

void ring_fixture_open(struct ring_fixture *ring, uint32_t depth, uint64_t arena_bytes)
{
	struct r3ring_segment_options options =
		ring_fixture_options(ring->name, depth, arena_bytes);

	ring_fixture_open_options(ring, &options);
}

void ring_fixture_close(struct ring_fixture *ring)
{
	r3ring_writer_close(ring->writer);
	r3ring_segment_close(ring->segment);
	r3ring_segment_close(ring->seen);
}

struct r3ring_cursor *ring_fixture_cursor(const struct ring_fixture *ring,
					  enum r3ring_cursor_mode mode,
					  enum r3ring_cursor_start from, uint64_t seq)
{
	struct r3ring_cursor *cursor = NULL;

	cr_assert_eq(r3ring_cursor_open(&cursor, ring->seen, mode, from, seq), 0);
	return cursor;
}

uint8_t ring_fixture_byte(uint64_t seq, uint64_t offset)
{
	return (uint8_t)((seq * 0x9e3779b97f4a7c15ull + offset * 0xbf58476d1ce4e5b9ull) >> 40);
}

uint64_t ring_fixture_put(struct ring_fixture *ring, uint32_t len, uint64_t units, uint16_t flags)
{
	struct r3ring_record_spec spec = {
		.step = 9, .units = units, .len = len, .type = 3, .flags = flags};
	uint64_t seq = r3ring_writer_next_seq(ring->writer);
	uint8_t *payload = malloc(len + 1u);

	cr_assert_not_null(payload);
	for (uint32_t i = 0; i < len; i++)
		payload[i] = ring_fixture_byte(seq, i);
	cr_assert_eq(r3ring_writer_put(ring->writer, &spec, payload), 0);
	free(payload);
	return seq;
}

void ring_fixture_put_many(struct ring_fixture *ring, uint64_t count, uint32_t len)
{
	while (count--)
		ring_fixture_put(ring, len, 1, 0);
}

int ring_fixture_matches(const struct r3ring_view *view, uint64_t seq, uint32_t len)
{
	const uint8_t *data = view->data;

	if (view->seq != seq || view->len != len)
		return 0;
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != ring_fixture_byte(seq, i))
			return 0;
	return 1;
}

struct r3ring_cursor_stats ring_fixture_account(const struct r3ring_cursor *cursor)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_stats(cursor, &stats);
	cr_assert_eq(stats.got + stats.lost + stats.skipped, stats.cursor - stats.start);
	return stats;
}
