/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's drain thread: entries in the order of their submission. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain.h"
#include "capture_daemon/log.h"

#define SLEEP_NS NS_PER_SECOND

/* ---- entries ------------------------------------------------------------ */

/* Copied before it is decoded: the producer may go on writing there. */
static int payload_copy(struct drain *drain, const uint8_t *payload, uint32_t bytes)
{
	if (bytes > drain->payload_bytes) {
		uint8_t *larger = realloc(drain->payload, bytes);

		if (!larger)
			return -ENOMEM;
		drain->payload = larger;
		drain->payload_bytes = bytes;
	}
	if (bytes)
		memcpy(drain->payload, payload, bytes);
	return 0;
}

/*
 * Before anything of a side entry is published: should this daemon die before the
 * entry is given back, the next one knows where its records begin, and tells the
 * rest. Of the entry that was at work in another's death the beginning is told.
 */
static void note_saying(struct drain *drain, uint64_t entry)
{
	struct pages_words *words = drain->pages.words;

	if (entry == drain->said_entry) {
		drain->publisher.said = drain->said_records;
		drain->said_entry = 0;
		return;
	}
	r3ring_store_relaxed_u64(&words->said_seq, r3ring_writer_next_seq(drain->publisher.writer));
	R3RING_TEST_POINT("drain said seq");
	/* Release, for the order of the stores in which a kill leaves them; the next
	 * daemon starts when this one is gone. */
	r3ring_store_release_u64(&words->said_entry, entry);
	R3RING_TEST_POINT("drain said entry");
}

static int handle_side(struct drain *drain, const struct lane_entry *entry,
		       struct r3ring_error *err)
{
	int r;

	note_saying(drain, entry->number);
	r = drain_record(drain, drain->payload, entry->payload_bytes, entry->record_type, err);
	R3RING_TEST_POINT("drain side told");
	drain->publisher.said = 0;
	return r;
}

static int handle_entry(struct drain *drain, struct lane_reader *lane,
			const struct lane_entry *entry, const uint8_t *payload,
			struct r3ring_error *err)
{
	bool step = entry->type == LANE_STEP;
	int r;

	if (step != (lane == &drain->steps))
		return r3ring_error_set(err, -EBADMSG, "entry %" PRIu64 " is in the wrong lane",
					entry->number);
	r = payload_copy(drain, payload, entry->payload_bytes);
	if (r < 0)
		return r3ring_error_set(err, r, "no memory for an entry of %u bytes",
					entry->payload_bytes);
	if (step)
		r = drain_step(drain, drain->payload, entry->payload_bytes, err);
	else
		r = handle_side(drain, entry, err);
	if (r == 0) {
		R3RING_TEST_POINT("drain entry told");
		lane_consume(lane, entry);
	}
	return r < 0 ? r : 0;
}

/* ---- the thread --------------------------------------------------------- */

/* For pages_sleep(): whether there is still nothing to do. */
static bool drain_idle(void *ctx)
{
	struct drain *drain = ctx;
	struct pages_words *words = drain->pages.words;

	return (drain->step_waits ||
		r3ring_load_relaxed_u64(&words->step_head.position) == drain->steps.position) &&
	       r3ring_load_relaxed_u64(&words->side_head.position) == drain->side.position &&
	       !drain_stopping(drain) && drain_producer_state(drain) == DRAIN_PRODUCER_ALIVE &&
	       !gate_has_new(drain->publisher.stall.gate);
}

static void drain_pause(struct drain *drain)
{
	drain_say_untold(drain, false);
	r3ring_writer_wake(drain->publisher.writer);
	pages_sleep(&drain->pages, drain_idle, drain, SLEEP_NS);
}

/* How far the lanes can be filled when patience is over. */
struct rest {
	bool known;
	uint64_t steps, side; /* positions */
};

/*
 * What a producer that lives has submitted is left to the next daemon; of one that is
 * gone there will be none. Its steps wait for nothing any more, nor do readers hold
 * them up, and its lanes hold so much and no more, whoever should still write there.
 */
static bool goes_on(const struct drain *drain, enum drain_producer producer, struct rest *rest)
{
	if (!drain_expired(drain))
		return true;
	if (drain->gpu_lost || producer == DRAIN_PRODUCER_ALIVE)
		return false;
	if (!rest->known)
		*rest = (struct rest){true, drain->steps.position + drain->steps.bytes,
				      drain->side.position + drain->side.bytes};
	return drain->steps.position <= rest->steps && drain->side.position <= rest->side;
}

