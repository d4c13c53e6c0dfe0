/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what uses the same memory is ordered. Work knows all that comes before it
 * (struct stamp); what was used of late is remembered. Two uses of a byte, one of them
 * a write, neither before the other, are a missing dependency, whatever happens to
 * have come first this time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fakecuda/runtime.h"

#define REMEMBERED 1024u

struct use {
	uint64_t identity, from, to;
	bool write, atomic;
	unsigned int lane;
	uint64_t number;
	const char *what;
	struct place place;
};

static struct use uses[REMEMBERED];
static unsigned int newest;

static const char *name_of(const struct work *work)
{
	static const char *const names[] = {
		[WORK_COPY] = "copy",
		[WORK_HOST] = "host function",
		[WORK_EVENT_RECORD] = "event record",
		[WORK_EVENT_WAIT] = "event wait",
	};

	return work->kind == WORK_KERNEL ? kernel_work_name(work->u.kernel) : names[work->kind];
}

static bool conflict(const struct use *a, const struct use *b)
{
	return a->identity == b->identity && a->from < b->to && b->from < a->to &&
	       (a->write || b->write) && !(a->atomic && b->atomic);
}

static void compare(const struct work *work, const struct use *use)
{
	for (unsigned int i = 0; i < REMEMBERED; i++) {
		const struct use *other = &uses[i];

		if (!other->what || !conflict(use, other) || other->lane == use->lane ||
		    work->after.at[other->lane] >= other->number)
			continue;
		findings_add(&work->place,
			     "missing dependency: %s (lane %u) %s bytes %llu to %llu, and %s "
			     "(lane %u, %s:%d) %s them; neither is before the other",
			     use->what, use->lane, use->write ? "writes" : "reads",
			     (unsigned long long)use->from, (unsigned long long)use->to,
			     other->what, other->lane, other->place.file ? other->place.file : "?",
			     other->place.line, other->write ? "writes" : "reads");
		return;
	}
}

void order_check(const struct work *work)
{
	for (unsigned int i = 0; i < work->range_count; i++) {
		const struct range *range = &work->ranges[i];
		struct use use = {.identity = range->region->identity,
				  .from = range->from,
				  .to = range->to,
				  .write = range->write,
				  .atomic = range->atomic,
				  .lane = work->lane,
				  .number = work->number,
				  .what = name_of(work),
				  .place = work->place};

		compare(work, &use);
		uses[newest++ % REMEMBERED] = use;
	}
}

static const char *region_fault(const struct region *region, const void *address, size_t bytes,
				unsigned int gpu)
{
	if (!region)
		return "is no address of the GPU's";
	if (region->gone)
		return "was freed";
	if (!region->memory)
		return "has no memory mapped";
	if (region->kind == REGION_RESERVED && !region->accessible)
		return "may not be accessed: cuMemSetAccess was not called";
	if ((uintptr_t)address + bytes > region->device + region->bytes)
		return "is too short";
	if (region->kind != REGION_REGISTERED && region->kind != REGION_PINNED &&
	    region->gpu != gpu)
		return "is another GPU's";
	return NULL;
}

void *work_use(struct work *work, const void *address, size_t bytes, bool write, bool atomic)
{
	struct region *region = region_of_device(address);
	const char *fault = region_fault(region, address, bytes, work->device);
	uint64_t offset;

	if (fault) {
		findings_add(&work->place, "%s uses %zu bytes at %p, which %s%s", name_of(work),
			     bytes, address, fault,
			     region && region->gone ? " (use after free)" : "");
		sticky_set(cudaErrorIllegalAddress);
		return NULL;
	}
	offset = (uintptr_t)address - region->device;
	if (bytes) {
		if (work->range_count == RANGES_MAX)
			abort();
		work->ranges[work->range_count++] = (struct range){.region = region,
								   .from = offset,
								   .to = offset + bytes,
								   .write = write,
								   .atomic = atomic};
	}
	return region->memory + offset;
}
