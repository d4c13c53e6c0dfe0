/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader that sleeps, in another process on a core of its own: from before the
 * writer's put to the record in its hands; beside a bare futex wake of such a process.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/reader_page.h>

#include "consumer/internal.h"
#include "ring/gate.h"
#include "tests/bench/bench.h"
#include "tests/bench/made_ring.h"

#define ROUNDS 100u
#define WARM_UP 10u
#define REST_NS 2000000 /* until the other side sleeps, and its core does */
#define SLEEP_NS 2000000000ull
#define ARENA_BYTES (1u << 20)
#define DEPTH 1024u
#define RECORD_BYTES 64u

enum { WAKER_CPU = 0, SLEEPER_CPU = 1 };

struct waking {
	struct r3ring_reader_page page;
	uint32_t word; /* of the bare wake */
	uint8_t pad0[R3RING_LINE - 4];
	uint64_t woke_ns; /* stored before `rounds` */
	uint64_t rounds;  /* that the sleeper is done with; from 1 on it is there */
	int reader_fd;
};

static void rest(void)
{
	const struct timespec time = {.tv_nsec = REST_NS};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void note_woken(struct waking *waking)
{
	waking->woke_ns = bench_now_ns();
	/* Pairs with the acquire in wake_often(). */
	r3ring_store_release_u64(&waking->rounds, waking->rounds + 1);
}

/* @wake: wakes the other side once. Both have begun to count rounds at 1. */
static int wake_often(struct waking *waking, int (*wake)(struct waking *, void *), void *ctx,
		      double *value)
{
	double times[ROUNDS];

	for (uint64_t round = 1; round <= WARM_UP + ROUNDS; round++) {
		uint64_t start;
		int rc;

		/* Pairs with the release in note_woken(). */
		while (r3ring_load_acquire_u64(&waking->rounds) < round)
			rest();
		rest();
		start = bench_now_ns();
		rc = wake(waking, ctx);
		if (rc)
			return rc;
		while (r3ring_load_acquire_u64(&waking->rounds) <= round)
			rest();
		if (round > WARM_UP)
			times[round - WARM_UP - 1] = (double)(waking->woke_ns - start) / 1e3;
	}
	*value = bench_percentile(times, ROUNDS, 50);
	return 0;
}

/* ---- bare ---------------------------------------------------------------- */

static int sleep_bare(void *arg)
{
	struct waking *waking = arg;

	note_woken(waking);
	for (uint32_t round = 0; round < WARM_UP + ROUNDS; round++) {
		while (r3ring_load_acquire_u32(&waking->word) == round)
			syscall(SYS_futex, &waking->word, FUTEX_WAIT, round, NULL, NULL, 0);
		note_woken(waking);
	}
	return 0;
}

static int wake_bare(struct waking *waking, void *ctx)
{
	(void)ctx;
	/* Pairs with the acquire in sleep_bare(). */
	r3ring_fetch_add_u32(&waking->word, 1);
	syscall(SYS_futex, &waking->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	return 0;
}

static int futex_floor(const struct bench_row *row, double *value)
{
	struct waking *waking = bench_shared(sizeof(*waking));
	int rc = waking ? bench_pin(WAKER_CPU) : -ENOMEM;

	(void)row;
	if (!rc) {
		pid_t pid = bench_spawn(sleep_bare, waking, SLEEPER_CPU);

		rc = pid < 0 ? pid : wake_often(waking, wake_bare, NULL, value);
		rc = rc ? rc : bench_join(pid);
	}
	bench_unshare(waking, sizeof(*waking));
	return rc;
}

/* ---- a reader ------------------------------------------------------------ */

static int take(struct waking *waking, struct r3ring_cursor *cursor)
{
	struct r3ring_view view;
	int rc;

	while (!(rc = r3ring_cursor_next(cursor, &view)))
		reader_sleep(&waking->page, cursor, SLEEP_NS);
	if (rc == 1)
		rc = r3ring_cursor_check(cursor);
	return rc;
}

static int sleep_reading(void *arg)
{
	struct waking *waking = arg;
	struct r3ring_segment *segment = NULL;
	struct r3ring_cursor *cursor = NULL;
	int rc = cursor_make(waking->reader_fd, &segment, &cursor);

	note_woken(waking);
	for (uint32_t round = 0; !rc && round < WARM_UP + ROUNDS; round++) {
		rc = take(waking, cursor);
		note_woken(waking);
	}
	r3ring_cursor_close(cursor);
	r3ring_segment_close(segment);
	return rc;
}

static int wake_reader(struct waking *waking, void *ctx)
{
	const struct r3ring_record_spec spec = {.len = RECORD_BYTES, .type = 1};
	static const uint8_t payload[RECORD_BYTES];
	struct r3ring_writer *writer = ctx;
	int rc = r3ring_writer_put(writer, &spec, payload);

	(void)waking;
	if (!rc)
		r3ring_writer_wake(writer);
	return rc;
}

static int wake_readers(struct waking *waking, struct made_ring *ring, double *value)
{
	const struct gate_terms terms = {0};
	struct gate *gate = gate_create(ring->segment, false);
	pid_t pid;
	int rc;

	if (!gate)
		return -ENOMEM;
	writer_set_gate(ring->writer, gate);
	gate_add(gate, &waking->page, &terms);
	waking->reader_fd = ring->reader_fd;
	pid = bench_spawn(sleep_reading, waking, SLEEPER_CPU);
	rc = pid < 0 ? pid : wake_often(waking, wake_reader, ring->writer, value);
	rc = rc ? rc : bench_join(pid);
	if (!rc && gate_wakes(gate) < ROUNDS)
		rc = -ENODATA; /* it did not sleep */
	writer_set_gate(ring->writer, NULL);
	gate_destroy(gate);
	return rc;
}

static int wake_to_record(const struct bench_row *row, double *value)
{
	struct waking *waking = bench_shared(sizeof(*waking));
	struct made_ring ring = {.reader_fd = -1};
	int rc = waking ? bench_pin(WAKER_CPU) : -ENOMEM;

	(void)row;
	rc = rc ? rc : ring_make(&ring, ARENA_BYTES, DEPTH);
	rc = rc ? rc : wake_readers(waking, &ring, value);
	ring_free(&ring);
	bench_unshare(waking, sizeof(*waking));
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "sleeping reader, put to record, beside a futex wake, p50",
	 .unit = "us",
	 .floor = futex_floor,
	 .measured = wake_to_record,
	 .kind = BENCH_RATIO_AT_MOST,
	 .target = 1.3},
};

const struct bench_group bench_wake = {"wake", rows, sizeof(rows) / sizeof(rows[0])};
