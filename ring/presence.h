/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the next writer of a ring learns whether the dead one's lossless readers have yet to
 * come back: each holds a lock for reading on the byte of the segment whose number is the
 * writer's epoch (writer_epoch) that it is registered under. The kernel takes the lock
 * back with the reader's process, whoever looks.
 *
 * Whoever may read a segment can hold such a lock: a writer that is misled waits as long
 * as it would for a reader that stands still.
 */
#ifndef RING_PRESENCE_H
#define RING_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/ring.h>

/*
 * Shows a reader under @epoch, and no longer under those before.
 *
 * @segment_fd: of the segment, opened for this reader alone; it shows itself until that,
 *              its mappings and what children inherited of both are gone.
 *
 * Returns 0 or a negative errno.
 */
int presence_show(int segment_fd, uint64_t epoch);

/* Whether anybody shows itself under an epoch before @epoch; also where that cannot be
 * told. @segment: of the writer's side. */
bool presence_before(const struct r3ring_segment *segment, uint64_t epoch);

#endif