/* Not where a dead daemon had begun a step: a keyframe says that all before it was told. */
static void keyframe_between_entries(struct drain *drain)
{
	if (!drain->said.step.step)
		drain_keyframe_when_due(drain);
}

/* Takes one entry, or sleeps until there is one. Returns 1, 0 when all is told, or a
 * negative errno when the producer is to be cut off. */
static int drain_turn(struct drain *drain, enum drain_producer producer, struct r3ring_error *err)
{
	bool complete = producer != DRAIN_PRODUCER_ALIVE, stopping = drain_stopping(drain);
	struct lane_reader *lane = NULL;
	struct lane_entry entry;
	int error = 0;
	const uint8_t *payload =
		lane_next(&drain->steps, &drain->side, complete, &lane, &entry, &error);

	drain_heartbeat(drain);
	drain_admit_readers(drain);
	keyframe_between_entries(drain);
	if (error)
		return r3ring_error_set(err, error, "the submission queue is corrupt");
	if (!payload && (complete || stopping))
		return 0;
	if (!payload) {
		drain->step_waits = lane == &drain->steps;
		drain_pause(drain);
		return 1;
	}
	error = handle_entry(drain, lane, &entry, payload, err);
	return error < 0 ? error : 1;
}

/* Takes entries until the producer is gone or the daemon ends. @producer: receives what
 * had become of it before the last look. */
static int drain_run(struct drain *drain, enum drain_producer *producer, struct r3ring_error *err)
{
	struct rest rest = {0};
	int r = 1;

	while (r > 0) {
		*producer = drain_producer_state(drain);
		r = goes_on(drain, *producer, &rest) ? drain_turn(drain, *producer, err) : 0;
	}
	return r;
}

static void drain_fail(struct drain *drain, const struct r3ring_error *err)
{
	log_error("channel %s: producer cut off: %s", drain->label, err->text);
	pthread_mutex_lock(&drain->report_lock);
	drain->report.failed = true;
	memcpy(drain->report.failure, err->text, sizeof(drain->report.failure));
	pthread_mutex_unlock(&drain->report_lock);
}

/* The dead daemon had begun to tell of what it lost while the ring was full. */
static void say_begun_untold(struct drain *drain)
{
	if (!drain->untold_steps || !drain->said.gap_records)
		return;
	drain->publisher.said = drain->said.gap_records;
	drain_say_untold(drain, true);
	drain->publisher.said = 0;
	drain->said.gap_records = 0;
}

/* By the thread, since it may have to wait for a reader. */
static void say_restart(struct drain *drain)
{
	const struct r3ring_lost_record lost = {.cause = R3RING_CAUSE_DAEMON_RESTART};
	struct publisher *publisher = &drain->publisher;

	if (!drain->goes_on) {
		say_begun_untold(drain);
		return;
	}
	drain_check(drain, publish_lost(publisher, &lost), "LOST");
	R3RING_TEST_POINT("drain resumed");
	say_begun_untold(drain);
	if (drain->said.step.step)
		publisher->keyframe_owed = true;
	else
		drain_keyframe(drain);
	r3ring_writer_wake(publisher->writer);
}

static void work_off(struct drain *drain)
{
	struct r3ring_error err = {0};
	enum drain_producer producer;

	if (drain_run(drain, &producer, &err) < 0) {
		drain_fail(drain, &err);
		producer = DRAIN_PRODUCER_DIED;
	}
	drain->left_alive = producer == DRAIN_PRODUCER_ALIVE;
	if (!drain->gpu_lost)
		drain_say_untold(drain, true);
	/* No later step will tell of what is lost from here on. */
	drain->dropping = false;
	if (!drain->gpu_lost && producer != DRAIN_PRODUCER_ALIVE)
		drain_say_gone(drain, producer);
	r3ring_writer_wake(drain->publisher.writer);
	drain_update_report(drain);
}

void drain_work_off_late(struct drain *drain)
{
	if (drain->left_alive && !drain->gpu_lost &&
	    drain_producer_state(drain) != DRAIN_PRODUCER_ALIVE)
		work_off(drain);
}

void *drain_main(void *arg)
{
	struct drain *drain = arg;
	const uint64_t one = 1;

	prctl(PR_SET_NAME, "r3ring-drain");
	prctl(PR_SET_TIMERSLACK, 1ul);
	drain_heartbeat(drain);
	say_restart(drain);
	work_off(drain);
	if (write(drain->done_fd, &one, sizeof(one)) < 0)
		log_error("channel %s: eventfd: %s", drain->label, strerror(errno));
	return NULL;
}
