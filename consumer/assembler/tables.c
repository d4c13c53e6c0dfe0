/* SPDX-License-Identifier: Apache-2.0 */
/* Live requests by their text ids, and a channel's parts of them by their handles. */
#include <errno.h>
#include <string.h>

#include <utlist.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/assembler.h"

/* Handles are looked up for every span of every step. */
static unsigned int hash_of(uint64_t handle)
{
	return (unsigned int)(handle * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static struct part *part_in(struct part *parts, uint64_t handle)
{
	const unsigned int hash = hash_of(handle);
	struct part *part;

	HASH_FIND_BYHASHVALUE(hh, parts, &handle, sizeof(handle), hash, part);
	return part;
}

struct part *part_of(const struct channel *channel, uint64_t handle)
{
	return part_in(channel->parts, handle);
}

static uint64_t parts_table(const struct part *parts)
{
	return parts ? table_bytes(parts->hh.tbl) : 0;
}

static uint64_t requests_table(const struct request *requests)
{
	return requests ? table_bytes(requests->hh.tbl) : 0;
}

int part_enlist(struct channel *channel, struct part *part)
{
	const unsigned int before = HASH_COUNT(channel->parts), hash = hash_of(part->handle);
	const uint64_t table = parts_table(channel->parts);

	HASH_ADD_BYHASHVALUE(hh, channel->parts, handle, sizeof(part->handle), hash, part);
	part->request->memory->held += parts_table(channel->parts) - table;
	part->live = HASH_COUNT(channel->parts) > before;
	return part->live ? 0 : -ENOMEM;
}

void part_delist(struct channel *channel, struct part *part)
{
	uint64_t tables;

	if (!part->live)
		return;
	tables = parts_table(channel->parts) + parts_table(channel->suspended);
	order_leave(channel, part);
	if (part_of(channel, part->handle) == part)
		HASH_DEL(channel->parts, part);
	else if (part_in(channel->suspended, part->handle) == part)
		HASH_DEL(channel->suspended, part);
	tables -= parts_table(channel->parts) + parts_table(channel->suspended);
	part->request->memory->held -= tables;
	part->live = false;
}

struct request *requests_of(const struct r3ring_assembler *assembler, const char *id, size_t len)
{
	struct request *first;

	HASH_FIND(hh, assembler->requests, id, len, first);
	return first;
}

int request_enlist(struct r3ring_assembler *assembler, struct request *request)
{
	const size_t len = strlen(request->text[0]);
	const unsigned int before = HASH_COUNT(assembler->requests);
	struct request *first = requests_of(assembler, request->text[0], len);
	uint64_t table;

	DL_APPEND2(first, request, before, same);
	if (first != request)
		return 0;
	table = requests_table(assembler->requests);
	HASH_ADD_KEYPTR(hh, assembler->requests, request->text[0], len, request);
	assembler->memory.held += requests_table(assembler->requests) - table;
	return HASH_COUNT(assembler->requests) > before ? 0 : -ENOMEM;
}

static void scatter(struct request *first)
{
	for (struct request *next; first; first = next) {
		next = first->same;
		first->same = NULL;
		first->before = first;
	}
}

/* Without memory those that stay are not found again, and end as they are. */
void request_delist(struct r3ring_assembler *assembler, struct request *request)
{
	const size_t len = strlen(request->text[0]);
	struct request *first = requests_of(assembler, request->text[0], len);
	const uint64_t table = requests_table(assembler->requests);
	const bool was_first = first == request;

	if (!was_first && request->before == request)
		return;
	if (was_first)
		HASH_DEL(assembler->requests, request);
	DL_DELETE2(first, request, before, same);
	if (was_first && first)
		HASH_ADD_KEYPTR(hh, assembler->requests, first->text[0], len, first);
	if (first && requests_of(assembler, request->text[0], len) != first)
		scatter(first);
	request->same = NULL;
	assembler->memory.held += requests_table(assembler->requests) - table;
}
