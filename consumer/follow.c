/* SPDX-License-Identifier: Apache-2.0 */
/* From one generation to the next. */
#include <errno.h>
#include <string.h>

#include <test_point.h>

#include "consumer/internal.h"

#define STALE_NS 3000000000ull        /* no heartbeat for so long: the writer may be dead */
#define AGAIN_NS 20000000ull          /* between the first two questions */
#define AGAIN_MOST_NS 500000000ull    /* and at most */
#define AGAIN_LOSSLESS_NS 50000000ull /* where the writer waits, for a stall limit */
#define ANSWER_NS 1000000000ull       /* a daemon that takes longer does not answer */
#define LOOK_NS 1000000000ull         /* between two looks at the heartbeat */
#define HUNG_UP_NS 20000000ull        /* and at the connection to the daemon */
#define ADMISSION_NS 1000000ull       /* and for having been admitted, at first */
#define STEPS_MOST 64u                /* of one call */
#define PASSED_MOST 16u               /* generations that are asked for one by one */

void follower_init(struct follower *follower)
{
	*follower = (struct follower){.request.fd = -1, .again_ns = AGAIN_NS};
}

void follower_release(struct follower *follower)
{
	attach_cancel(&follower->request);
	attachment_release(&follower->next);
}

void follower_enter(struct follower *follower)
{
	follower_release(follower);
	follower_init(follower);
	follower->alive_ns = clock_now_ns();
}

