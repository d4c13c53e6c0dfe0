/* SPDX-License-Identifier: Apache-2.0 */
/* REQUEST: which text id a handle stands for, from when to when. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

static void request_clear(struct r3ring_record *record)
{
	if (record->u.request.head.event != R3RING_REQUEST_BEGIN)
		record->u.request.head.since_first = 0;
}

static int request_check_event(const struct r3ring_request_record *head, struct r3ring_error *err)
{
	switch (head->event) {
	case R3RING_REQUEST_BEGIN:
		if (head->id_len == 0)
			return RECORD_REFUSE(err,
					     "REQUEST record: BEGIN of handle %llu without a text "
					     "id",
					     (unsigned long long)head->handle);
		if (head->reason)
			return RECORD_REFUSE(err, "REQUEST record: BEGIN with end reason %u",
					     head->reason);
		if (head->since_first && (!head->attempt || head->since_first >= head->handle))
			return RECORD_REFUSE(err,
					     "REQUEST record: BEGIN of attempt %u, handle %llu, "
					     "with a first attempt %u handles before",
					     head->attempt, (unsigned long long)head->handle,
					     head->since_first);
		return 0;
	case R3RING_REQUEST_END:
		if (head->reason < R3RING_END_FINISHED || head->reason > R3RING_END_UNKNOWN)
			return RECORD_REFUSE(err, "REQUEST record: END with unknown reason %u",
					     head->reason);
		return 0;
	default:
		return RECORD_REFUSE(err, "REQUEST record: unknown event %u", head->event);
	}
}

static unsigned int request_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	arrays[0] = (struct record_array){RECORD_POINTER(request.id), head->id_len, "id"};
	arrays[1] = (struct record_array){RECORD_POINTER(request.session), head->session_len,
					  "session"};
	arrays[2] = (struct record_array){RECORD_POINTER(request.turn), head->turn_len, "turn"};
	arrays[3] =
		(struct record_array){RECORD_POINTER(request.sample), head->sample_len, "sample"};
	return 4;
}

static int request_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	struct record_array texts[RECORD_ARRAYS_MAX];
	unsigned int n = request_arrays(record, texts);

	for (unsigned int i = 0; i < n; i++)
		if (texts[i].bytes > R3RING_TEXT_ID_MAX)
			return RECORD_REFUSE(err,
					     "REQUEST record: %s text of %llu bytes, at most %d",
					     texts[i].name, (unsigned long long)texts[i].bytes,
					     R3RING_TEXT_ID_MAX);
	return request_check_event(&record->u.request.head, err);
}

/* A NUL within would make two different ids read as one in C. */
static int request_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	struct record_array texts[RECORD_ARRAYS_MAX];
	unsigned int n = request_arrays(record, texts);

	for (unsigned int i = 0; i < n; i++)
		if (texts[i].bytes &&
		    memchr(record_array_get(record, &texts[i]), 0, (size_t)texts[i].bytes))
			return RECORD_REFUSE(err, "REQUEST record: NUL within the %s text",
					     texts[i].name);
	return 0;
}

const struct record_type record_request = {
	.head_bytes = sizeof(struct r3ring_request_record),
	.clear_reserved = request_clear,
	.check_head = request_check_head,
	.arrays = request_arrays,
	.check_arrays = request_check_arrays,
};
