/* SPDX-License-Identifier: Apache-2.0 */
/* Making a segment: allocated in full, with exact rights, or an error in words. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/container.h"
#include "tests/support/emulated.h"
#include "tests/unit/ring_fixture.h"

static char name[64];
static struct r3ring_segment_options options;

static void setup(void)
{
	options = ring_fixture_options(name, 64, 65536);
}

static void teardown(void)
{
	shm_unlink(name);
}

TestSuite(ring_create, .init = setup, .fini = teardown);

static struct stat status_of(const char *of)
{
	struct stat st;
	int fd = shm_open(of, O_RDONLY, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return st;
}

static struct r3ring_segment *create(void)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_create(&segment, &options, &err), 0, "%s", err.text);
	return segment;
}

static void expect_refusal(int code, const char *word)
{
	struct r3ring_segment *segment = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_segment_create(&segment, &options, &err), code, "%s", err.text);
	cr_assert_null(segment);
	cr_assert_not_null(strstr(err.text, word), "%s", err.text);
}

Test(ring_create, the_mode_is_exact_whatever_the_umask)
{
	struct r3ring_segment *segment;

	umask(0777);
	segment = create();
	cr_assert_eq(status_of(name).st_mode & 07777, 0640);
	r3ring_segment_close(segment);
}

Test(ring_create, a_mode_of_ones_own_is_exact_too)
{
	struct r3ring_segment *segment;

	options.mode = 0664;
	umask(077);
	segment = create();
	cr_assert_eq(status_of(name).st_mode & 07777, 0664);
	r3ring_segment_close(segment);
}

Test(ring_create, failure_38_all_of_its_memory_is_allocated_at_once)
{
	struct r3ring_segment *segment = create();
	struct stat st = status_of(name);

	cr_assert_eq((uint64_t)st.st_size, r3ring_segment_get_header(segment)->segment_size);
	cr_assert_geq(st.st_blocks * 512, st.st_size);
	r3ring_segment_close(segment);
}

Test(ring_create, a_name_that_is_taken_is_eexist_and_left_alone)
{
	struct r3ring_segment *segment = create();

	expect_refusal(-EEXIST, name);
	cr_assert_gt(status_of(name).st_size, 0);
	r3ring_segment_close(segment);
}

Test(ring_create, unlink_removes_the_name_and_leaves_the_memory)
{
	struct r3ring_segment *segment = create(), *seen = NULL;

	cr_assert_eq(r3ring_segment_open(&seen, name, NULL), 0);
	cr_assert_eq(r3ring_segment_unlink(segment), 0);
	cr_assert_eq(r3ring_segment_unlink(segment), -ENOENT);
	cr_assert_eq(r3ring_segment_tail(seen), 0);
	r3ring_segment_close(segment);
	r3ring_segment_close(seen);
}

Test(ring_create, a_descriptor_for_readers_cannot_be_written)
{
	struct r3ring_segment *segment = create(), *seen = NULL;
	int fd = r3ring_segment_reader_fd(segment);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cr_assert_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	cr_assert_eq(r3ring_segment_open_fd(&seen, fd, NULL), 0);
	cr_assert_eq(r3ring_segment_reader_fd(seen), -EINVAL);
	close(fd);
	r3ring_segment_close(seen);
	r3ring_segment_close(segment);
}

Test(ring_create, the_largest_record_is_an_eighth_of_the_arena)
{
	struct r3ring_segment *segment = create();

	cr_assert_eq(r3ring_segment_max_record(segment), 65536 / 8);
	r3ring_segment_close(segment);
}

Test(ring_create, the_smallest_ring_works)
{
	struct r3ring_segment *segment;

	options.depth = 16;
	options.arena_bytes = 4096;
	segment = create();
	cr_assert_eq(r3ring_segment_get_header(segment)->segment_size % R3RING_REGION_ALIGN, 0);
	r3ring_segment_close(segment);
}

/* ---- refused options ---------------------------------------------------- */

Test(ring_create, options_of_another_size_are_refused)
{
	options.size--;
	expect_refusal(-EINVAL, "options");
}

Test(ring_create, a_name_without_a_slash_is_refused)
{
	options.name = "r3ring-test";
	expect_refusal(-EINVAL, "r3ring-test");
}

Test(ring_create, a_name_with_two_slashes_is_refused)
{
	options.name = "/r3ring/test";
	expect_refusal(-EINVAL, "/r3ring/test");
}

Test(ring_create, a_name_too_long_is_refused)
{
	char long_name[300];

	memset(long_name, 'n', sizeof(long_name));
	long_name[0] = '/';
	long_name[sizeof(long_name) - 1] = '\0';
	options.name = long_name;
	expect_refusal(-EINVAL, "nnn");
}

Test(ring_create, a_label_too_long_is_refused)
{
	char label[R3RING_LABEL_MAX + 2];

	memset(label, 'l', sizeof(label));
	label[sizeof(label) - 1] = '\0';
	options.label = label;
	expect_refusal(-EINVAL, "label");
}

Test(ring_create, an_arena_that_is_no_power_of_two_is_refused)
{
	options.arena_bytes = 65537;
	expect_refusal(-EINVAL, "65537");
}

