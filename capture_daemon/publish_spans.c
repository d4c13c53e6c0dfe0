/* SPDX-License-Identifier: Apache-2.0 */
/* STEP and SPANS records; those too long for the ring are split by spans. */
#include <errno.h>

#include "capture_daemon/publish.h"

/* The spans and keys that are still to be said. */
struct span_list {
	const struct r3ring_span *spans;
	const uint64_t *keys;
	uint32_t span_count;
	uint32_t key_count;
};

static uint64_t span_bytes(const struct r3ring_span *span)
{
	return sizeof(*span) + (uint64_t)span->keys * sizeof(uint64_t);
}

static bool each_span_fits(const struct publisher *publisher, const struct span_list *list)
{
	uint64_t room = publisher->scratch_bytes - sizeof(struct r3ring_step_record);

	for (uint32_t i = 0; i < list->span_count; i++) {
		if (span_bytes(&list->spans[i]) > room)
			return false;
	}
	return true;
}

/* Takes as many spans off the front of @list as fit @room bytes. */
static struct span_list take_spans(struct span_list *list, uint64_t room)
{
	struct span_list part = {.spans = list->spans, .keys = list->keys};
	uint64_t bytes = 0;

	while (part.span_count < list->span_count) {
		const struct r3ring_span *span = &list->spans[part.span_count];

		bytes += span_bytes(span);
		if (bytes > room)
			break;
		part.span_count++;
		part.key_count += span->keys;
	}
	list->spans += part.span_count;
	list->keys += part.key_count;
	list->span_count -= part.span_count;
	list->key_count -= part.key_count;
	return part;
}

static int publish_part(struct publisher *publisher, struct r3ring_spans_record head,
			const struct span_list *part, bool more)
{
	struct r3ring_record record = {.type = R3RING_SPANS};

	head.spans = part->span_count;
	head.keys = part->key_count;
	if (more)
		head.flags |= R3RING_SPANS_CONTINUED;
	record.u.spans.head = head;
	record.u.spans.spans = part->spans;
	record.u.spans.keys = part->keys;
	return publish_record(publisher, &record, 0);
}

static int publish_rest(struct publisher *publisher, struct r3ring_spans_record head,
			struct span_list *list)
{
	uint64_t room = publisher->scratch_bytes - sizeof(struct r3ring_step_record);
	struct span_list part;
	int r = 0;

	head.flags |= R3RING_SPANS_MORE;
	while (r == 0 && list->span_count) {
		part = take_spans(list, room);
		r = publish_part(publisher, head, &part, list->span_count > 0);
	}
	return r;
}

int publish_step(struct publisher *publisher, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	struct span_list list = {record->u.step.spans, record->u.step.keys, head->spans,
				 head->keys};
	struct r3ring_record first = *record;
	struct span_list part;
	int r;

	if (r3ring_record_size(record) <= publisher->scratch_bytes)
		return publish_record(publisher, record, R3RING_DESC_BOUNDARY);
	if (!each_span_fits(publisher, &list))
		return -EMSGSIZE;
	part = take_spans(&list, publisher->scratch_bytes - sizeof(*head));
	first.u.step.head.spans = part.span_count;
	first.u.step.head.keys = part.key_count;
	first.u.step.head.flags |= R3RING_STEP_MAP_CONTINUED;
	r = publish_record(publisher, &first, R3RING_DESC_BOUNDARY);
	if (r < 0)
		return r;
	return publish_rest(publisher,
			    (struct r3ring_spans_record){
				    .step = head->step,
				    .tokens_per_key = head->tokens_per_key,
				    .key_kind = head->key_kind,
			    },
			    &list);
}

int publish_spans(struct publisher *publisher, const struct r3ring_record *record)
{
	const struct r3ring_spans_record *head = &record->u.spans.head;
	struct span_list list = {record->u.spans.spans, record->u.spans.keys, head->spans,
				 head->keys};
	struct span_list part;
	int r;

	if (!each_span_fits(publisher, &list))
		return -EMSGSIZE;
	part = take_spans(&list, publisher->scratch_bytes - sizeof(struct r3ring_step_record));
	r = publish_part(publisher, *head, &part, list.span_count > 0);
	return r < 0 ? r : publish_rest(publisher, *head, &list);
}
