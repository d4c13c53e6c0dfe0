/* SPDX-License-Identifier: Apache-2.0 */
/* Which positions of a request its engine ran: in few stretches, most often in one. */
#include "consumer/load/load.h"

/* Takes out those that overlap or touch [*from, *end), which grows by them. */
static void join(struct load_ran *ran, uint32_t *from, uint32_t *end)
{
	uint32_t apart = 0;

	for (uint32_t i = 0; i < ran->stretches; i++) {
		const struct load_run one = ran->stretch[i];

		if (one.end < *from || one.from > *end) {
			ran->stretch[apart++] = one;
			continue;
		}
		if (one.from < *from)
			*from = one.from;
		if (one.end > *end)
			*end = one.end;
	}
	ran->stretches = apart;
}

static uint32_t shortest(const struct load_ran *ran)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < ran->stretches; i++)
		if (ran->stretch[i].end - ran->stretch[i].from <
		    ran->stretch[at].end - ran->stretch[at].from)
			at = i;
	return at;
}

void load_ran_add(struct load_ran *ran, uint32_t from, uint32_t end)
{
	uint32_t at;

	if (from >= end)
		return;
	join(ran, &from, &end);
	at = ran->stretches < LOAD_STRETCHES ? ran->stretches++ : shortest(ran);
	ran->stretch[at] = (struct load_run){from, end};
}

void load_ran_cut(struct load_ran *ran, uint32_t kept)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < ran->stretches; i++) {
		struct load_run one = ran->stretch[i];

		if (one.from >= kept)
			continue;
		if (one.end > kept)
			one.end = kept;
		ran->stretch[left++] = one;
	}
	ran->stretches = left;
}

bool load_ran_any(const struct load_ran *ran, uint64_t from, uint64_t end)
{
	for (uint32_t i = 0; i < ran->stretches; i++)
		if (ran->stretch[i].from < end && from < ran->stretch[i].end)
			return true;
	return false;
}
