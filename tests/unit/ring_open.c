/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader refuses to open, one reason a test. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u

static struct ring_fixture ring;
static struct r3ring_segment_header *header; /* the one in shared memory */
static int fd = -1;

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, ARENA);
	fd = shm_open(ring.name, O_RDWR, 0);
	cr_assert_geq(fd, 0);
	header = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(header, MAP_FAILED);
}

static void teardown(void)
{
	munmap(header, sizeof(*header));
	close(fd);
	ring_fixture_close(&ring);
}

TestSuite(ring_open, .init = setup, .fini = teardown);

/* Both ways to open refuse it, and the message names the segment and @word. */
static void expect_refusal(int code, const char *word)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_open_fd(&segment, fd, NULL), code);
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, &err), code, "%s", err.text);
	cr_assert_null(segment);
	cr_assert_eq(err.code, code);
	cr_assert_not_null(strstr(err.text, ring.name), "%s", err.text);
	cr_assert_not_null(strstr(err.text, word), "%s", err.text);
}

Test(ring_open, what_was_not_broken_opens)
{
	struct r3ring_segment *segment = NULL;

	cr_assert_eq(r3ring_segment_open_fd(&segment, fd, NULL), 0);
	cr_assert_str_eq(r3ring_segment_name(segment), "");
	r3ring_segment_close(segment);
}

Test(ring_open, failure_3_a_reader_can_verify_uuid_generation_and_label)
{
	const struct r3ring_segment_header *seen = r3ring_segment_get_header(ring.seen);
	static const uint8_t uuid[16] = {1, 2, 3};

	cr_assert_eq(seen->generation, 7);
	cr_assert_eq(memcmp(seen->uuid, uuid, sizeof(uuid)), 0);
	cr_assert_str_eq(seen->label, "test/0");
	cr_assert_eq(seen->writer_pid, (uint32_t)getpid());
	cr_assert_neq(seen->writer_start_time, 0);
}

Test(ring_open, a_process_that_got_the_writers_pid_is_not_taken_for_it)
{
	struct r3ring_segment *segment = NULL;

	cr_assert(r3ring_segment_writer_lives(ring.seen));
	/* The writer has died, and its number was given to this process. */
	header->writer_start_time--;
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, NULL), 0);
	cr_assert_not(r3ring_segment_writer_lives(segment));
	r3ring_segment_close(segment);
	header->writer_start_time = 0; /* not known: nobody's */
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, NULL), 0);
	cr_assert_not(r3ring_segment_writer_lives(segment));
	r3ring_segment_close(segment);
}

Test(ring_open, the_header_is_a_copy_that_nobody_can_change)
{
	header->generation = 8;
	cr_assert_eq(r3ring_segment_get_header(ring.seen)->generation, 7);
}

Test(ring_open, a_missing_name_is_enoent)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_open(&segment, "/r3ring-test.nobody", &err), -ENOENT);
	cr_assert_not_null(strstr(err.text, "/r3ring-test.nobody"));
}

Test(ring_open, a_name_without_a_slash_is_refused)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_open(&segment, "r3ring", &err), -EINVAL);
	cr_assert_eq(r3ring_segment_open(&segment, "r3ring", NULL), -EINVAL);
}

Test(ring_open, an_unfinished_segment_is_eagain)
{
	header->state = R3RING_STATE_NEW;
	header->magic = 0;
	expect_refusal(-EAGAIN, "not finished");
}

Test(ring_open, an_object_without_memory_yet_is_eagain)
{
	cr_assert_eq(ftruncate(fd, 0), 0);
	expect_refusal(-EAGAIN, "not allocated");
	cr_assert_eq(posix_fallocate(fd, 0, 3 * 65536 + ARENA), 0);
}

Test(ring_open, an_unknown_state_is_corrupt)
{
	header->state = 2;
	expect_refusal(-EBADMSG, "state");
}

Test(ring_open, another_magic_is_no_segment)
{
	header->magic++;
	expect_refusal(-EBADMSG, "magic");
}

Test(ring_open, the_other_byte_order_is_refused)
{
	header->endian = __builtin_bswap32(R3RING_ENDIAN_MARK);
	header->magic = __builtin_bswap64(R3RING_MAGIC);
	expect_refusal(-EPROTO, "byte order");
}

Test(ring_open, an_unknown_byte_order_mark_is_refused)
{
	header->endian = 0x02010403;
	expect_refusal(-EPROTO, "byte-order mark");
}

Test(ring_open, another_major_abi_is_refused)
{
	header->abi_major = R3RING_ABI_MAJOR + 1;
	expect_refusal(-EPROTO, "ABI");
}

Test(ring_open, another_minor_abi_is_read)
{
	struct r3ring_segment *segment = NULL;

	header->abi_minor = 9;
	header->header_size += 64;
	header->features_compatible = ~0ull;
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, NULL), 0);
	r3ring_segment_close(segment);
}

Test(ring_open, an_unknown_incompatible_feature_is_refused)
{
	header->features_incompatible = 1ull << 40;
	expect_refusal(-EPROTO, "features");
}

Test(ring_open, a_header_too_short_is_corrupt)
{
	header->header_size = sizeof(*header) - 1;
	expect_refusal(-EBADMSG, "header");
}

