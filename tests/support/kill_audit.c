/* SPDX-License-Identifier: Apache-2.0 */
/* What a round of kills comes to. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <r3ring/atomic.h>

#include "tests/support/kill_audit.h"

struct kill_audit *kill_audit_make(void)
{
	struct kill_audit *audit = mmap(NULL, sizeof(*audit), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (audit == MAP_FAILED) {
		perror("the account's page");
		exit(1);
	}
	return audit;
}

/* ---- one engine --------------------------------------------------------- */

/* Whether it comes before the first that engine @next knew of. */
static bool comes_before(const struct kill_audit *audit, unsigned int next, uint64_t number)
{
	return next == audit->count || number < audit->lives[next].first_generation;
}

/*
 * The last generation of an engine that may not have known of it: one that begins with a
 * later step than the first. Of one without any step nothing says whose it is: where a
 * daemon died in it the engine may have died with that, if it lived when the one before
 * was closed.
 */
static uint64_t last_generation(const struct kill_audit *audit, const struct ledger *ledger,
				unsigned int index)
{
	uint64_t last = audit->lives[index].last_generation;

	for (unsigned int i = 1; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];
		bool crashed = generation->closed == R3RING_CLOSED_CRASHED &&
			       generation[-1].closed == R3RING_CLOSED_SHUTDOWN;

		if (generation->number <= last)
			continue;
		if (generation->first_step == 1 ||
		    !comes_before(audit, index + 1, generation->number))
			break;
		if (generation->first_step || crashed)
			last = generation->number;
	}
	return last;
}

/* Steps that it announced, and that a daemon which closed its last generation knew of; all,
 * unless its end says that more may have been run. */
static uint64_t announced(const struct ledger *ledger, const struct kill_life *life, uint64_t last)
{
	uint64_t newest = 0;
	bool unknown = false; /* what the engine ran behind the end */

	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];

		if (generation->number < life->first_generation || generation->number > last)
			continue;
		if (generation->newest_step > newest)
			newest = generation->newest_step;
		unknown = generation->closed == R3RING_CLOSED_CRASHED || generation->engine_lived;
	}
	return unknown || life->steps < newest ? newest : life->steps;
}

static uint64_t told_for(const struct ledger *ledger, const struct kill_life *life, uint64_t last,
			 enum r3ring_cause cause)
{
	uint64_t told = 0;

	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];

		if (generation->number >= life->first_generation && generation->number <= last)
			told += generation->lost_steps[cause];
	}
	return told;
}

/* All causes, since a step that is told under another name is found there. */
static void print_causes(const struct ledger *ledger, const struct kill_life *life, uint64_t last)
{
	fprintf(stderr, "kills: generations %" PRIu64 " to %" PRIu64 ":", life->first_generation,
		last);
	for (int cause = 1; cause < R3RING_CAUSE_COUNT; cause++)
		fprintf(stderr, " %s %" PRIu64 " told, %" PRIu64 " dropped;",
			r3ring_cause_name((enum r3ring_cause)cause),
			told_for(ledger, life, last, (enum r3ring_cause)cause),
			life->dropped[cause]);
	fprintf(stderr, "\n");
}

/* An engine that ended in good order knows why its steps were dropped. */
static uint64_t causes_wrong(const struct ledger *ledger, const struct kill_life *life,
			     uint64_t last)
{
	static const enum r3ring_cause causes[] = {R3RING_CAUSE_BUFFER_FULL,
						   R3RING_CAUSE_QUEUE_FULL, R3RING_CAUSE_TOO_BIG};
	uint64_t wrong = 0;

	for (unsigned int c = 0; life->ended && c < sizeof(causes) / sizeof(causes[0]); c++) {
		const uint64_t told = told_for(ledger, life, last, causes[c]);

		if (told == life->dropped[causes[c]])
			continue;
		fprintf(stderr,
			"kills: of steps lost for cause %u %" PRIu64 " were told, the engine "
			"dropped %" PRIu64 "\n",
			causes[c], told, life->dropped[causes[c]]);
		wrong++;
	}
	if (wrong)
		print_causes(ledger, life, last);
	return wrong;
}

/* ---- all ---------------------------------------------------------------- */

static void sum_up(struct kill_audit *audit, const struct ledger *ledger)
{
	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];

		audit->complete += generation->complete;
		audit->partial += generation->partial;
		for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
			audit->lost[cause] += generation->lost_steps[cause];
	}
}

/* Demoted, or a generation was gone before a reader could know of it. */
static bool missed_something(const struct ledger *ledger)
{
	for (unsigned int i = 0; i < ledger->count; i++) {
		if (ledger->generations[i].passed ||
		    (i && ledger->generations[i].number != ledger->generations[i - 1].number + 1))
			return true;
	}
	return false;
}

/* Which engine had which generation, and how each of these ended. */
static void print_generations(const struct kill_audit *audit, const struct ledger *ledger)
{
	for (unsigned int i = 0; i < audit->count; i++)
		fprintf(stderr,
			"kills: engine %u knew of generations %" PRIu64 " to %" PRIu64 ", %" PRIu64
			" steps%s\n",
			i, audit->lives[i].first_generation, audit->lives[i].last_generation,
			audit->lives[i].steps, audit->lives[i].ended ? ", ended" : "");
	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];

		fprintf(stderr,
			"kills: generation %" PRIu64 ": steps %" PRIu64 " to %" PRIu64 ", %" PRIu64
			" complete, %" PRIu64 " partial, closed for %" PRIu64 "\n",
			generation->number, generation->first_step, generation->newest_step,
			generation->complete, generation->partial, (uint64_t)generation->closed);
	}
}

int kill_audit_check(const struct ledger *ledger, void *ctx)
{
	struct kill_audit *audit = ctx;
	uint64_t wrong = 0;

	sum_up(audit, ledger);
	for (unsigned int i = 0; i < ledger->count; i++)
		wrong += ledger_double(&ledger->generations[i]);
	if (missed_something(ledger)) {
		audit->missed++;
		return wrong ? 1 : 0;
	}
	for (unsigned int i = 0; i < audit->count; i++) {
		const struct kill_life *life = &audit->lives[i];
		uint64_t last = last_generation(audit, ledger, i);

		wrong += ledger_engine_wrong(ledger, life->first_generation, last,
					     announced(ledger, life, last));
		wrong += causes_wrong(ledger, life, last);
	}
	if (wrong)
		print_generations(audit, ledger);
	return wrong ? 1 : 0;
}

bool kill_audit_agrees(const struct kill_reader *auditor, const struct kill_reader *reader)
{
	const struct kill_page *truth = auditor->page, *page = reader->page;
	/* Pair with the release in note_published(). */
	uint64_t count = r3ring_load_acquire_u64(&page->published_count);
	uint64_t known = r3ring_load_acquire_u64(&truth->published_count);
	bool agrees = true;

	for (uint64_t i = 0; i < count; i++) {
		for (uint64_t k = 0; k < known; k++) {
			if (truth->published[k].generation != page->published[i].generation ||
			    truth->published[k].units == page->published[i].units)
				continue;
			fprintf(stderr,
				"kills: %s reader saw %" PRIu64 " rows x layers published in "
				"generation %" PRIu64 ", the auditor %" PRIu64 "\n",
				kill_kind_name(reader->kind), page->published[i].units,
				page->published[i].generation, truth->published[k].units);
			agrees = false;
		}
	}
	return agrees;
}
