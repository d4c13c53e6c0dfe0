/* SPDX-License-Identifier: Apache-2.0 */
/* Shared pages: what is refused on attach, steps begun, sleeping and waking. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <r3ring/atomic.h>
#include <r3ring/record.h>

#include "channel/pages.h"
#include "tests/support/emulated.h"

#define LANE 65536u
#define MOST (64u << 20)

static void make(struct pages *pages)
{
	cr_assert_eq(pages_create(pages, 5, 2 * LANE, LANE, NULL), 0);
}

static void assert_refused(int fd, uint64_t max_bytes, int code, const char *says)
{
	struct pages pages = {.fd = 123};
	struct r3ring_error err = {0};

	cr_assert_eq(pages_attach(&pages, fd, max_bytes, &err), code, "%s", err.text);
	cr_assert_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
	cr_assert_eq(pages.fd, 123, "the result must stay untouched");
	cr_assert_geq(fcntl(fd, F_GETFD), 0, "the descriptor is not taken over");
}

/* A memfd with a header as given and with these seals. */
static int forge(const struct pages_header *header, uint64_t bytes, int seals)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
	cr_assert_eq(pwrite(fd, header, sizeof(*header), 0), (ssize_t)sizeof(*header));
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct pages_header good_header(void)
{
	struct pages pages;
	struct pages_header header;

	make(&pages);
	memcpy(&header, pages.base, sizeof(header));
	pages_release(&pages);
	return header;
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static void assert_header_refused(const struct pages_header *header, int code, const char *says)
{
	int fd = forge(header, good_header().bytes, ALL_SEALS);

	assert_refused(fd, MOST, code, says);
	close(fd);
}

Test(pages, both_sides_see_one_memory)
{
	struct pages mine, theirs;

	make(&mine);
	cr_assert_eq(pages_attach(&theirs, dup(mine.fd), MOST, NULL), 0);
	cr_assert_eq(theirs.layers, 5);
	cr_assert_eq(theirs.slots, PAGES_SLOTS);
	cr_assert_eq(theirs.step_lane_bytes, 2 * LANE);
	cr_assert_eq(theirs.side_lane_bytes, LANE);

	mine.step_lane[7] = 1;
	mine.side_lane[LANE - 1] = 2;
	pages_bell(pages_slot(&mine, PAGES_SLOTS - 1), 4)->step = 3;
	cr_assert_eq(theirs.step_lane[7], 1);
	cr_assert_eq(theirs.side_lane[LANE - 1], 2);
	cr_assert_eq(pages_bell(pages_slot(&theirs, PAGES_SLOTS - 1), 4)->step, 3);
	pages_release(&theirs);
	pages_release(&mine);
}

Test(pages, nobody_can_shrink_or_grow_them)
{
	struct pages pages;

	make(&pages);
	cr_assert_neq(ftruncate(pages.fd, 4096), 0);
	cr_assert_eq(errno, EPERM);
	cr_assert_neq(ftruncate(pages.fd, (off_t)pages.bytes + 4096), 0);
	cr_assert_neq(fcntl(pages.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	pages_release(&pages);
}

Test(pages, sizes_out_of_bounds_are_refused_when_made)
{
	struct pages pages;

	cr_assert_eq(pages_create(&pages, 0, LANE, LANE, NULL), -EINVAL);
	cr_assert_eq(pages_create(&pages, R3RING_LAYERS_MAX + 1, LANE, LANE, NULL), -EINVAL);
	cr_assert_eq(pages_create(&pages, 1, LANE / 2, LANE, NULL), -EINVAL);
	cr_assert_eq(pages_create(&pages, 1, LANE, 3 * LANE, NULL), -EINVAL);
	cr_assert_eq(pages_create(&pages, 1, LANE, 1ull << 40, NULL), -EINVAL);
}

Test(pages, releasing_nothing_is_fine)
{
	struct pages pages = {0};

	pages_release(&pages);
}

Test(pages, a_descriptor_without_all_seals_is_refused)
{
	struct pages_header header = good_header();
	const int seals[] = {0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_SEAL,
			     F_SEAL_GROW | F_SEAL_SEAL};

	for (size_t i = 0; i < sizeof(seals) / sizeof(*seals); i++) {
		int fd = forge(&header, header.bytes, seals[i]);

		assert_refused(fd, MOST, -EBADMSG, "seals");
		close(fd);
	}
}

Test(pages, a_descriptor_that_is_no_memfd_is_refused)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_refused(fd, MOST, -EBADMSG, "no memfd");
	close(fd);
}

Test(pages, a_size_beyond_the_limit_or_too_small_is_refused)
{
	struct pages_header header = good_header();
	int fd = forge(&header, header.bytes, ALL_SEALS);

	assert_refused(fd, header.bytes - 1, -EBADMSG, "bytes");
	close(fd);
	fd = forge(&header, 4096, ALL_SEALS);
	assert_refused(fd, MOST, -EBADMSG, "4096 bytes");
	close(fd);
}

Test(pages, a_header_that_lies_about_sizes_is_refused)
{
	const struct pages_header good = good_header();
	struct pages_header bad = good;

	bad.bytes *= 2;
	assert_header_refused(&bad, -EBADMSG, "size");
	bad = good;
	bad.slots = 0;
	assert_header_refused(&bad, -EBADMSG, "slots");
	bad.slots = UINT32_MAX;
	assert_header_refused(&bad, -EBADMSG, "slots");
	bad = good;
	bad.slots = 2000;
	assert_header_refused(&bad, -EBADMSG, "bells");
	bad = good;
	bad.layers = R3RING_LAYERS_MAX + 1;
	assert_header_refused(&bad, -EBADMSG, "layers");
	bad = good;
	bad.step_lane_bytes = 3 * LANE;
	assert_header_refused(&bad, -EBADMSG, "lane");
	bad = good;
	bad.step_lane_bytes = 1u << 30;
	assert_header_refused(&bad, -EBADMSG, "step lane");
}

Test(pages, a_header_that_lies_about_places_is_refused)
{
	const struct pages_header good = good_header();
	struct pages_header bad = good;

	bad.step_lane_offset = 0;
	assert_header_refused(&bad, -EBADMSG, "step lane");
	bad = good;
	bad.side_lane_offset = bad.step_lane_offset;
	assert_header_refused(&bad, -EBADMSG, "side lane");
	bad = good;
	bad.side_lane_offset = UINT64_MAX - 65535;
	assert_header_refused(&bad, -EBADMSG, "side lane");
	bad = good;
	bad.bells_offset += 64;
	assert_header_refused(&bad, -EBADMSG, "bells");
	bad = good;
	bad.bells_bytes = UINT64_MAX;
	assert_header_refused(&bad, -EBADMSG, "bells");
	bad = good;
	bad.bells_bytes = 64;
	assert_header_refused(&bad, -EBADMSG, "bells");
}

Test(pages, another_magic_or_version_is_refused)
{
	struct pages_header bad = good_header();

	bad.version++;
	assert_header_refused(&bad, -EPROTO, "one release");
	bad.magic++;
	assert_header_refused(&bad, -EBADMSG, "magic");
}

/* ---- steps begun ------------------------------------------------------ */

Test(pages, steps_begun_are_read_as_noted)
{
	struct pages pages;

	make(&pages);
	cr_assert_eq(pages_read_begun(&pages).step, 0);
	for (uint64_t step = 1; step < 10; step++) {
		pages_note_begun(&pages, step, step * 100);
		cr_assert_eq(pages_read_begun(&pages).step, step);
		cr_assert_eq(pages_read_begun(&pages).rows, step * 100);
	}
	pages_release(&pages);
}

Test(pages, nothing_is_begun_while_the_first_step_is_noted)
{
	struct pages pages;

	make(&pages);
	pages.words->begun[1].rows = 100;
	cr_assert_eq(pages_read_begun(&pages).step, 0);
	cr_assert_eq(pages_read_begun(&pages).rows, 0);
	pages_release(&pages);
}

/* Runs in a child that its parent steps through. */
static void note_when_told(struct pages *pages)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	pages_note_begun(pages, 3, 300);
	_exit(0);
}

/* Killed at this instruction, the child leaves what is read here. */
static bool is_whole(const struct pages *pages)
{
	struct pages_begun begun = pages_read_begun(pages);

	return (begun.step == 2 && begun.rows == 200) || (begun.step == 3 && begun.rows == 300);
}

Test(pages, begun_is_exact_whichever_instruction_of_noting_it_is_the_last, .timeout = 60)
{
	struct pages pages;
	int status, instructions = 0;
	pid_t pid;

	SKIP_WHERE_EMULATED("ptrace");
	make(&pages);
	pages_note_begun(&pages, 1, 100);
	pages_note_begun(&pages, 2, 200);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		note_when_told(&pages);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status) && instructions++ < 1000000) {
		cr_assert(is_whole(&pages), "instruction %d", instructions);
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
	}
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	cr_assert_eq(pages_read_begun(&pages).step, 3);
	pages_release(&pages);
}

