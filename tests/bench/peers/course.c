/* SPDX-License-Identifier: Apache-2.0 */
/* The writer and the readers of one way through a peer. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <r3ring/atomic.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/course.h"
#include "tests/bench/peers/message.h"

#define PATIENCE_NS 20000000000ull
#define LOOKS_BEFORE_CLOCK 1024u
#define CLOCK_EACH 64u         /* messages */
#define WARM_UP_MESSAGES 5000u /* at most, and an eighth of the time at most */

int patience_look(struct patience *patience)
{
	const struct course *course = patience->course;

	/* Where nobody of the course waits for this core it is kept: who gives it to
	 * strangers comes back long after the other side has done the same. */
	if (course->crowded || course->peer->helped)
		sched_yield();
	else
		r3ring_cpu_relax();
	if (++patience->looks % (course->peer->helped ? 1 : LOOKS_BEFORE_CLOCK))
		return 0;
	if (r3ring_load_relaxed_u32(&course->broken))
		return -ECANCELED;
	if (!patience->end_ns)
		patience->end_ns = bench_now_ns() + PATIENCE_NS;
	return bench_now_ns() < patience->end_ns ? 0 : -ETIMEDOUT;
}

/* ---- beginning ---------------------------------------------------------------- */

static int await_count(struct course *course, const uint32_t *count, uint32_t least)
{
	struct patience patience = {.course = course};
	int rc = 0;

	/* Pairs with the additions of those that are counted. */
	while (!rc && r3ring_load_acquire_u32(count) < least)
		rc = patience_look(&patience);
	return rc;
}

/* Opens this process's end and waits for the others. Threads that the peer starts
 * may run on all cores. */
static int begin(struct course *course, struct peer_channel *channel, int reader, unsigned int cpu)
{
	int rc = bench_unpin();

	*channel = course->channel;
	rc = rc ? rc : course->peer->open(channel, reader);
	if (!rc && !course->peer->helped)
		rc = bench_pin(cpu);
	if (rc)
		return rc;
	r3ring_fetch_add_u32(&course->opened, 1);
	return await_count(course, &course->opened, channel->readers + 1);
}

static void end(const struct course *course, struct peer_channel *channel)
{
	if (course->peer->close)
		course->peer->close(channel);
}

/* ---- the writer ----------------------------------------------------------------- */

struct writer {
	struct course *course;
	struct peer_channel channel;
	void *message;
	uint64_t number;  /* of the message to send next */
	uint64_t slowest; /* what all readers were seen to have taken */
	uint64_t measured_ns, end_ns;
};

static uint64_t taken_by_all(const struct course *course)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < course->channel.readers; i++) {
		/* Pairs with the release in take(). */
		uint64_t taken = r3ring_load_acquire_u64(&course->readers[i].taken);

		least = taken < least ? taken : least;
	}
	return least;
}

static int await_taken(struct writer *writer, uint64_t number)
{
	struct patience patience = {.course = writer->course};
	int rc = 0;

	while (!rc && writer->slowest < number) {
		writer->slowest = taken_by_all(writer->course);
		if (writer->slowest < number)
			rc = patience_look(&patience);
	}
	return rc;
}

static int send_one(struct writer *writer, bool more)
{
	struct patience patience = {.course = writer->course};
	int rc;

	while ((rc = writer->course->peer->send(&writer->channel, writer->message, more)) ==
	       -EAGAIN) {
		rc = patience_look(&patience);
		if (rc)
			return rc;
	}
	writer->number++;
	return rc;
}

static bool warms_up(const struct writer *writer)
{
	return writer->number < WARM_UP_MESSAGES && bench_now_ns() < writer->measured_ns;
}

static bool time_is_up(const struct writer *writer)
{
	return writer->number % CLOCK_EACH == 0 && bench_now_ns() >= writer->end_ns;
}

/* Each message once all readers have the one before. */
static int write_one_at_a_time(struct writer *writer)
{
	struct course *course = writer->course;
	bool last = false;
	int rc = 0;

	while (!rc && !last) {
		bool warm_up = warms_up(writer);

		last = writer->number == COURSE_SAMPLES_MAX || time_is_up(writer);
		if (last)
			/* Pairs with the acquire in is_last(). */
			r3ring_store_release_u64(&course->total, writer->number);
		message_mark(writer->message, writer->channel.size, writer->number,
			     warm_up ? 0 : bench_now_ns());
		rc = send_one(writer, false);
		rc = rc ? rc : await_taken(writer, writer->number - 1);
	}
	return rc;
}

