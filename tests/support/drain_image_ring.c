/* SPDX-License-Identifier: Apache-2.0 */
/* What readers find of a producer that may have lied. */
#include <errno.h>

#include "tests/support/drain_image_ring.h"

/* What is known of the stream so far. */
struct stream {
	uint64_t step; /* announced last */
	bool open;     /* and not ended */
	bool dropped;  /* nothing of it may come */
	uint64_t told; /* newest step with an end, or lost */
	bool closed;
	bool seen[DRAIN_IMAGE_LAYERS][DRAIN_IMAGE_MAX_ROWS]; /* first rows of its parts */
};

static const char *note_step(struct stream *stream, const struct r3ring_step_record *head)
{
	if (stream->open)
		return "a step begins before the one before it has ended";
	if (head->step <= stream->told)
		return "a step is announced again, or after a later one";
	*stream = (struct stream){.step = head->step,
				  .open = true,
				  .dropped = head->flags & R3RING_STEP_DROPPED,
				  .told = stream->told};
	return NULL;
}

static const char *note_layer(struct stream *stream, const struct r3ring_layer_record *head)
{
	if (!stream->open || stream->dropped || head->step != stream->step)
		return "a layer of a step that is not at work";
	if (head->layer_index >= DRAIN_IMAGE_LAYERS || head->row >= DRAIN_IMAGE_MAX_ROWS ||
	    head->top_k != DRAIN_IMAGE_TOP_K)
		return "a layer that the schema does not know";
	if (stream->seen[head->layer_index][head->row])
		return "a part of a layer comes twice";
	stream->seen[head->layer_index][head->row] = true;
	return NULL;
}

static const char *note_end(struct stream *stream, uint64_t step)
{
	if (!stream->open || step != stream->step)
		return "the end of a step that is not at work";
	stream->open = false;
	stream->told = step;
	return NULL;
}

/* Of a step that was announced as dropped, of such as never were, or of neither. */
static const char *note_lost(struct stream *stream, const struct r3ring_lost_record *lost)
{
	if (!lost->from_step && !lost->to_step)
		return NULL;
	if (lost->from_step > lost->to_step)
		return "lost steps that end before they begin";
	if (stream->open)
		return stream->dropped ? note_end(stream, lost->to_step)
				       : "steps are lost while one is at work";
	if (lost->to_step > stream->told)
		stream->told = lost->to_step;
	return NULL;
}

static const char *note_record(struct stream *stream, const struct r3ring_record *record)
{
	if (stream->closed)
		return "a record behind the last one";
	switch (record->type) {
	case R3RING_STEP:
		return note_step(stream, &record->u.step.head);
	case R3RING_LAYER:
		return note_layer(stream, &record->u.layer.head);
	case R3RING_ROWS:
		return stream->open && record->u.rows.head.step == stream->step
			       ? NULL
			       : "rows of a step that is not at work";
	case R3RING_STEP_END:
		return note_end(stream, record->u.step_end.head.step);
	case R3RING_LOST:
		return note_lost(stream, &record->u.lost);
	case R3RING_CLOSED:
		stream->closed = true;
		return NULL;
	default:
		return NULL;
	}
}

static const char *take(struct stream *stream, const struct r3ring_view *view,
			struct drain_image_result *result)
{
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		return "a record that no reader takes";
	result->records++;
	result->steps += record.type == R3RING_STEP;
	return note_record(stream, &record);
}

void drain_image_ring_read(const struct r3ring_segment *segment, struct drain_image_result *result)
{
	struct stream stream = {0};
	struct r3ring_cursor *cursor;
	struct r3ring_view view;
	int r;

	if (r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0)) {
		result->wrong = "the ring cannot be read";
		return;
	}
	while (!result->wrong && (r = r3ring_cursor_next(cursor, &view)) != -EPIPE) {
		if (r == 1)
			result->wrong = take(&stream, &view, result);
		else
			result->wrong = "a record is lost, or the ring has no end";
	}
	if (!result->wrong && (!stream.closed || stream.open))
		result->wrong = "the ring ends without CLOSED, or in the midst of a step";
	r3ring_cursor_close(cursor);
}