static void *note_many(void *arg)
{
	for (uint64_t step = 1; step <= 200000; step++)
		pages_note_begun(arg, step, step * 7);
	return NULL;
}

Test(pages, begun_steps_and_rows_belong_together_while_they_change)
{
	struct pages pages;
	struct pages_begun begun;
	pthread_t thread;

	make(&pages);
	cr_assert_eq(pthread_create(&thread, NULL, note_many, &pages), 0);
	do {
		begun = pages_read_begun(&pages);
		cr_assert_eq(begun.rows, begun.step * 7);
	} while (begun.step < 200000);
	pthread_join(thread, NULL);
	pages_release(&pages);
}

/* ---- sleeping and waking ---------------------------------------------- */

struct sleeper {
	struct pages pages;
	uint64_t published;
	uint64_t seen;
	uint64_t slept_out;
};

#define WAKES 20000u
#define TIMEOUT_NS 20000000000ull /* one that nobody woke, not one on a busy machine */

static bool nothing_new(void *ctx)
{
	struct sleeper *sleeper = ctx;

	/* Pairs with the release in the test's publishing loop. */
	return r3ring_load_acquire_u64(&sleeper->published) == sleeper->seen;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *sleep_and_count(void *arg)
{
	struct sleeper *sleeper = arg;

	while (sleeper->seen < WAKES) {
		uint64_t before = now_ns();

		pages_sleep(&sleeper->pages, nothing_new, sleeper, TIMEOUT_NS);
		if (now_ns() - before >= TIMEOUT_NS)
			sleeper->slept_out++;
		/* Pairs with the release in the publishing loop; published again to it. */
		r3ring_store_release_u64(&sleeper->seen,
					 r3ring_load_acquire_u64(&sleeper->published));
	}
	return NULL;
}

Test(pages, failure_37_no_wake_up_is_lost, .timeout = 60)
{
	static struct sleeper sleeper;
	pthread_t thread;

	make(&sleeper.pages);
	/* Its futex word wraps on the way. */
	sleeper.pages.words->wake = UINT32_MAX - 10;
	cr_assert_eq(pthread_create(&thread, NULL, sleep_and_count, &sleeper), 0);
	for (uint64_t i = 1; i <= WAKES; i++) {
		/* Pairs with the acquire in nothing_new(). */
		r3ring_store_release_u64(&sleeper.published, i);
		pages_wake(&sleeper.pages);
		/* Every other time without waiting, so that all moments are met. */
		while (i % 2 && r3ring_load_acquire_u64(&sleeper.seen) < i)
			r3ring_cpu_relax();
	}
	pthread_join(thread, NULL);
	cr_assert_eq(sleeper.slept_out, 0, "a sleeper that nobody woke sleeps its time out");
	pages_release(&sleeper.pages);
}

static bool woken_while_looking(void *ctx)
{
	pages_wake(ctx);
	return true;
}

Test(pages, failure_37_a_wake_between_looking_and_sleeping_is_not_lost)
{
	struct pages pages;
	uint64_t before = now_ns();

	make(&pages);
	pages_sleep(&pages, woken_while_looking, &pages, TIMEOUT_NS);
	cr_assert_lt(now_ns() - before, TIMEOUT_NS);
	pages_release(&pages);
}

static bool always(void *ctx)
{
	(void)ctx;
	return true;
}

Test(pages, an_idle_sleep_ends_with_its_timeout)
{
	struct pages pages;
	uint64_t before = now_ns();

	make(&pages);
	pages_sleep(&pages, always, NULL, 1000000);
	cr_assert_geq(now_ns() - before, 1000000);
	cr_assert_eq(pages.words->sleeping, 0);
	pages_release(&pages);
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

Test(pages, who_finds_work_does_not_sleep)
{
	struct pages pages;
	uint64_t before = now_ns();

	make(&pages);
	pages_sleep(&pages, never, NULL, 60000000000ull);
	cr_assert_lt(now_ns() - before, 30000000000ull);
	pages_release(&pages);
}
