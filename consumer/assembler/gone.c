/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/gone.h"

static struct gone *gone_of(const struct r3ring_assembler *assembler, const char *id, size_t len)
{
	struct gone *first;

	HASH_FIND(hh, assembler->gone, id, len, first);
	return first;
}

static void gone_free(struct gone *gone)
{
	while (gone) {
		struct gone *next = gone->same;

		free(gone->id);
		free(gone);
		gone = next;
	}
}

static void forget_first(struct r3ring_assembler *assembler)
{
	struct gone *first = assembler->gone;

	HASH_DEL(assembler->gone, first);
	gone_free(first);
}

void gone_forget(struct r3ring_assembler *assembler)
{
	while (assembler->gone)
		forget_first(assembler);
}

/* ---- a request goes ------------------------------------------------------- */

static uint32_t parts_of(const struct request *request)
{
	uint32_t parts = 0;

	for (const struct part *part = request->part; part; part = part->next)
		parts++;
	return parts;
}

static struct gone *gone_make(const struct request *request)
{
	const uint32_t parts = parts_of(request);
	struct gone *gone = calloc(1, sizeof(*gone) + parts * sizeof(gone->part[0]));

	if (!gone)
		return NULL;
	gone->id = strdup(request->text[0]);
	if (!gone->id) {
		free(gone);
		return NULL;
	}
	gone->oldest = request_oldest_number(request);
	gone->newest = request_newest_number(request);
	for (const struct part *part = request->part; part; part = part->next)
		gone->part[gone->parts++] = (struct gone_part){
			part->channel, part_ended_for_good(part), part->generation, part->handle};
	return gone;
}

static void gone_enlist(struct r3ring_assembler *assembler, struct gone *gone)
{
	const size_t len = strlen(gone->id);
	struct gone *first = gone_of(assembler, gone->id, len);

	if (first) {
		gone->same = first->same;
		first->same = gone;
		return;
	}
	HASH_ADD_KEYPTR(hh, assembler->gone, gone->id, len, gone);
	if (gone_of(assembler, gone->id, len) != gone)
		gone_free(gone);
	else if (HASH_COUNT(assembler->gone) > GONE_IDS_MOST)
		forget_first(assembler);
}

void gone_note(struct r3ring_assembler *assembler, const struct request *request, uint32_t flags)
{
	struct gone *gone;

	if (assembler->flushing || !request->part || !request_may_go_on(assembler, request, NULL))
		return;
	gone = gone_make(request);
	if (!gone)
		return;
	gone->evicted = flags & R3RING_ASSEMBLED_EVICTED;
	gone_enlist(assembler, gone);
}

/* ---- and goes on ---------------------------------------------------------- */

static bool may_go_on_at(const struct r3ring_assembler *assembler, const struct gone *gone,
			 const struct channel *channel)
{
	for (uint32_t i = 0; i < gone->parts; i++) {
		const struct channel *its = assembler->channel[gone->part[i].channel];

		if (!channels_may_share_requests(channel, its) ||
		    (gone->part[i].ended && channels_share_engine(channel, its)))
			return false;
	}
	return true;
}

/* Whether one channel told of both, or two engines of the same attempts. */
static bool is_apart(const struct r3ring_assembler *assembler, const struct gone *gone,
		     const struct request *request)
{
	const bool meet = gone->oldest <= request_newest_number(request) &&
			  request_oldest_number(request) <= gone->newest;

	if (gone->evicted && !request->has_others)
		return false;
	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < gone->parts; i++)
			if (part->channel == gone->part[i].channel ||
			    (meet &&
			     !channels_share_engine(assembler->channel[part->channel],
						    assembler->channel[gone->part[i].channel])))
				return true;
	return false;
}

const struct gone *gone_candidate(const struct r3ring_assembler *assembler,
				  const struct request *request, const struct channel *channel,
				  uint16_t number)
{
	const struct gone *gone = gone_of(assembler, request->text[0], strlen(request->text[0]));

	while (gone && !(gone->oldest <= number && may_go_on_at(assembler, gone, channel) &&
			 is_apart(assembler, gone, request)))
		gone = gone->same;
	return gone;
}

/* Whether a rank of the channel's engine told of it by the handle. */
static bool is_told_by(const struct r3ring_assembler *assembler, const struct gone *gone,
		       const struct channel *channel, uint64_t handle)
{
	for (uint32_t i = 0; i < gone->parts; i++) {
		const struct gone_part *part = &gone->part[i];
		const struct channel *its = assembler->channel[part->channel];

		if (part->handle == handle &&
		    (channel == its ? part->generation == channel->generation ||
					      generation_goes_on(channel)
				    : channels_of_one_engine(channel, its)))
			return true;
	}
	return false;
}

static bool may_return_as(const struct r3ring_assembler *assembler, const struct gone *gone,
			  const struct channel *channel, const struct r3ring_request_record *begin)
{
	if (is_told_by(assembler, gone, channel, begin->handle))
		return true;
	return (begin->attempt > gone->newest || begin->attempt < gone->oldest) &&
	       may_go_on_at(assembler, gone, channel);
}

bool gone_return(struct r3ring_assembler *assembler, const struct channel *channel,
		 const struct r3ring_record *begin)
{
	const struct r3ring_request_record *head = &begin->u.request.head;
	struct gone *first = gone_of(assembler, begin->u.request.id, head->id_len);
	struct gone *gone = first, *before = NULL;

	while (gone && !may_return_as(assembler, gone, channel, head)) {
		before = gone;
		gone = gone->same;
	}
	if (!gone)
		return false;
	if (before) {
		before->same = gone->same;
	} else {
		HASH_DEL(assembler->gone, first);
		if (gone->same)
			gone_enlist(assembler, gone->same);
	}
	gone->same = NULL;
	gone_free(gone);
	return true;
}
