/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader with threads ahead of it gives what one without gives: entries, damage, and the
 * words for it.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/reader.h"
#include "tests/unit/archive_fixture.h"

static struct archive_fixture fixture;

/* Some ten blocks in three segments. */
static void write_archive(int level)
{
	archive_fixture_init(&fixture);
	fixture.options.level = level;
	fixture.options.segment_bytes = 3u << 20;
	fixture.length = 20000;
	cr_assert_eq(archive_fixture_open(&fixture, NULL), 0);
	archive_fixture_fill(&fixture, 1000);
	cr_assert_eq(archive_fixture_close(&fixture), 0);
}

static void remove_archive(void)
{
	archive_fixture_free(&fixture);
}

TestSuite(archive_ahead, .fini = remove_archive);

static bool same_item(const struct archive_item *one, const struct archive_item *other)
{
	if (one->kind != other->kind || one->repeated != other->repeated ||
	    one->time_ns != other->time_ns ||
	    strcmp(one->name ? one->name : "", other->name ? other->name : "") != 0 ||
	    memcmp(&one->place, &other->place, sizeof(one->place)) != 0)
		return false;
	if (one->kind != ARCHIVE_RECORD)
		return true;
	return one->view.seq == other->view.seq && one->view.len == other->view.len &&
	       memcmp(one->view.data, other->view.data, one->view.len) == 0;
}

/* The next entry of both; returns its code. */
static int next_same(struct archive_reader *plain, struct archive_reader *ahead,
		     struct archive_item *item, const char *what, size_t at)
{
	struct r3ring_error one = {0}, other = {0};
	struct archive_item second;
	int code = archive_reader_next(plain, item, &one);

	cr_assert_eq(archive_reader_next(ahead, &second, &other), code, "%s %zu: %s", what, at,
		     other.text);
	cr_assert_str_eq(one.text, other.text, "%s %zu", what, at);
	cr_assert(code != 1 || same_item(item, &second), "%s %zu: segment %llu", what, at,
		  (unsigned long long)item->place.segment);
	return code;
}

/* Reads to the end with both; returns the records that there were. */
static unsigned int expect_same(const char *what, size_t at)
{
	struct archive_reader *plain = NULL, *ahead = NULL;
	struct archive_item item;
	unsigned int records = 0, refused = 0;
	int opened = archive_reader_open(&plain, fixture.dir, NULL);
	int code = opened;

	cr_assert_eq(archive_reader_open(&ahead, fixture.dir, NULL), opened);
	if (opened)
		return 0;
	archive_reader_read_ahead(ahead);
	do {
		code = next_same(plain, ahead, &item, what, at);
		records += code == 1 && item.kind == ARCHIVE_RECORD;
		refused += code < 0;
	} while (code && refused < 8);
	archive_reader_close(plain);
	archive_reader_close(ahead);
	return records;
}

Test(archive_ahead, every_entry_is_given_as_without, .timeout = 60)
{
	for (int level = 0; level <= 3; level += 3) {
		write_archive(level);
		cr_expect_eq(expect_same("level", (size_t)level), 1000);
		archive_fixture_free(&fixture);
	}
	write_archive(3);
}

/* The @number-th segment, with a byte changed or cut. */
static void harm(unsigned int number, off_t at, bool cut)
{
	int fd = open(archive_fixture_segment(&fixture, number), O_RDWR);
	uint8_t byte;

	cr_assert_geq(fd, 0);
	if (cut) {
		cr_assert_eq(ftruncate(fd, at), 0);
	} else {
		cr_assert_eq(pread(fd, &byte, 1, at), 1);
		byte ^= 0x40;
		cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

static off_t size_of(unsigned int number)
{
	struct stat there;

	return stat(archive_fixture_segment(&fixture, number), &there) ? 0 : there.st_size;
}

Test(archive_ahead, damage_is_told_in_the_same_place_and_words, .timeout = 120)
{
	unsigned int seed = 5;

	write_archive(3);
	for (int i = 0; i < 40; i++) {
		const unsigned int number = 1 + (unsigned int)rand_r(&seed) % 2;
		const off_t at = rand_r(&seed) % size_of(number);

		harm(number, at, false);
		expect_same("changed", (size_t)at);
		harm(number, at, false);
	}
	cr_expect_eq(expect_same("restored", 0), 1000);
}

Test(archive_ahead, so_is_an_end_that_is_none, .timeout = 120)
{
	write_archive(0);
	for (int i = 1; i < 12; i++) {
		const off_t at = size_of(2) * (12 - i) / 12;

		harm(2, at, true);
		expect_same("cut", (size_t)at);
	}
}