Test(ring_open, a_header_longer_than_its_region_is_corrupt)
{
	header->header_size = R3RING_REGION_ALIGN + 1;
	expect_refusal(-EBADMSG, "header");
}

Test(ring_open, a_size_other_than_the_objects_is_corrupt)
{
	header->segment_size += R3RING_REGION_ALIGN;
	expect_refusal(-EBADMSG, "bytes");
}

Test(ring_open, an_object_too_small_for_any_segment_is_corrupt)
{
	int small = memfd_create("small", MFD_CLOEXEC);
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(ftruncate(small, 100), 0);
	cr_assert_eq(r3ring_segment_open_fd(&segment, small, &err), -EBADMSG);
	cr_assert_not_null(strstr(err.text, "too few"));
	close(small);
}

Test(ring_open, a_descriptor_of_something_else_is_corrupt)
{
	struct r3ring_segment *segment = NULL;
	int pipes[2];

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(r3ring_segment_open_fd(&segment, pipes[0], NULL), -EBADMSG);
	close(pipes[0]);
	close(pipes[1]);
}

Test(ring_open, a_first_sequence_of_zero_is_corrupt)
{
	header->first_seq = 0;
	expect_refusal(-EBADMSG, "first sequence");
}

Test(ring_open, a_first_sequence_near_the_end_of_numbers_is_corrupt)
{
	header->first_seq = ~0ull;
	expect_refusal(-EBADMSG, "first sequence");
}

Test(ring_open, a_label_without_end_is_corrupt)
{
	memset(header->label, 'x', sizeof(header->label));
	expect_refusal(-EBADMSG, "label");
}

/* ---- regions ------------------------------------------------------------ */

Test(ring_open, a_region_off_its_multiple_is_corrupt)
{
	header->regions[R3RING_REGION_DESCS].offset += 4096;
	expect_refusal(-EBADMSG, "descriptors");
}

Test(ring_open, a_region_over_the_header_is_corrupt)
{
	header->regions[R3RING_REGION_LINES].offset = 0;
	expect_refusal(-EBADMSG, "writer lines");
}

Test(ring_open, a_region_behind_the_object_is_corrupt)
{
	header->regions[R3RING_REGION_ARENA].offset += R3RING_REGION_ALIGN;
	expect_refusal(-EBADMSG, "arena");
}

Test(ring_open, a_region_whose_end_wraps_around_is_corrupt)
{
	header->regions[R3RING_REGION_ARENA].offset = 0ull - R3RING_REGION_ALIGN;
	expect_refusal(-EBADMSG, "arena");
}

Test(ring_open, an_arena_larger_than_the_object_is_corrupt)
{
	header->regions[R3RING_REGION_ARENA].count_log2++;
	expect_refusal(-EBADMSG, "arena");
}

Test(ring_open, a_count_beyond_any_shift_is_corrupt)
{
	header->regions[R3RING_REGION_DESCS].count_log2 = 64;
	expect_refusal(-EBADMSG, "descriptors");
}

Test(ring_open, a_count_too_small_is_corrupt)
{
	header->regions[R3RING_REGION_DESCS].count_log2 = 3;
	expect_refusal(-EBADMSG, "descriptors");
}

Test(ring_open, another_stride_is_corrupt)
{
	header->regions[R3RING_REGION_DESCS].stride = 128;
	expect_refusal(-EBADMSG, "stride");
}

Test(ring_open, regions_that_overlap_are_corrupt)
{
	header->regions[R3RING_REGION_DESCS].offset = header->regions[R3RING_REGION_LINES].offset;
	expect_refusal(-EBADMSG, "overlap");
}

/* ---- who made it -------------------------------------------------------- */

Test(ring_open, a_segment_that_anybody_may_write_is_refused_by_name)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(fchmod(fd, 0666), 0);
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, &err), -EACCES);
	cr_assert_not_null(strstr(err.text, "0666"), "%s", err.text);
}

Test(ring_open, a_segment_of_a_stranger_is_refused_by_name)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	if (geteuid())
		cr_skip_test("only root can give a file away");
	cr_assert_eq(fchown(fd, 12345, 54321), 0);
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, &err), -EACCES);
	cr_assert_not_null(strstr(err.text, "12345"), "%s", err.text);
	cr_assert_eq(r3ring_segment_open_fd(&segment, fd, &err), 0, "who sent it was checked");
	r3ring_segment_close(segment);
}

Test(ring_open, a_segment_of_a_group_of_ours_is_read)
{
	struct r3ring_segment *segment = NULL;

	if (geteuid())
		cr_skip_test("only root can give a file away");
	cr_assert_eq(fchown(fd, 12345, getegid()), 0);
	cr_assert_eq(r3ring_segment_open(&segment, ring.name, NULL), 0);
	r3ring_segment_close(segment);
}

Test(ring_open, a_fifo_of_a_segment_s_name_is_refused_and_not_waited_for, .timeout = 20)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};
	char path[96], name[64];

	snprintf(name, sizeof(name), "/r3ring-test.fifo.%d", getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(r3ring_segment_open(&segment, name, &err), -EBADMSG);
	cr_expect_eq(r3ring_segment_adopt(&segment, name, &err), -EBADMSG);
	cr_expect(strstr(err.text, "no shared-memory object"), "%s", err.text);
	unlink(path);
}
