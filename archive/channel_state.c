/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the channels of an archive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

#include "archive/channel_state.h"

#define CHANNELS_MAX 65536u

static void forget(struct channel_state *state)
{
	live_clear(&state->live);
	free(state->schema);
	state->schema = NULL;
	state->schema_bytes = 0;
	state->keyframe = (struct r3ring_keyframe_record){0};
	state->whole = false;
	state->gap = false;
	state->left = 0;
}

void channel_states_release(struct channel_states *states)
{
	for (uint32_t i = 0; i < states->count; i++) {
		forget(&states->channels[i]);
		free(states->channels[i].name);
	}
	free(states->channels);
	*states = (struct channel_states){0};
}

uint32_t channel_states_find(const struct channel_states *states, const char *name, size_t length)
{
	for (uint32_t i = 0; i < states->count; i++) {
		const char *known = states->channels[i].name;

		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return i;
	}
	return UINT32_MAX;
}

int channel_states_add(struct channel_states *states, const char *name, size_t length)
{
	char *copy;

	if (states->count == CHANNELS_MAX)
		return -ENOSPC;
	if (states->count == states->capacity) {
		uint32_t capacity = states->capacity ? 2 * states->capacity : 8;
		struct channel_state *channels =
			reallocarray(states->channels, capacity, sizeof(*channels));

		if (!channels)
			return -ENOMEM;
		states->channels = channels;
		states->capacity = capacity;
	}
	copy = strndup(name, length);
	if (!copy)
		return -ENOMEM;
	states->channels[states->count] = (struct channel_state){.name = copy};
	return (int)states->count++;
}

void channel_state_generation(struct channel_state *state,
			      const struct archive_generation *generation)
{
	forget(state);
	state->begun = true;
	state->generation = *generation;
}

/* ---- records ------------------------------------------------------------ */

/* What was live before and is not said again has ended, be it in a gap; where the keyframe leaves
 * requests out it may live on. */
static void forget_unnamed(struct live *live, bool abridged)
{
	struct live kept = {0};

	if (abridged) {
		live_move_requests(&kept, live);
		kept.lacks = true;
	}
	live_clear(live);
	*live = kept;
}

static void keyframe_begins(struct channel_state *state, const struct r3ring_view *view,
			    const struct r3ring_keyframe_record *keyframe)
{
	if (state->gap || !state->whole || state->live.lacks) {
		forget_unnamed(&state->live, view->flags & R3RING_DESC_ABRIDGED);
		state->whole = false;
	}
	state->gap = false;
	state->keyframe = *keyframe;
	state->left = keyframe->records;
	state->next_seq = view->seq + 1;
	if (!state->left)
		state->whole = true;
}

static void keyframe_goes_on(struct channel_state *state, const struct r3ring_view *view)
{
	if (!state->left)
		return;
	if (view->seq != state->next_seq || !(view->flags & R3RING_DESC_REPEATED)) {
		state->left = 0;
		return;
	}
	state->next_seq++;
	if (--state->left == 0)
		state->whole = true;
}

static int note_schema(struct channel_state *state, const struct r3ring_view *view)
{
	void *copy = malloc(view->len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, view->data, view->len);
	free(state->schema);
	state->schema = copy;
	state->schema_bytes = view->len;
	if (view->seq == 1 && !(view->flags & R3RING_DESC_REPEATED))
		state->whole = true;
	return 0;
}

/* What does not fit, or is unreadable, is not said again: as in the ring's keyframes. */
static int note_content(struct channel_state *state, const struct r3ring_view *view)
{
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		return 0;
	switch (view->type) {
	case R3RING_SCHEMA:
		return note_schema(state, view);
	case R3RING_REQUEST:
		live_note_request(&state->live, &record.u.request.head, view->data, view->len);
		return 0;
	case R3RING_EPLB:
		live_note_map(&state->live, &record.u.eplb.head, view->data, view->len);
		return 0;
	case R3RING_KEYFRAME:
		keyframe_begins(state, view, &record.u.keyframe);
		return 0;
	default:
		return 0;
	}
}

static bool has_content(uint16_t type)
{
	return type == R3RING_SCHEMA || type == R3RING_REQUEST || type == R3RING_EPLB ||
	       type == R3RING_KEYFRAME;
}

int channel_state_record(struct channel_state *state, const struct r3ring_view *view)
{
	int r = has_content(view->type) ? note_content(state, view) : 0;

	if (view->type != R3RING_KEYFRAME)
		keyframe_goes_on(state, view);
	state->generation.closed = view->type == R3RING_CLOSED;
	if (view->type == R3RING_STEP && view->step > state->keyframe.step)
		state->keyframe.step = view->step;
	if (view->seq > state->generation.seq)
		state->generation.seq = view->seq;
	return r;
}

void channel_state_skipped(struct channel_state *state, uint64_t seq)
{
	state->left = 0;
	state->generation.seq = seq;
	state->generation.closed = 0;
}

void channel_state_gap(struct channel_state *state, const struct archive_gap *gap)
{
	state->gap = true;
	state->left = 0;
	state->generation.closed = 0;
	if (gap->to_seq > state->generation.seq)
		state->generation.seq = gap->to_seq;
}
