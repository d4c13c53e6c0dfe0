/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's members as seen from outside: who sleeps is woken, who asks is shown. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "ring/gate_members.h"
#include "ring/internal.h"

/* ---- waking ------------------------------------------------------------- */

static void poke(struct member *member)
{
	uint32_t armed = r3ring_load_relaxed_u32(&member->page->armed);

	if (armed == member->poked)
		return;
	member->poked = armed;
	if (member->terms.poke)
		member->terms.poke(member->terms.owner);
}

void gate_wake(struct gate *gate, uint32_t *wake)
{
	bool sleeping = false;

	/* Pairs with the reader's fence between `waiting` and its last look: either that
	 * look sees what was published, or the loads below see that it sleeps. */
	r3ring_fence_full();
	if (!r3ring_load_relaxed_u32(&gate->count))
		return;
	pthread_mutex_lock(&gate->lock);
	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];

		if (!member->page)
			continue;
		if (r3ring_load_relaxed_u32(&member->page->waiting))
			sleeping = true;
		poke(member);
	}
	pthread_mutex_unlock(&gate->lock);
	if (!sleeping)
		return;
	/* Pairs with the acquire of `wake` in r3ring_cursor_wait(). */
	r3ring_fetch_add_u32(wake, 1);
	r3ring_store_relaxed_u64(&gate->wakes, gate->wakes + 1);
	syscall(SYS_futex, wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- looking in from outside --------------------------------------------- */

uint64_t gate_wakes(const struct gate *gate)
{
	return r3ring_load_relaxed_u64(&gate->wakes);
}

/* @cursor: of the member; anything when it is not lossless. */
static void report_lag(const struct gate *gate, uint64_t cursor, struct gate_member_report *report)
{
	const struct r3ring_segment *segment = gate->segment;
	uint64_t tail = tail_newest(segment);
	uint64_t end = r3ring_load_relaxed_u64(&segment->lines->tail_pos);
	struct r3ring_desc desc;

	report->cursor = between(cursor, segment->header.first_seq, tail + 1);
	report->lag_records = tail + 1 - report->cursor;
	if (!report->lag_records)
		return;
	report->lag_bytes = segment->arena_bytes;
	if (desc_copy(segment, report->cursor, &desc) == DESC_INTACT && end >= desc.pos)
		report->lag_bytes = end - desc.pos;
}

static void report(const struct gate *gate, const struct member *member,
		   struct gate_member_report *to)
{
	const struct r3ring_reader_page *page = member->page;
	uint64_t cursor = r3ring_load_relaxed_u64(&page->cursor);

	*to = (struct gate_member_report){
		.owner = member->terms.owner,
		.lossless = member->lossless,
		.demoted = member->state == R3RING_READER_DEMOTED,
		.got = r3ring_load_relaxed_u64(&page->got),
		.lost = r3ring_load_relaxed_u64(&page->lost),
		.skipped = r3ring_load_relaxed_u64(&page->skipped),
		.demoted_from = member->demoted_from,
		.demoted_to = member->demoted_to,
	};
	report_lag(gate, cursor > member->cursor ? cursor : member->cursor, to);
}

unsigned int gate_list(struct gate *gate, struct gate_member_report reports[GATE_MEMBERS_MAX])
{
	unsigned int count = 0;

	pthread_mutex_lock(&gate->lock);
	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		if (gate->members[i].page && gate->members[i].page != &gate->held)
			report(gate, &gate->members[i], &reports[count++]);
	}
	pthread_mutex_unlock(&gate->lock);
	return count;
}
