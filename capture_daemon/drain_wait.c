/* SPDX-License-Identifier: Apache-2.0 */
/* Seeing a step through: its layers are moved as their bells ring, until it has ended;
 * between two looks the thread naps, or spins where it need not for long. */
#include <time.h>

#include <r3ring/atomic.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain_copy.h"

/* Looked at before the bells: what rang before it is then seen. */
static enum step_outcome step_state(const struct drain *drain, const struct step_work *work)
{
	enum step_outcome outcome = STEP_WAITING;

	if (drain_producer_state(drain) != DRAIN_PRODUCER_ALIVE)
		outcome = STEP_CUT_SHORT;
	else if (drain_expired(drain))
		outcome = STEP_ABANDONED;
	/* Pairs with the release in the end kernel: all bells rang before it. */
	if (r3ring_load_acquire_u64(&work->slot->end_step) == work->head.step)
		outcome = STEP_ENDED;
	return drain_may_copy(drain) ? outcome : STEP_CUT_SHORT;
}

/* Layers come in their order: the bell behind the last that came; NULL: none is due. */
static const struct extent_bell *next_bell(const struct drain *drain, const struct step_work *work)
{
	uint32_t layer = drain->geometry.layers;

	while (layer && drain->layer_state[layer - 1] == STEP_LAYER_PENDING)
		layer--;
	if (work->dropped || layer == drain->geometry.layers)
		return NULL;
	return pages_bell(work->slot, layer);
}

/* Looks at as few lines as can be: each look takes them from who is to store there. */
static void step_spin(const struct drain *drain, const struct step_work *work, uint64_t ns)
{
	const struct extent_bell *bell = next_bell(drain, work);
	uint64_t until = clock_now_ns() + ns;

	while (step_state(drain, work) == STEP_WAITING && clock_now_ns() < until) {
		/* Only a hint: whoever takes the layer loads it with acquire. */
		if (bell && r3ring_load_relaxed_u64(&bell->step) == work->head.step)
			break;
		r3ring_cpu_relax();
	}
}

static void step_rest(const struct drain *drain, const struct step_work *work, uint64_t elapsed_ns)
{
	struct pace_wait wait = pace_wait(&drain->pace, elapsed_ns);
	struct timespec nap = {(time_t)(wait.ns / NS_PER_SECOND), (long)(wait.ns % NS_PER_SECOND)};

	if (wait.spin)
		step_spin(drain, work, wait.ns);
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

/* When the host began the step, which is less in doubt than when this thread woke up
 * to it; @now where that cannot be. */
static uint64_t begun_ns(const struct step_work *work, uint64_t now)
{
	return now - work->head.host_ns < NS_PER_SECOND ? work->head.host_ns : now;
}

enum step_outcome step_wait(struct drain *drain, const struct step_work *work)
{
	uint64_t event_ns = begun_ns(work, clock_now_ns());
	bool waited = false;

	for (;;) {
		uint64_t now = clock_now_ns();
		enum step_outcome outcome = step_state(drain, work);
		bool copies = !work->dropped && drain_may_copy(drain);
		uint32_t ready = copies ? step_copy_ready(drain, work) : 0;

		if (drain->gpu_lost)
			return STEP_ABANDONED;
		if (ready || outcome == STEP_ENDED) {
			/* What was there at once says nothing of an interval. */
			if (waited)
				pace_observe(&drain->pace, now - event_ns);
			event_ns = now;
			waited = false;
		}
		if (outcome != STEP_WAITING)
			return outcome;
		drain_heartbeat(drain);
		if (ready)
			continue;
		/* Who comes meanwhile is not kept waiting by an engine that hangs in its step. */
		drain_admit_readers(drain);
		step_rest(drain, work, now - event_ns);
		waited = true;
	}
}
