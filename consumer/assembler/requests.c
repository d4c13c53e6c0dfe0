/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/requests.h"

#define POSITIONS_MIN 64u

static char *text_of(const char *text, uint16_t len)
{
	char *copy = malloc((size_t)len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void request_account(struct request *request, size_t before, size_t now)
{
	const uint64_t more = heap_bytes(now) - heap_bytes(before);

	request->bytes += more;
	request->memory->held += more;
}

struct request *request_create(const struct r3ring_record *record, struct memory *memory)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->memory = memory;
	request_account(request, 0, sizeof(*request));
	request->text[0] = text_of(record->u.request.id, head->id_len);
	request->text[1] = text_of(record->u.request.session, head->session_len);
	request->text[2] = text_of(record->u.request.turn, head->turn_len);
	request->text[3] = text_of(record->u.request.sample, head->sample_len);
	for (int i = 0; i < 4; i++) {
		if (!request->text[i]) {
			request_free(request);
			return NULL;
		}
		request_account(request, 0, strlen(request->text[i]) + 1);
	}
	return request;
}

static void attempt_free(struct attempt *attempt)
{
	rows_drop(attempt->row, attempt->positions);
	rows_drop(attempt->newest, attempt->recomputed);
	for (uint32_t i = 0; i < attempt->contradictions; i++)
		row_drop(attempt->contradiction[i].row);
	free(attempt->row);
	free(attempt->newest);
	free(attempt->contradiction);
	free(attempt->told);
	free(attempt);
}

static void part_free(struct part *part)
{
	for (uint32_t i = 0; i < part->attempts; i++)
		attempt_free(part->attempt[i]);
	free(part->attempt);
	free(part);
}

void request_free(struct request *request)
{
	struct part *part;

	if (!request)
		return;
	while ((part = request->part)) {
		request->part = part->next;
		part_free(part);
	}
	for (int i = 0; i < 4; i++)
		free(request->text[i]);
	request->memory->held -= request->bytes;
	free(request);
}

uint64_t request_touched_at(const struct request *request)
{
	uint64_t touched = request->touched;

	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++)
			if (part->attempt[i]->touched > touched)
				touched = part->attempt[i]->touched;
	return touched;
}

struct part *request_part(struct request *request, uint32_t channel)
{
	struct part *part;

	for (part = request->part; part; part = part->next)
		if (part->channel == channel)
			return part;
	part = calloc(1, sizeof(*part));
	if (!part)
		return NULL;
	part->request = request;
	part->channel = channel;
	request_account(request, 0, sizeof(*part));
	part->next = request->part;
	request->part = part;
	return part;
}

struct attempt *part_add_attempt(struct part *part, uint16_t number)
{
	static _Thread_local uint64_t serials;
	struct attempt *added, **attempt;
	uint32_t place = part->attempts;

	attempt = realloc(part->attempt, (part->attempts + 1) * sizeof(struct attempt *));
	if (!attempt)
		return NULL;
	part->attempt = attempt;
	request_account(part->request, part->attempts * sizeof(*attempt),
			(part->attempts + 1) * sizeof(*attempt));
	added = malloc(sizeof(*added));
	if (!added)
		return NULL;
	request_account(part->request, 0, sizeof(*added));
	*added = (struct attempt){
		.request = part->request,
		.serial = ++serials,
		.number = number,
		.accepted = R3RING_UNKNOWN_U32,
		.lost = NEVER_LOST,
	};
	for (; place > 0 && attempt[place - 1]->number > number; place--)
		attempt[place] = attempt[place - 1];
	attempt[place] = added;
	part->attempts++;
	return added;
}

static uint64_t capacity_for(const struct attempt *attempt, uint32_t position)
{
	uint64_t capacity = attempt->capacity ? attempt->capacity : POSITIONS_MIN;

	while (capacity <= position)
		capacity *= 2;
	return capacity;
}

uint64_t attempt_growth(const struct attempt *attempt, uint32_t position)
{
	return (capacity_for(attempt, position) - attempt->capacity) * sizeof(*attempt->row);
}

int attempt_grow(struct attempt *attempt, uint32_t position)
{
	const uint64_t capacity = capacity_for(attempt, position);
	struct row **row;

	if (capacity > UINT32_MAX)
		return -ENOMEM;
	row = realloc(attempt->row, capacity * sizeof(*row));
	if (!row)
		return -ENOMEM;
	request_account(attempt->request, attempt->capacity * sizeof(*row),
			capacity * sizeof(*row));
	attempt->row = row;
	attempt->capacity = (uint32_t)capacity;
	return 0;
}

/* As many as there are positions: it happens seldom, and then to all of them. */
static int newest_reach(struct attempt *attempt)
{
	struct row **newest = realloc(attempt->newest, attempt->positions * sizeof(*newest));

	if (!newest)
		return -ENOMEM;
	memset(newest + attempt->recomputed, 0,
	       (attempt->positions - attempt->recomputed) * sizeof(*newest));
	request_account(attempt->request, attempt->recomputed * sizeof(*newest),
			attempt->positions * sizeof(*newest));
	attempt->newest = newest;
	attempt->recomputed = attempt->positions;
	return 0;
}

void attempt_recompute(struct attempt *attempt, uint32_t position, struct row *row)
{
	if (position >= attempt->recomputed && newest_reach(attempt) < 0) {
		attempt_put(attempt, position, NULL);
		return;
	}
	row_drop(attempt->newest[position]);
	attempt->newest[position] = row_hold(row);
}

void attempt_contradict(struct attempt *attempt, uint32_t position, struct row *row, bool instead)
{
	struct contradiction *grown =
		realloc(attempt->contradiction, (attempt->contradictions + 1) * sizeof(*grown));

	if (!grown) {
		attempt_put(attempt, position, NULL);
		return;
	}
	request_account(attempt->request, attempt->contradictions * sizeof(*grown),
			(attempt->contradictions + 1) * sizeof(*grown));
	attempt->contradiction = grown;
	grown[attempt->contradictions++] = (struct contradiction){position, instead, row_hold(row)};
}

bool attempt_found_either(const struct attempt *attempt, uint32_t position)
{
	for (uint32_t i = 0; i < attempt->contradictions; i++)
		if (attempt->contradiction[i].position == position &&
		    attempt->contradiction[i].instead)
			return true;
	return false;
}

void attempt_cut(struct attempt *attempt, uint32_t end)
{
	uint32_t kept = 0;

	while (attempt->positions > end)
		row_drop(attempt->row[--attempt->positions]);
	while (attempt->recomputed > end)
		row_drop(attempt->newest[--attempt->recomputed]);
	for (uint32_t i = 0; i < attempt->contradictions; i++) {
		if (attempt->contradiction[i].position < end)
			attempt->contradiction[kept++] = attempt->contradiction[i];
		else
			row_drop(attempt->contradiction[i].row);
	}
	attempt->contradictions = kept;
}
