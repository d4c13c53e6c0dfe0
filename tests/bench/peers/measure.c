/* SPDX-License-Identifier: Apache-2.0 */
/* One peer's latency and throughput, between processes on cores of their own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/course.h"
#include "tests/bench/peers/measure.h"
#include "tests/support/remove_dir.h"

/* ---- processes ----------------------------------------------------------------- */

struct part {
	struct course *course;
	int reader; /* or PEER_WRITER */
};

static int take_part(void *arg)
{
	const struct part *part = arg;
	int rc = part->reader == PEER_WRITER
			 ? course_write(part->course)
			 : course_read(part->course, (unsigned int)part->reader);

	if (rc)
		r3ring_store_relaxed_u32(&part->course->broken, 1);
	if (part->course->peer->exits)
		exit(-rc & 0xff);
	return rc;
}

/* What failed first says why; others only gave up. */
static int worse(int one, int other)
{
	return !one || (one == -ECANCELED && other) ? other : one;
}

static int run_parts(struct course *course)
{
	struct part parts[PEER_READERS_MAX + 1];
	pid_t pids[PEER_READERS_MAX + 1];
	unsigned int count = course->channel.readers + 1;
	int rc = 0;

	fflush(NULL); /* not once more by each process */
	for (unsigned int i = 0; i < count; i++) {
		parts[i] = (struct part){course, (int)i - 1};
		pids[i] = bench_spawn(take_part, &parts[i], i);
		if (pids[i] < 0)
			r3ring_store_relaxed_u32(&course->broken, 1);
	}
	for (unsigned int i = 0; i < count; i++)
		rc = worse(rc, bench_join(pids[i]));
	return rc;
}

static int run_course(struct course *course)
{
	char directory[] = "/tmp/r3ring-peers.XXXXXX";
	const struct peer *peer = course->peer;
	int rc = bench_unpin();

	if (rc || !mkdtemp(directory))
		return rc ? rc : -errno;
	course->channel.directory = directory;
	rc = peer->prepare(&course->channel);
	rc = rc ? rc : run_parts(course);
	peer->dispose(&course->channel);
	remove_dir(directory);
	return rc;
}

/* ---- what they found --------------------------------------------------------------- */

static void add_counts(struct peer_counts *counts, const struct course *course)
{
	counts->sent += course->total;
	for (unsigned int i = 0; i < course->channel.readers; i++) {
		counts->received += course->readers[i].received;
		counts->lost += course->readers[i].lost;
		counts->wrong += course->readers[i].wrong;
	}
}

static double rate_of(const struct course *course)
{
	double slowest = 0;

	for (unsigned int i = 0; i < course->channel.readers; i++) {
		const struct course_reader *reader = &course->readers[i];
		double rate = reader->timed_ns
				      ? (double)reader->timed * 1e9 / (double)reader->timed_ns
				      : 0;

		slowest = i && rate > slowest ? slowest : rate;
	}
	return slowest;
}

static int latencies_of(const struct course *course, struct peer_result *result)
{
	size_t count = 0;
	double *all;

	for (unsigned int i = 0; i < course->channel.readers; i++)
		count += course->readers[i].sample_count;
	if (!count)
		return 0;
	all = malloc(count * sizeof(*all));
	if (!all)
		return -ENOMEM;
	result->samples = count;
	for (unsigned int i = 0; i < course->channel.readers; i++)
		for (size_t k = 0; k < course->readers[i].sample_count; k++)
			all[--count] = (double)course->samples[i][k];
	result->p50 = bench_percentile(all, result->samples, 50);
	result->p99 = bench_percentile(all, result->samples, 99);
	result->p999 = bench_percentile(all, result->samples, 99.9);
	free(all);
	return 0;
}

static int measure(struct course *course, struct peer_result *result)
{
	int rc = run_course(course);

	if (rc)
		return rc;
	add_counts(&result->counts, course);
	if (course->one_at_a_time)
		return latencies_of(course, result);
	result->rate = rate_of(course);
	return 0;
}

static int measure_one(const struct peer *peer, const struct peer_plan *plan, bool one_at_a_time,
		       struct peer_result *result)
{
	struct course *course = bench_shared(sizeof(*course));
	size_t slots = PEER_BYTES / plan->size;
	int rc;

	if (!course)
		return -ENOMEM;
	course->peer = peer;
	course->channel.size = plan->size;
	course->channel.slots = slots < PEER_SLOTS_MAX ? slots : PEER_SLOTS_MAX;
	course->channel.readers = plan->readers;
	course->crowded = plan->readers + 1 > bench_cpus();
	course->one_at_a_time = one_at_a_time;
	course->duration_ns = one_at_a_time ? plan->latency_ns : plan->throughput_ns;
	rc = course->duration_ns ? measure(course, result) : 0;
	bench_unshare(course, sizeof(*course));
	return rc;
}

int peer_measure(const struct peer *peer, const struct peer_plan *plan, struct peer_result *result)
{
	struct peer_result found = {0};
	int rc;

	if (!plan->readers || plan->readers > peer->readers_max)
		return -EINVAL;
	rc = measure_one(peer, plan, true, &found);
	rc = rc ? rc : measure_one(peer, plan, false, &found);
	if (!rc)
		*result = found;
	return rc;
}
