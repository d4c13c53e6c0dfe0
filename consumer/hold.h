/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place that one thread writes and any number read, none waiting: who reads enters and
 * leaves; who writes claims the place while nobody is in it, or takes another one.
 */
#ifndef CONSUMER_HOLD_H
#define CONSUMER_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/atomic.h>

#define HOLD_CLAIMED (1u << 31)

/*
 * False while it is claimed. All operations are read-modify-writes of one word, so they
 * have one order; this one's acquire pairs with the release in hold_give_back(), and shows
 * what was written.
 */
static inline bool hold_enter(uint32_t *hold)
{
	if (!(r3ring_fetch_add_u32(hold, 1) & HOLD_CLAIMED))
		return true;
	r3ring_fetch_add_u32(hold, UINT32_MAX);
	return false;
}

/* Its release pairs with the acquire in hold_claim(): reading is over before writing. */
static inline void hold_leave(uint32_t *hold)
{
	r3ring_fetch_add_u32(hold, UINT32_MAX);
}

/* False while somebody is in it. */
static inline bool hold_claim(uint32_t *hold)
{
	if (!(r3ring_fetch_add_u32(hold, HOLD_CLAIMED) & ~HOLD_CLAIMED))
		return true;
	r3ring_fetch_add_u32(hold, HOLD_CLAIMED); /* the highest bit: adding takes it away */
	return false;
}

static inline void hold_give_back(uint32_t *hold)
{
	r3ring_fetch_add_u32(hold, HOLD_CLAIMED);
}

#endif
