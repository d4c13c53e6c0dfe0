/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that restarts all the time, in every order of ending the old
 * generation, naming the next and making it known; rings are wide enough that
 * nothing may be lost. A reader that follows must be given every record of every
 * generation once and in order.
 *
 *	reader_generations [SECONDS [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/reader.h>

#include "tests/support/fake_daemon.h"

#define DEPTH 1024u
#define ARENA_BYTES (1u << 18)
#define STEPS_MAX 200u

struct shared {
	struct fake_daemon *daemon;
	time_t end;
	uint32_t random;
	uint64_t entered;         /* newest generation of which the reader has a record */
	uint64_t last_generation; /* 0 until the engine has ended for good */
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* ---- the engine -------------------------------------------------------- */

static void open_generation(struct fake_channel *channel, uint64_t generation)
{
	fake_channel_open(channel, generation, DEPTH, ARENA_BYTES);
	fake_channel_put_schema(channel);
}

/* The old generation is no longer given out, so that it may be closed. */
static void serve_only(struct shared *shared, const struct fake_channel *channel)
{
	fake_daemon_serve(shared->daemon, NULL);
	fake_daemon_serve(shared->daemon, channel);
}

static void wait_until_entered(const struct shared *shared, uint64_t generation)
{
	/* Pairs with the release in note_entered(). */
	while (r3ring_load_acquire_u64(&shared->entered) < generation)
		sched_yield();
}

static void restart(struct shared *shared, struct fake_channel *old, struct fake_channel *new)
{
	uint32_t steps = next_random(&shared->random) % STEPS_MAX;
	uint32_t order = next_random(&shared->random) % 4;
	uint64_t named = order & 1 ? new->generation : 0;

	fake_channel_put_steps(old, 1, steps);
	if (order & 2)
		fake_daemon_serve(shared->daemon, new);
	fake_channel_put_steps(old, steps + 1, next_random(&shared->random) % STEPS_MAX);
	fake_channel_end(old, named ? R3RING_CLOSED_NEXT : R3RING_CLOSED_SHUTDOWN, named);
	if (!(order & 2))
		fake_daemon_serve(shared->daemon, new);
}

static void *engine(void *ctx)
{
	struct shared *shared = ctx;
	struct fake_channel channels[2];
	struct fake_channel *old = &channels[0], *new = &channels[1];
	uint64_t generation = 1;

	open_generation(old, generation);
	serve_only(shared, old);
	while (time(NULL) < shared->end) {
		struct fake_channel *spare = old;

		wait_until_entered(shared, generation);
		open_generation(new, ++generation);
		restart(shared, old, new);
		wait_until_entered(shared, generation);
		serve_only(shared, new);
		fake_channel_close(old);
		old = new;
		new = spare;
	}
	/* Pairs with the acquire in all_read(). */
	r3ring_store_release_u64(&shared->last_generation, generation);
	wait_until_entered(shared, generation + 1);
	fake_daemon_serve(shared->daemon, NULL);
	fake_channel_close(old);
	return NULL;
}

/* ---- the reader -------------------------------------------------------- */

struct progress {
	uint64_t generation;
	uint64_t seq; /* of the record read last */
	bool closed;  /* it was CLOSED */
	uint64_t records;
};

static int wrong(const char *what, const struct r3ring_view *view, const struct progress *progress)
{
	printf("%s: record %" PRIu64 " of generation %" PRIu64 " after record %" PRIu64
	       " of generation %" PRIu64 "\n",
	       what, view->seq, view->generation, progress->seq, progress->generation);
	return -1;
}

/* Each record is the one after the last; a generation begins when the one before
 * has ended, with its SCHEMA. */
static int follow_on(struct progress *progress, const struct r3ring_view *view)
{
	if (view->generation == progress->generation) {
		if (view->seq != progress->seq + 1 || progress->closed)
			return wrong("out of order", view, progress);
	} else if (view->generation != progress->generation + 1 || view->seq != 1 ||
		   view->type != R3RING_SCHEMA) {
		return wrong("a generation's beginning is missing", view, progress);
	} else if (progress->generation && !progress->closed) {
		return wrong("the end of a generation is missing", view, progress);
	}
	progress->generation = view->generation;
	progress->seq = view->seq;
	progress->closed = view->type == R3RING_CLOSED;
	progress->records++;
	return 0;
}

static void note_entered(struct shared *shared, uint64_t generation)
{
	/* Pairs with the acquire in wait_until_entered(). */
	r3ring_store_release_u64(&shared->entered, generation);
}

static bool all_read(const struct shared *shared, const struct progress *progress)
{
	/* Pairs with the release at the end of engine(). */
	uint64_t last = r3ring_load_acquire_u64(&shared->last_generation);

	return last && last == progress->generation;
}

static int read_all(struct shared *shared, struct r3ring_reader *reader, struct progress *progress)
{
	while (!all_read(shared, progress)) {
		struct r3ring_view view;
		int rc = r3ring_reader_wait(reader, 100);

		while (rc >= 0 && (rc = r3ring_reader_next(reader, &view)) == 1) {
			rc = r3ring_reader_check(reader);
			if (rc || follow_on(progress, &view))
				return -1;
			note_entered(shared, progress->generation);
		}
		if (rc && rc != -EPIPE) {
			printf("the reader says %d (%s)\n", rc, r3ring_reader_error(reader));
			return -1;
		}
	}
	return 0;
}

static int check_accounts(const struct r3ring_reader *reader, const struct progress *progress)
{
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(reader, &stats);
	printf("%" PRIu64 " generations, %" PRIu64 " records\n", stats.generations,
	       progress->records);
	return stats.generations == progress->generation && stats.generations > 1 &&
			       stats.got_before + stats.now.got == progress->records &&
			       stats.lost_before + stats.now.lost == 0
		       ? 0
		       : -1;
}

/* The engine makes its first segment as soon as it runs. */
static struct r3ring_reader *open_reader(const struct shared *shared)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = fake_daemon_dir(shared->daemon),
		.channel = "fake/0",
		.from = R3RING_FROM_OLDEST,
	};
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};
	int rc;

	do {
		rc = r3ring_reader_open(&reader, &options, &err);
	} while (rc == -ENOENT);
	if (rc)
		printf("%s\n", err.text);
	return reader;
}

int main(int argc, char **argv)
{
	struct shared shared = {
		.end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3),
		.random = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : (uint32_t)getpid(),
	};
	struct progress progress = {0};
	struct r3ring_reader *reader;
	char dir[64];
	pthread_t thread;
	int failed = 1;

	printf("seed %u\n", shared.random);
	shared.random |= 1;
	shared.daemon = fake_daemon_start(NULL);
	strcpy(dir, fake_daemon_dir(shared.daemon));
	if (pthread_create(&thread, NULL, engine, &shared))
		return 1;
	reader = open_reader(&shared);
	if (reader)
		failed = read_all(&shared, reader, &progress) || check_accounts(reader, &progress);
	note_entered(&shared, UINT64_MAX);
	pthread_join(thread, NULL);
	r3ring_reader_close(reader);
	fake_daemon_stop(shared.daemon);
	fake_daemon_remove_dir(dir);
	return failed;
}
