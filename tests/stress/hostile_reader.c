/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registered reader, lossless, whose page a thread of its own spoils while a
 * real daemon runs its channel: cursors that go back, or to the future, or
 * anywhere; a flag that says for ever that it sleeps; a poke asked for all the
 * time; the daemon's own words written over. An honest lossless reader and an
 * honest lossy one, each in its process, must be told of every record; the daemon may
 * wait for the liar no longer than its stall limit.
 *
 *	hostile_reader [SECONDS [SEED]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "consumer/internal.h"
#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/reader_worker.h"
#include "tests/support/settle.h"

#define BASE "hostile"
#define ROWS 8u
#define STALL_MS 200u
#define SLACK_MS 2000u /* a busy machine */
#define LIFE_MS 400u   /* longer than the stall limit: it is demoted, or moves */
#define ROUNDS 12      /* at most, until every lie was told and one was demoted for it */

enum lie {
	LIE_BACK,
	LIE_BEYOND,
	LIE_ANYWHERE,
	LIE_WAITING,
	LIE_ARMED,
	LIE_STANDS_STILL,
	LIE_DAEMONS_LINE,
	LIE_EVERYTHING,
	LIES,
};

struct liar {
	const char *dir, *channel;
	uint64_t seed;
};

struct life {
	struct r3ring_reader_page *page;
	enum lie lie;
	uint64_t seed;
	uint32_t over;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* ---- the liar, a process of its own -------------------------------------- */

static void spoil_words(void *from, size_t bytes, uint64_t *seed)
{
	uint64_t *words = from;

	r3ring_store_relaxed_u64(&words[next_random(seed) % (bytes / sizeof(*words))],
				 next_random(seed) >> next_random(seed) % 64);
}

static void tell_lie(struct life *life)
{
	struct r3ring_reader_page *page = life->page;
	uint64_t cursor = r3ring_load_relaxed_u64(&page->cursor);
	uint64_t random = next_random(&life->seed);

	switch (life->lie) {
	case LIE_BACK:
		r3ring_store_relaxed_u64(&page->cursor, cursor > 100 ? cursor - random % 100 : 0);
		break;
	case LIE_BEYOND:
		r3ring_store_relaxed_u64(&page->cursor, cursor + random % (1ull << 40));
		break;
	case LIE_ANYWHERE:
		r3ring_store_relaxed_u64(&page->cursor, random >> random % 64);
		break;
	case LIE_WAITING:
		r3ring_store_relaxed_u32(&page->waiting, (uint32_t)random | 1);
		break;
	case LIE_ARMED:
		r3ring_store_relaxed_u32(&page->armed, (uint32_t)random);
		break;
	case LIE_STANDS_STILL:
		r3ring_store_relaxed_u64(&page->cursor, 0);
		break;
	case LIE_DAEMONS_LINE:
		spoil_words(&page->state, sizeof(*page) - 2u * R3RING_LINE, &life->seed);
		break;
	default:
		spoil_words(page, R3RING_READER_PAGE_BYTES, &life->seed);
		break;
	}
}

static void *lie_on(void *ctx)
{
	struct life *life = ctx;

	/* Pairs with the release in live(). */
	while (!r3ring_load_acquire_u32(&life->over))
		tell_lie(life);
	return NULL;
}

/* Reads like an honest one, all but the lies. */
static void read_for(struct r3ring_reader *reader, uint32_t ms)
{
	uint64_t end = clock_now_ns() + ms * 1000000ull;
	struct r3ring_view view;

	while (clock_now_ns() < end) {
		if (r3ring_reader_next(reader, &view) == 1)
			r3ring_reader_check(reader);
		else
			r3ring_reader_wait(reader, 1);
	}
}

static int live(const struct liar *liar, enum lie lie, uint64_t *seed)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = liar->dir,
		.channel = liar->channel,
		.mode = R3RING_LOSSLESS,
		.limit_bytes = 1, /* the least: it is soon waited for */
		.stall_ms = STALL_MS,
	};
	struct life life = {.lie = lie, .seed = next_random(seed) | 1};
	struct r3ring_reader *reader;
	struct r3ring_error err;
	pthread_t thread;

	if (r3ring_reader_open(&reader, &options, &err)) {
		fprintf(stderr, "the hostile reader cannot attach: %s\n", err.text);
		return 1;
	}
	life.page = reader->now.page;
	if (pthread_create(&thread, NULL, lie_on, &life))
		return 1;
	read_for(reader, LIFE_MS);
	/* Pairs with the acquire in lie_on(). */
	r3ring_store_release_u32(&life.over, 1);
	pthread_join(thread, NULL);
	r3ring_reader_close(reader);
	return 0;
}

static int lie_in_turns(struct worker_page *page, const void *ctx)
{
	const struct liar *liar = ctx;
	uint64_t seed = liar->seed * 2654435761u | 1, lives = 0;

	if (!status_becomes(liar->dir, liar->channel, status_is_there, 0))
		return 1;
	while (!r3ring_load_acquire_u64(&page->stop)) {
		if (live(liar, (enum lie)(lives % LIES), &seed))
			return 1;
		r3ring_store_release_u64(&page->progress, ++lives);
	}
	return 0;
}

/* ---- the honest ones ------------------------------------------------------ */

static void start_reader(struct reader_worker *reader, const struct liar *liar,
			 enum r3ring_cursor_mode mode)
{
	const struct reader_job job = {
		.options =
			{
				.size = sizeof(job.options),
				.runtime_dir = liar->dir,
				.channel = liar->channel,
				.mode = mode,
			},
	};

	reader_worker_start(reader, &job);
}

