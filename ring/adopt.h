/* SPDX-License-Identifier: Apache-2.0 */
/* Adopting a ring whose lock says nothing, since whoever may read it can hold it. */
#ifndef RING_ADOPT_H
#define RING_ADOPT_H

#include <r3ring/ring.h>

/*
 * As r3ring_segment_adopt(), and never -EBUSY: the lock is taken where it is free. Only for
 * who knows by other means that the writer is dead and that nobody else adopts the ring.
 */
int segment_adopt_ownerless(struct r3ring_segment **segment, const char *name,
			    struct r3ring_error *err);

#endif
