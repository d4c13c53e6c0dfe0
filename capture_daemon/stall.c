/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for lossless readers, within limits. */
#include <time.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/stall.h"

#define NAP_LEAST_NS 20000u
#define NAP_MOST_NS 1000000u
/* A nap that lasted longer was this process standing still: no reader's fault. */
#define NAP_COUNTED_NS (100 * NS_PER_MS)

static void add(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, *word + value);
}

/* Returns for how long. */
static uint64_t nap(struct stall_wait *wait)
{
	const struct timespec time = {.tv_nsec = (long)wait->nap_ns};
	uint64_t begin = clock_now_ns(), waited;

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	waited = clock_now_ns() - begin;
	wait->nap_ns = wait->nap_ns * 2 < NAP_MOST_NS ? wait->nap_ns * 2 : NAP_MOST_NS;
	return waited < NAP_COUNTED_NS ? waited : NAP_COUNTED_NS;
}

static uint64_t wait_once(struct stall *stall, struct r3ring_writer *writer,
			  struct stall_wait *wait)
{
	uint64_t waited;

	if (!wait->nap_ns) {
		wait->nap_ns = NAP_LEAST_NS;
		add(&stall->waits, 1);
	}
	/* Who is waited for may be asleep, not yet told of what lies there. */
	r3ring_writer_wake(writer);
	waited = nap(wait);
	wait->waited_ns += waited;
	add(&stall->waited_ns, waited);
	R3RING_TEST_POINT("stall nap");
	return waited;
}

void stall_wait(struct stall *stall, struct r3ring_writer *writer, struct stall_wait *wait)
{
	uint64_t waited = wait_once(stall, writer, wait);
	bool over = wait->waited_ns >= stall->policy.limit_ns || !stall->carry_on(stall->ctx);
	struct gate_front front = writer_front(writer);

	add(&stall->demoted, gate_demote(stall->gate, &front, waited, over));
}

bool stall_nap(struct stall *stall, struct r3ring_writer *writer, struct stall_wait *wait)
{
	if (wait->waited_ns >= stall->policy.limit_ns || !stall->carry_on(stall->ctx))
		return false;
	wait_once(stall, writer, wait);
	return true;
}

void stall_end(struct stall *stall)
{
	stall->policy.limit_ns = 0;
	if (stall->gate)
		gate_set_reserve(stall->gate, true);
}

void stall_resume(struct stall *stall, const struct stall_policy *policy,
		  bool (*carry_on)(void *ctx), void *ctx)
{
	stall->policy = *policy;
	stall->carry_on = carry_on;
	stall->ctx = ctx;
	gate_set_reserve(stall->gate, policy->drop);
}