Test(ring_create, an_arena_too_small_is_refused)
{
	options.arena_bytes = 2048;
	expect_refusal(-EINVAL, "2048");
}

Test(ring_create, a_depth_that_is_no_power_of_two_is_refused)
{
	options.depth = 65;
	expect_refusal(-EINVAL, "65");
}

Test(ring_create, a_depth_too_small_is_refused)
{
	options.depth = 8;
	expect_refusal(-EINVAL, "depth of 8");
}

Test(ring_create, a_mode_with_special_bits_is_refused)
{
	options.mode = 04640;
	expect_refusal(-EINVAL, "04640");
}

Test(ring_create, a_first_sequence_near_the_end_of_numbers_is_refused)
{
	options.first_seq = 1ull << 62;
	expect_refusal(-EINVAL, "first sequence");
}

/* ---- no room ------------------------------------------------------------ */

/* What came of it in a process with a /dev/shm of its own. */
struct outcome {
	int refused; /* by the kernel, before anything came of it */
	int code;
	bool left_a_name;
	char why[128];
	struct r3ring_error err;
};

static void create_in_small_shm(const char *size, struct outcome *outcome)
{
	const struct container small = {.shm_size = size};
	struct r3ring_segment *segment = NULL;

	outcome->refused = container_enter(&small, outcome->why, sizeof(outcome->why));
	if (outcome->refused)
		return;
	outcome->code = r3ring_segment_create(&segment, &options, &outcome->err);
	outcome->left_a_name = shm_open(name, O_RDONLY, 0) >= 0 || errno != ENOENT;
}

static void expect_no_room(const char *shm_size, const char *unused)
{
	struct outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char need[32];
	pid_t pid;

	cr_assert(outcome != MAP_FAILED);
	snprintf(need, sizeof(need), "needs %llu bytes",
		 3 * 65536ull + (unsigned long long)options.arena_bytes);
	pid = fork();
	if (pid == 0) {
		create_in_small_shm(shm_size, outcome);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	if (outcome->refused)
		cr_skip_test("%s", outcome->why);
	cr_expect_eq(outcome->code, -ENOSPC, "%s", outcome->err.text);
	cr_expect(strstr(outcome->err.text, need), "%s", outcome->err.text);
	cr_expect(strstr(outcome->err.text, unused), "%s", outcome->err.text);
	cr_expect(strstr(outcome->err.text, "--ring-size"), "%s", outcome->err.text);
	cr_expect(strstr(outcome->err.text, "--shm-size"), "%s", outcome->err.text);
	cr_expect_not(outcome->left_a_name);
}

Test(ring_create, failure_1_a_full_dev_shm_is_an_error_that_names_need_free_and_remedy)
{
	options.arena_bytes = 1u << 20;
	expect_no_room("1m", "1048576 are free");
}

Test(ring_create, what_was_allocated_before_it_was_full_is_free)
{
	options.arena_bytes = 16u << 20;
	expect_no_room("12m", "12582912 are free");
}

/* ---- thought better of -------------------------------------------------- */

static bool carry_on_once(void *ctx, uint64_t bytes)
{
	unsigned int *asked = ctx;

	(void)bytes;
	return (*asked)++ == 0;
}

Test(ring_create, whoever_waits_for_its_memory_may_end_that)
{
	unsigned int asked = 0;

	options.arena_bytes = 16u << 20;
	options.carry_on = carry_on_once;
	options.ctx = &asked;
	expect_refusal(-ECANCELED, name);
	cr_expect_eq(asked, 2);
	cr_expect_lt(shm_open(name, O_RDONLY, 0), 0);
}

/* ---- as it grows -------------------------------------------------------- */

struct growth {
	uint64_t bytes;     /* told last */
	unsigned int grown; /* how often it was more */
	bool wrong;
};

/* What is told to be there is. */
static bool watch(void *ctx, uint64_t bytes)
{
	struct growth *growth = ctx;
	struct stat status;
	int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0 || fstat(fd, &status) || (uint64_t)status.st_blocks * 512 < bytes ||
	    bytes < growth->bytes)
		growth->wrong = true;
	if (fd >= 0)
		close(fd);
	growth->grown += bytes > growth->bytes;
	growth->bytes = bytes;
	return true;
}

Test(ring_create, whoever_waits_for_its_memory_sees_it_grow)
{
	struct growth growth = {0};

	options.arena_bytes = 32u << 20;
	options.carry_on = watch;
	options.ctx = &growth;
	r3ring_segment_close(create());
	cr_expect_geq(growth.grown, 3);
	cr_expect_not(growth.wrong);
}

static long page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

Test(ring_create, who_writes_into_it_waits_for_no_page)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct r3ring_segment *segment;
	size_t bytes;
	uint8_t *arena;
	long before;

	SKIP_WHERE_EMULATED("page faults of its own");
#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("the sanitizer's own memory has page faults, too");
#endif
	options.arena_bytes = 32u << 20;
	segment = create();
	arena = r3ring_segment_arena(segment, &bytes);
	before = page_faults();
	memset(arena, 1, bytes);
	cr_expect_lt(page_faults() - before, (long)(bytes / page / 16 / 4));
	r3ring_segment_close(segment);
}