static int expect(bool holds, const char *what)
{
	if (!holds)
		printf("not so: %s\n", what);
	return !holds;
}

static int judge(const struct reader_page *page, const char *who, uint64_t steps)
{
	int failures = expect(page->seen.wrong == 0, "every id is right");

	failures += expect(page->seq_breaks == 0, "its accounts add up");
	failures += expect(page->seen.stats.now.lost || page->accounted == steps,
			   "each step was told once");
	failures += expect(page->seen.partial == 0, "no step lacks a layer");
	printf("%s: %llu steps, %llu records, %llu lost\n", who, (unsigned long long)steps,
	       (unsigned long long)page->seen.stats.now.got,
	       (unsigned long long)page->seen.stats.now.lost);
	return failures;
}

static int judge_lossless(struct reader_worker *reader, uint64_t steps)
{
	const struct reader_page *page = reader->page;
	int failures = expect(reader_worker_accounts(reader, steps), "it was told of every step");

	reader_worker_finish(reader);
	failures += expect(page->seen.stats.now.lost == 0, "it lost no record");
	failures += expect(!page->seen.stats.demoted, "it was waited for");
	return failures + judge(page, "lossless", steps);
}

struct awaited {
	const struct reader_page *page;
	uint64_t step;
};

static bool has_read(const void *ctx)
{
	const struct awaited *awaited = ctx;

	return r3ring_load_acquire_u64(&awaited->page->seen.newest_step_end) >= awaited->step;
}

/* On a busy machine it may be lapped, but it knows. */
static int judge_lossy(struct reader_worker *reader, uint64_t steps)
{
	const struct awaited awaited = {reader->page, steps};
	int failures = expect(reader_worker_wait(has_read, &awaited, 20000),
			      "it was told of the last step");

	reader_worker_finish(reader);
	return failures + judge(reader->page, "lossy", steps);
}

/* Steps at rate; returns the longest time, in ms, that @sibling was told nothing. */
static uint64_t run_for(struct engine *engine, const struct reader_worker *sibling, uint64_t s)
{
	uint64_t now = clock_now_ns(), end = now + s * 1000000000u;
	uint64_t moved = now, told = 0, longest = 0;

	for (; now < end; now = clock_now_ns()) {
		uint64_t at = r3ring_load_acquire_u64(&sibling->page->accounted);

		if (at != told)
			moved = now;
		else if (now - moved > longest)
			longest = now - moved;
		told = at;
		engine_step(engine, 0, ROWS);
		worker_compute();
	}
	return longest / 1000000u;
}

static int64_t demotions(const struct liar *liar)
{
	return channel_figure(liar->dir, liar->channel, "readers_demoted");
}

/* The same until there is something to judge. */
static uint64_t run_long_enough(const struct liar *liar, const struct worker *hostile,
				struct engine *engine, const struct reader_worker *sibling,
				uint64_t seconds)
{
	uint64_t longest = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t wait = run_for(engine, sibling, seconds);

		longest = wait > longest ? wait : longest;
		if (hostile->page->progress >= LIES && demotions(liar) > 0)
			break;
	}
	return longest;
}

static int run(const struct liar *liar, struct worker *hostile, struct engine *engine,
	       uint64_t seconds)
{
	struct reader_worker lossless, lossy;
	uint64_t longest, lives;
	int64_t steps;
	int failures;

	start_reader(&lossless, liar, R3RING_LOSSLESS);
	start_reader(&lossy, liar, R3RING_LOSSY);
	longest = run_long_enough(liar, hostile, engine, &lossless, seconds);
	r3ring_store_release_u64(&hostile->page->stop, 1);
	failures = expect(worker_wait(hostile) == 0, "the hostile reader itself lives");
	lives = hostile->page->progress;
	steps = engine_settle(engine, liar->dir, liar->channel, ROWS);
	printf("%llu lives of the liar, longest wait %llu ms, demoted %lld times\n",
	       (unsigned long long)lives, (unsigned long long)longest, (long long)demotions(liar));
	failures += expect(steps > 0, "the daemon goes on");
	failures += expect(lives >= LIES, "every lie was told");
	failures += expect(longest <= STALL_MS + SLACK_MS, "no wait beyond the stall limit");
	failures += expect(demotions(liar) > 0, "the liar is demoted");
	failures += judge_lossless(&lossless, (uint64_t)steps);
	failures += judge_lossy(&lossy, (uint64_t)steps);
	return failures;
}

int main(int argc, char **argv)
{
	/* Who is honest is waited for, also on a busy machine. */
	static const char *const args[] = {"--ring-size", "1M", "--stall-limit", "10000", NULL};
	uint64_t seconds = argc > 1 ? (uint64_t)atoll(argv[1]) : 5;
	static struct test_daemon daemon;
	struct r3ring_error err;
	struct worker hostile;
	struct engine engine;
	struct liar liar;
	int failures;

	liar.seed = (uint64_t)(argc > 2 ? atoll(argv[2]) : getpid());
	printf("seed %llu\n", (unsigned long long)liar.seed);
	fflush(stdout);
	test_daemon_start(&daemon, args);
	liar.dir = daemon.dir;
	liar.channel = engine_channel(daemon.dir, BASE);
	/* Before this process has threads: it makes some of its own. */
	worker_start(&hostile, lie_in_turns, &liar);
	if (engine_open(&engine, daemon.dir, engine_instance(daemon.dir, BASE), ROWS, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	failures = run(&liar, &hostile, &engine, seconds);
	engine_close(&engine);
	failures += expect(test_daemon_stop(&daemon) == 0, "the daemon ends in good order");
	test_daemon_close(&daemon);
	return failures != 0;
}
