/* SPDX-License-Identifier: Apache-2.0 */
/* What a drain thread and the control plane tell each other, and the thread's signs of
 * life while it works or waits. */
#include <string.h>

#include <r3ring/atomic.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain.h"
#include "capture_daemon/log.h"
#include "ring/presence.h"

#define HEARTBEAT_NS (NS_PER_SECOND / 2) /* readers worry after three seconds */
#define HOLD_LEAST_NS (50 * NS_PER_MS)   /* for one that has its page and yet to show itself */
#define HOLD_LOOK_NS NS_PER_MS

/* ---- the producer, and the daemon's end --------------------------------- */

enum drain_producer drain_producer_state(const struct drain *drain)
{
	/* Pairs with the release in drain_producer_gone(). */
	return (enum drain_producer)r3ring_load_acquire_u32(&drain->producer);
}

bool drain_stopping(const struct drain *drain)
{
	/* Pairs with the release in drain_stop(). */
	return r3ring_load_acquire_u32(&drain->stopping);
}

bool drain_expired(const struct drain *drain)
{
	return drain->gpu_lost ||
	       (drain_stopping(drain) && clock_now_ns() >= drain->stop_deadline_ns);
}

bool drain_may_copy(const struct drain *drain)
{
	return !drain->ops->on_gpu || drain_producer_state(drain) != DRAIN_PRODUCER_DIED;
}

void drain_producer_gone(struct drain *drain, enum drain_producer how)
{
	if (!drain->running)
		return;
	/* Pairs with the acquire in drain_producer_state(). */
	r3ring_store_release_u32(&drain->producer, how);
	pages_wake(&drain->pages);
}

bool drain_closing(const struct drain *drain)
{
	/* Pairs with the release of the producer that closes: all is submitted. */
	return drain->pages.base && r3ring_load_acquire_u32(&drain->pages.words->closing) == 1;
}

void drain_stop(struct drain *drain, uint64_t deadline_ns)
{
	if (!drain->running)
		return;
	drain->stop_deadline_ns = deadline_ns;
	/* Pairs with the acquire in drain_stopping(). */
	r3ring_store_release_u32(&drain->stopping, 1);
	pages_wake(&drain->pages);
}

void drain_check(const struct drain *drain, int result, const char *what)
{
	if (result < 0)
		log_error("channel %s: %s was not published: %s", drain->label, what,
			  strerror(-result));
}

void drain_update_report(struct drain *drain)
{
	struct publisher *publisher = &drain->publisher;

	pthread_mutex_lock(&drain->report_lock);
	drain->report.totals = publisher->totals;
	drain_add_untold(drain, &drain->report.totals);
	drain->report.bytes = r3ring_writer_bytes(publisher->writer);
	drain->report.tail_seq = r3ring_writer_next_seq(publisher->writer) - 1;
	drain->report.bound_since_ns = publisher->schema.bound_since_ns;
	pthread_mutex_unlock(&drain->report_lock);
}

void drain_get_report(struct drain *drain, struct drain_report *report)
{
	pthread_mutex_lock(&drain->report_lock);
	*report = drain->report;
	pthread_mutex_unlock(&drain->report_lock);
}

bool drain_layer_bound(struct drain *drain, uint32_t index)
{
	bool bound;

	pthread_mutex_lock(&drain->report_lock);
	bound = drain->publisher.layers[index].bound;
	pthread_mutex_unlock(&drain->report_lock);
	return bound;
}

bool drain_layer_comes(const struct drain *drain, uint32_t index)
{
	return drain->layer_comes && r3ring_load_relaxed_u32(&drain->layer_comes[index]);
}

/* ---- readers ------------------------------------------------------------ */

void drain_admit_readers(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	gate_admit(drain->publisher.stall.gate, &front);
}

void drain_nudge(struct drain *drain)
{
	if (drain->running)
		pages_wake(&drain->pages);
	else
		drain_admit_readers(drain);
}

/* In a ring that a dead daemon had begun for readers of the generation before, they still
 * have their time. */
void drain_keep(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);
	struct gate *gate = drain->publisher.stall.gate;

	gate_keep(gate, &front,
		  gate_keeps(gate) == R3RING_KEEPS_FORMER ? R3RING_KEEPS_FORMER
							  : R3RING_KEEPS_RETURNING);
}

void drain_keep_from_the_first(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	gate_keep(drain->publisher.stall.gate, &front, R3RING_KEEPS_FORMER);
}

void drain_hold(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	drain->held = gate_hold(drain->publisher.stall.gate, &front);
	drain->hold_look_ns = clock_now_ns() + HOLD_LEAST_NS;
	drain_hold_on(drain);
}

void drain_hold_on(struct drain *drain)
{
	r3ring_store_relaxed_u64(&drain->hold_until_ns, clock_now_ns() + drain->policy.limit_ns);
}

void drain_hold_open_ended(struct drain *drain)
{
	r3ring_store_relaxed_u64(&drain->hold_until_ns, UINT64_MAX);
}

/*
 * Whether a lossless reader that lives is still registered with the dead daemon only, or is
 * further behind than the next daemon would keep for it. Readers of the generation before
 * show themselves in its ring, which may be gone.
 */
static bool some_are_absent(struct drain *drain, uint64_t now)
{
	const struct r3ring_segment *segment = drain->publisher.segment;
	const struct gate_front front = writer_front(drain->publisher.writer);
	struct gate *gate = drain->publisher.stall.gate;

	if (gate_keeps(gate) == R3RING_KEEPS_FORMER || now < drain->hold_look_ns)
		return true;
	drain->hold_look_ns = now + HOLD_LOOK_NS;
	if (presence_before(segment, r3ring_segment_epoch(segment)))
		return true;
	/* Who is not absent any more may have yet to be admitted. */
	gate_admit(gate, &front);
	return gate_is_behind(gate, &front);
}

static void let_go(struct drain *drain, uint64_t now)
{
	if (drain->held < 0 ||
	    (now < r3ring_load_relaxed_u64(&drain->hold_until_ns) && some_are_absent(drain, now)))
		return;
	drain_admit_readers(drain);
	gate_let_go(drain->publisher.stall.gate, drain->held);
	drain->held = -1;
}

/* ---- signs of life ------------------------------------------------------- */

void drain_heartbeat(struct drain *drain)
{
	uint64_t now = clock_now_ns();

	let_go(drain, now);
	if (now - drain->heartbeat_ns < HEARTBEAT_NS)
		return;
	drain->heartbeat_ns = now;
	r3ring_writer_heartbeat(drain->publisher.writer, now);
	r3ring_store_relaxed_u64(&drain->pages.words->heartbeat_ns, now);
}

bool drain_carry_on(void *ctx)
{
	struct drain *drain = ctx;

	drain_heartbeat(drain);
	return !drain_expired(drain);
}
