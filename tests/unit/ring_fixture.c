/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of a test's own. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/ring_fixture.h"

/* A test that crashed left its names; the next one removes them. */
static void remove_names_of_dead_tests(void)
{
	DIR *directory = opendir("/dev/shm");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char name[sizeof(entry->d_name) + 1];
		int pid;

		if (sscanf(entry->d_name, "r3ring-test.%d.", &pid) != 1 || kill(pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		snprintf(name, sizeof(name), "/%s", entry->d_name);
		shm_unlink(name);
	}
	if (directory)
		closedir(directory);
}

struct r3ring_segment_options ring_fixture_options(char name[64], uint32_t depth,
						   uint64_t arena_bytes)
{
	static unsigned int count;

	if (!count)
		remove_names_of_dead_tests();
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

	cr_assert_eq(r3ring_segment_create(&ring->segment, options, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_segment_open(&ring->seen, options->name, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_writer_open(&ring->writer, ring->segment), 0);
}

void ring_fixture_open(struct ring_fixture *ring, uint32_t depth, uint64_t arena_bytes)
{
	struct r3ring_segment_options options =
		ring_fixture_options(ring->name, depth, arena_bytes);

	ring_fixture_open_options(ring, &options);
}

void ring_fixture_kill_writer(struct ring_fixture *ring)
{
	r3ring_writer_close(ring->writer);
	r3ring_segment_close(ring->segment);
	ring->writer = NULL;
	ring->segment = NULL;
}

void ring_fixture_adopt(struct ring_fixture *ring)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_adopt(&ring->segment, r3ring_segment_name(ring->seen), &err), 0,
		     "%s", err.text);
	cr_assert_eq(r3ring_writer_open(&ring->writer, ring->segment), 0);
}

void ring_fixture_close(struct ring_fixture *ring)
{
	if (ring->seen)
		r3ring_segment_unlink(ring->seen);
	ring_fixture_kill_writer(ring);
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

void ring_fixture_expect(struct r3ring_cursor *cursor, uint64_t seq, uint32_t len)
{
	struct r3ring_view view;

	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert_eq(view.seq, seq);
	cr_assert(ring_fixture_matches(&view, seq, len), "record %llu differs",
		  (unsigned long long)seq);
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	ring_fixture_account(cursor);
}

struct r3ring_cursor_stats ring_fixture_account(const struct r3ring_cursor *cursor)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_get_stats(cursor, &stats);
	cr_assert_eq(stats.got + stats.lost + stats.skipped, stats.cursor - stats.start);
	return stats;
}
