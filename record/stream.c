/* SPDX-License-Identifier: Apache-2.0 */
/* KEYFRAME and CLOSED: what helps readers along the stream. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

/* ---- KEYFRAME ---- */

static int keyframe_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_keyframe_record *keyframe = &record->u.keyframe;

	if (keyframe->live_requests > keyframe->records)
		return RECORD_REFUSE(err, "KEYFRAME record: %u live requests in %u records",
				     keyframe->live_requests, keyframe->records);
	return 0;
}

const struct record_type record_keyframe = {
	.head_bytes = sizeof(struct r3ring_keyframe_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = keyframe_check_head,
	.arrays = record_no_arrays,
};

/* ---- CLOSED ---- */

static int closed_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_closed_record *closed = &record->u.closed;

	if (closed->reason < R3RING_CLOSED_NEXT || closed->reason > R3RING_CLOSED_CRASHED)
		return RECORD_REFUSE(err, "CLOSED record: unknown reason %u", closed->reason);
	if (closed->reason == R3RING_CLOSED_NEXT && closed->next_generation == 0)
		return RECORD_REFUSE(err,
				     "CLOSED record: continued by generation 0, which does not "
				     "exist");
	if (!memchr(closed->next_name, 0, sizeof(closed->next_name)))
		return RECORD_REFUSE(err,
				     "CLOSED record: the next segment's name has no end within "
				     "%zu bytes",
				     sizeof(closed->next_name));
	return 0;
}

const struct record_type record_closed = {
	.head_bytes = sizeof(struct r3ring_closed_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = closed_check_head,
	.arrays = record_no_arrays,
};