/* The name is a hint: the daemon decides what the next generation is. */
void follower_note(struct follower *follower, const struct r3ring_view *view)
{
	struct r3ring_record record;

	if (view->type != R3RING_CLOSED ||
	    r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		return;
	follower->named = record.u.closed.next_generation;
	follower->promised = follower->named != 0;
}

static bool writer_lives(const struct r3ring_reader *reader, uint64_t now)
{
	uint64_t beat = r3ring_segment_heartbeat(reader->now.segment);

	if (beat < reader->follower.alive_ns)
		beat = reader->follower.alive_ns;
	return now < beat || now - beat < STALE_NS;
}

/* A daemon that dies hangs up long before the heartbeat of its ring is old. Where a poll loop
 * watches the connection this is known already. */
static bool has_hung_up(struct r3ring_reader *reader, uint64_t now)
{
	struct follower *follower = &reader->follower;

	if (reader->readiness.hung_up)
		return true;
	if (now < follower->hung_up_at_ns)
		return false;
	follower->hung_up_at_ns = now + HUNG_UP_NS;
	if (!attachment_abandoned(&reader->now))
		return false;
	readiness_drop_connection(&reader->readiness);
	reader->readiness.hung_up = true;
	return true;
}

bool follower_unknown(const struct r3ring_reader *reader)
{
	return reader->now.page &&
	       r3ring_segment_epoch(reader->now.segment) != reader->follower.epoch;
}

static void ask_later(struct r3ring_reader *reader, uint64_t now)
{
	struct follower *follower = &reader->follower;
	uint64_t most = reader->target.lossless ? AGAIN_LOSSLESS_NS : AGAIN_MOST_NS;

	follower->ask_at_ns = now + follower->again_ns;
	follower->again_ns *= 2;
	if (follower->again_ns > most)
		follower->again_ns = most;
}

/* No daemon has said anything; the next one may know more. */
static bool is_no_answer(int rc)
{
	return rc == -ECONNREFUSED || rc == -EPIPE || rc == -ETIMEDOUT;
}

/* There is no answer, or one that helps nobody: @rc says which. */
static void not_found(struct r3ring_reader *reader, int rc, bool ended, uint64_t now)
{
	struct follower *follower = &reader->follower;

	if (follower->asked_own && rc == -ENOENT) {
		/* The present one is gone without an end; is there a newer one? */
		follower->own_gone = true;
		follower->ask_at_ns = now;
		return;
	}
	if (follower->named && !is_no_answer(rc)) {
		/* That one is gone already; is there a newer one? */
		follower->gone = follower->named;
		follower->named = 0;
		follower->ask_at_ns = now;
		return;
	}
	follower->promised = false;
	follower->writer_dead = !ended && !writer_lives(reader, now);
	ask_later(reader, now);
}

static bool same_segment(const struct attachment *a, const struct attachment *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

/* Another daemon vouches for the same segment: it is to know of this reader. */
static void register_anew(struct r3ring_reader *reader)
{
	struct attachment *next = &reader->follower.next;
	struct attachment now = reader->now;

	reader->now.connection = next->connection;
	reader->now.page = next->page;
	readiness_drop_connection(&reader->readiness);
	next->connection = now.connection;
	next->page = now.page;
	attachment_release(next);
	reader_registered(reader);
	R3RING_TEST_POINT("reader registered anew");
}

/* The newest is not the next where an older one is still drained, or can still be read:
 * whether there is one is asked first. */
static void ask_for_passed(struct r3ring_reader *reader, uint64_t now)
{
	struct follower *follower = &reader->follower;
	uint64_t gone = follower->gone, next = follower->next.generation;

	if (gone < reader->now.generation)
		gone = reader->now.generation;
	if (next <= gone + 1 || next - reader->now.generation > PASSED_MOST)
		return;
	attachment_release(&follower->next);
	follower->named = gone + 1;
	follower->ask_at_ns = now;
}

/* Returns whether the question is over. */
static bool take_answer(struct r3ring_reader *reader, bool ended, uint64_t now)
{
	struct follower *follower = &reader->follower;
	uint64_t epoch;
	int rc;

	readiness_drop_request(&reader->readiness);
	rc = attach_finish(&follower->request, &reader->target, &follower->next, 0, &reader->err);
	if (rc == -ETIMEDOUT) {
		if (now < follower->give_up_ns)
			return false;
		attach_cancel(&follower->request);
	}
	if (rc) {
		not_found(reader, rc, ended, now);
		return true;
	}
	if (!same_segment(&follower->next, &reader->now)) {
		follower->found_ns = now;
		ask_for_passed(reader, now);
		return true;
	}
	epoch = follower->next.epoch;
	rc = attachment_show(&reader->now, epoch);
	if (rc) {
		attachment_release(&follower->next);
		not_found(reader, rc, ended, now);
		return true;
	}
	register_anew(reader);
	follower->epoch = epoch;
	follower->named = 0;
	follower->own_gone = false;
	follower->promised = false;
	follower->alive_ns = now;
	follower->writer_dead = false;
	ask_later(reader, now);
	return true;
}

static void ask(struct r3ring_reader *reader, bool ended, uint64_t now)
{
	struct follower *follower = &reader->follower;
	struct attach_target target = reader->target;
	int rc;

	/* One that has not ended may still be drained though a newer one is there. */
	follower->asked_own = !ended && !follower->named && !follower->own_gone;
	target.generation = follower->asked_own ? reader->now.generation : follower->named;
	rc = attach_begin(&follower->request, &target, &reader->err);
	if (rc)
		not_found(reader, rc, ended, now);
	else
		follower->give_up_ns = now + ANSWER_NS;
}

static bool next_is_ready(const struct r3ring_reader *reader)
{
	return attachment_ready(&reader->follower.next, &reader->target);
}

/* Who was to admit this reader has died: the next one is asked. */
static bool drop_abandoned(struct r3ring_reader *reader, bool ended, uint64_t now)
{
	if (!attachment_abandoned(&reader->follower.next))
		return false;
	attachment_release(&reader->follower.next);
	not_found(reader, -EPIPE, ended, now);
	return true;
}

/* Whether there is nothing to ask: the present generation goes on, and its writer knows
 * of this reader. */
static bool is_settled(struct r3ring_reader *reader, bool ended, uint64_t now)
{
	return !ended && !has_hung_up(reader, now) && writer_lives(reader, now) &&
	       !follower_unknown(reader);
}

/* Returns whether there may be another step to take. */
static bool take_step(struct r3ring_reader *reader, bool ended, uint64_t now)
{
	struct follower *follower = &reader->follower;

	if (follower->next.segment)
		return !next_is_ready(reader) && drop_abandoned(reader, ended, now);
	if (follower->request.fd >= 0)
		return take_answer(reader, ended, now);
	if (is_settled(reader, ended, now)) {
		follower->writer_dead = false;
		return false;
	}
	if (now < follower->ask_at_ns)
		return false;
	ask(reader, ended, now);
	return true;
}

bool follower_look(struct r3ring_reader *reader, bool ended)
{
	struct follower *follower = &reader->follower;
	uint64_t now = clock_coarse_ns();

	follower->ended = ended;
	for (unsigned int steps = 0; steps < STEPS_MOST && take_step(reader, ended, now); steps++)
		;
	return follower->next.segment && next_is_ready(reader);
}

/* A stopped daemon admits nobody for long, so such looks become rarer. */
static uint64_t admission_due_ns(const struct follower *follower, uint64_t now)
{
	uint64_t waited = now > follower->found_ns ? now - follower->found_ns : 0;
	uint64_t pause = waited / 8 > ADMISSION_NS ? waited / 8 : ADMISSION_NS;

	return now + (pause < AGAIN_NS ? pause : AGAIN_NS);
}

uint64_t follower_due_ns(struct r3ring_reader *reader, uint64_t now)
{
	const struct follower *follower = &reader->follower;

	if (follower->next.segment)
		return admission_due_ns(follower, now);
	if (follower->request.fd >= 0)
		return follower->give_up_ns;
	if (!reader->stay && !is_settled(reader, follower->ended, now))
		return follower->ask_at_ns;
	/* Where the daemon has died nobody tells of the next one's coming, or of its records
	 * to one that stays. */
	return now + (reader->readiness.hung_up && writer_lives(reader, now) ? AGAIN_NS : LOOK_NS);
}
