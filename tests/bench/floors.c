/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine itself takes for what rows are made of. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"

#define ROUNDS 20000u
#define WARM_UP 2000u
#define COPIES 4096u
#define WAKES 500u
#define FALL_ASLEEP_NS 20000u

enum { WRITER_CPU = 0, READER_CPU = 1 };

/* ---- a cache line ------------------------------------------------------------ */

struct line_pair {
	uint64_t there;
	uint8_t pad0[R3RING_LINE - 8];
	uint64_t back;
	uint8_t pad1[R3RING_LINE - 8];
	uint64_t shortest_ns; /* the other side's, of stamps */
};

static void await_word(const uint64_t *word, uint64_t value)
{
	unsigned int looks = 0;

	/* Pairs with the other side's release of the same word. */
	while (r3ring_load_acquire_u64(word) != value)
		wait_turn(&looks);
}

static int return_lines(void *arg)
{
	struct line_pair *lines = arg;

	for (uint64_t i = 1; i <= WARM_UP + ROUNDS; i++) {
		await_word(&lines->there, i);
		/* Pairs with the acquire in await_word(). */
		r3ring_store_release_u64(&lines->back, i);
	}
	return 0;
}

int bench_line_one_way(double percent, double *ns)
{
	struct line_pair *lines = bench_shared(sizeof(*lines));
	double *times = calloc(ROUNDS, sizeof(*times));
	int rc = -ENOMEM;

	if (lines && times) {
		pid_t pid = bench_spawn(return_lines, lines, READER_CPU);

		rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
		for (uint64_t i = 1; !rc && i <= WARM_UP + ROUNDS; i++) {
			uint64_t start = bench_now_ns();

			/* Pairs with the acquire in await_word(). */
			r3ring_store_release_u64(&lines->there, i);
			await_word(&lines->back, i);
			if (i > WARM_UP)
				times[i - WARM_UP - 1] = (double)(bench_now_ns() - start) / 2;
		}
		rc = rc ? rc : bench_join(pid);
	}
	if (!rc)
		*ns = bench_percentile(times, ROUNDS, percent);
	free(times);
	bench_unshare(lines, sizeof(*lines));
	return rc;
}

/* ---- clocks ------------------------------------------------------------------- */

/* Waits for a stamp other than @last and keeps the shortest way of one so far. */
static uint64_t await_stamp(const uint64_t *word, uint64_t last, uint64_t *shortest_ns)
{
	unsigned int looks = 0;
	uint64_t stamp, way;

	/* Pairs with the other side's release of the same word. */
	while ((stamp = r3ring_load_acquire_u64(word)) == last)
		wait_turn(&looks);
	way = bench_now_ns() - stamp;
	if ((int64_t)way < (int64_t)*shortest_ns)
		*shortest_ns = way;
	return stamp;
}

static int return_stamps(void *arg)
{
	struct line_pair *lines = arg;
	uint64_t stamp = 0, shortest = INT64_MAX;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		stamp = await_stamp(&lines->there, stamp, &shortest);
		/* Pairs with the acquire in await_stamp(). */
		r3ring_store_release_u64(&lines->back, bench_now_ns());
	}
	lines->shortest_ns = shortest;
	return 0;
}

int bench_clock_distance(double *ns)
{
	struct line_pair *lines = bench_shared(sizeof(*lines));
	uint64_t stamp = 0, shortest = INT64_MAX;
	pid_t pid;
	int rc;

	if (!lines)
		return -ENOMEM;
	pid = bench_spawn(return_stamps, lines, READER_CPU);
	rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
	for (uint64_t i = 0; !rc && i < ROUNDS; i++) {
		/* Pairs with the acquire in await_stamp(). */
		r3ring_store_release_u64(&lines->there, bench_now_ns());
		stamp = await_stamp(&lines->back, stamp, &shortest);
	}
	rc = rc ? rc : bench_join(pid);
	if (!rc)
		*ns = (double)((int64_t)lines->shortest_ns - (int64_t)shortest) / 2;
	bench_unshare(lines, sizeof(*lines));
	return rc;
}

/* ---- memcpy ------------------------------------------------------------------- */

int bench_memcpy(size_t size, size_t lap, double *ns)
{
	uint8_t *target = bench_shared(lap), *source = malloc(size);
	size_t places = lap / size, sum = 0;
	int rc = target && source && places ? bench_pin(WRITER_CPU) : -ENOMEM;
	uint64_t start = 0;

	if (!rc) {
		memset(source, 1, size);
		for (size_t i = 0; i < 2 * COPIES; i++) {
			if (i == COPIES)
				start = bench_now_ns();
			memcpy(target + i % places * size, source, size);
			sum += target[i % places * size];
		}
		*ns = (double)(bench_now_ns() - start) / COPIES;
		rc = sum == 2 * COPIES ? 0 : -EBADMSG;
	}
	free(source);
	bench_unshare(target, lap);
	return rc;
}

/* ---- futex -------------------------------------------------------------------- */

struct sleeper {
	uint32_t word;   /* raised to wake it */
	uint32_t asleep; /* the wake it sleeps for, or is about to */
	uint64_t stamp;
	double ways[WAKES];
};

static int sleep_and_note(void *arg)
{
	struct sleeper *sleeper = arg;

	for (uint32_t i = 0; i < WAKES; i++) {
		/* Pairs with the acquire in bench_futex_wake(). */
		r3ring_store_release_u32(&sleeper->asleep, i + 1);
		/* Pairs with the release in bench_futex_wake(). */
		while (r3ring_load_acquire_u32(&sleeper->word) == i)
			syscall(SYS_futex, &sleeper->word, FUTEX_WAIT, i, NULL, NULL, 0);
		sleeper->ways[i] = (double)(bench_now_ns() - sleeper->stamp);
	}
	return 0;
}

static void wake_once(struct sleeper *sleeper, uint32_t number)
{
	unsigned int looks = 0;
	uint64_t since;

	/* Pairs with the release in sleep_and_note(). */
	while (r3ring_load_acquire_u32(&sleeper->asleep) != number)
		wait_turn(&looks);
	since = bench_now_ns();
	while (bench_now_ns() - since < FALL_ASLEEP_NS)
		r3ring_cpu_relax();
	sleeper->stamp = bench_now_ns();
	/* Pairs with the acquire in sleep_and_note(). */
	r3ring_store_release_u32(&sleeper->word, number);
	syscall(SYS_futex, &sleeper->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int bench_futex_wake(double *ns)
{
	struct sleeper *sleeper = bench_shared(sizeof(*sleeper));
	pid_t pid;
	int rc;

	if (!sleeper)
		return -ENOMEM;
	pid = bench_spawn(sleep_and_note, sleeper, READER_CPU);
	rc = pid < 0 ? pid : bench_pin(WRITER_CPU);
	for (uint32_t i = 1; !rc && i <= WAKES; i++)
		wake_once(sleeper, i);
	rc = rc ? rc : bench_join(pid);
	if (!rc)
		*ns = bench_percentile(sleeper->ways, WAKES, 50);
	bench_unshare(sleeper, sizeof(*sleeper));
	return rc;
}