/* As many as go through; where the peer would drop, as many as it keeps. */
static int write_stream(struct writer *writer)
{
	struct course *course = writer->course;
	uint64_t window = course->peer->paced ? writer->channel.slots : UINT64_MAX, total = 0;
	int rc = 0;

	while (!rc && (!total || writer->number <= total)) {
		bool more;

		if (!total && time_is_up(writer)) {
			total = writer->number + CLOCK_EACH;
			/* Pairs with the acquire in is_last(). */
			r3ring_store_release_u64(&course->total, total);
		}
		if (writer->number > window)
			rc = await_taken(writer, writer->number - window);
		more = writer->number != total && writer->number - writer->slowest < window;
		message_mark(writer->message, writer->channel.size, writer->number, 0);
		rc = rc ? rc : send_one(writer, more);
	}
	return rc;
}

int course_write(struct course *course)
{
	struct writer writer = {.course = course, .number = 1};
	size_t size = course->channel.size;
	int rc;

	writer.message = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!writer.message)
		return -ENOMEM;
	message_make(writer.message, size);
	rc = begin(course, &writer.channel, PEER_WRITER, 0);
	writer.end_ns = bench_now_ns() + course->duration_ns;
	writer.measured_ns = writer.end_ns - course->duration_ns / 8 * 7;
	if (!rc)
		rc = course->one_at_a_time ? write_one_at_a_time(&writer) : write_stream(&writer);
	/* What readers have not yet taken would go with the writer's end. */
	rc = rc ? rc : await_count(course, &course->ended, course->channel.readers);
	end(course, &writer.channel);
	free(writer.message);
	return rc;
}

/* ---- a reader --------------------------------------------------------------------- */

struct reader {
	struct course *course;
	struct peer_channel channel;
	struct course_reader *line;
	uint64_t *samples;
	void *message;
	uint64_t number;                  /* of the newest message */
	uint64_t first_ns;                /* when the first one came */
	uint64_t timed_from, timed_since; /* number and time at the warm-up's end */
};

/* Rates are taken from the end of the warm-up to the last message. */
static void take_time(struct reader *reader, bool last)
{
	uint64_t now;

	if (reader->number % CLOCK_EACH && !last)
		return;
	now = bench_now_ns();
	if (!reader->first_ns)
		reader->first_ns = now;
	if (!reader->timed_since && now - reader->first_ns >= reader->course->duration_ns / 8) {
		reader->timed_since = now;
		reader->timed_from = reader->number;
	}
	if (!last || !reader->timed_since)
		return;
	reader->line->timed = reader->number - reader->timed_from;
	reader->line->timed_ns = now - reader->timed_since;
}

static void take_sample(struct reader *reader)
{
	uint64_t stamp = message_stamp(reader->message);

	if (stamp && reader->line->sample_count < COURSE_SAMPLES_MAX)
		reader->samples[reader->line->sample_count++] = bench_now_ns() - stamp;
}

static void account(struct reader *reader)
{
	uint64_t number = message_number(reader->message);

	if (!message_holds(reader->message, reader->channel.size) || number <= reader->number) {
		reader->line->wrong++;
		return;
	}
	reader->line->received++;
	reader->line->lost += number - reader->number - 1;
	reader->number = number;
}

static bool is_last(const struct reader *reader)
{
	/* Pairs with the release in the writer's loops. */
	uint64_t total = r3ring_load_acquire_u64(&reader->course->total);

	return total && reader->number >= total;
}

static bool take(struct reader *reader)
{
	const struct course *course = reader->course;
	bool last;

	if (course->one_at_a_time)
		take_sample(reader);
	account(reader);
	last = is_last(reader);
	if (!course->one_at_a_time)
		take_time(reader, last);
	if (course->one_at_a_time || course->peer->paced)
		/* Pairs with the acquire in taken_by_all(). */
		r3ring_store_release_u64(&reader->line->taken, reader->number);
	return last;
}

/* The writer has sent its last message, but it did not come. */
static int miss_the_rest(struct reader *reader)
{
	uint64_t total = r3ring_load_acquire_u64(&reader->course->total);

	if (!total)
		return -ETIMEDOUT;
	reader->line->lost += total - reader->number;
	return 0;
}

static int read_all(struct reader *reader)
{
	struct patience patience = {.course = reader->course};
	bool last = false;
	int rc = 0;

	while (!rc && !last) {
		rc = reader->course->peer->receive(&reader->channel, reader->message);
		if (rc == 1) {
			last = take(reader);
			patience_found(&patience);
			rc = 0;
		} else if (!rc) {
			rc = patience_look(&patience);
		}
	}
	return rc == -ETIMEDOUT ? miss_the_rest(reader) : rc;
}

int course_read(struct course *course, unsigned int index)
{
	unsigned int cpus = bench_cpus(), others = cpus > 1 ? cpus - 1 : 1;
	struct reader reader = {.course = course,
				.line = &course->readers[index],
				.samples = course->samples[index]};
	size_t size = course->channel.size;
	int rc;

	reader.message = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!reader.message)
		return -ENOMEM;
	rc = begin(course, &reader.channel, (int)index, 1 + index % others);
	rc = rc ? rc : read_all(&reader);
	r3ring_fetch_add_u32(&course->ended, 1);
	end(course, &reader.channel);
	free(reader.message);
	return rc;
}
