/* SPDX-License-Identifier: Apache-2.0 */
/* What the account of a channel's steps must be. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/engine.h"
#include "tests/support/ledger.h"

#define ALL_LAYERS ((1u << ENGINE_LAYERS) - 1)
#define SHOWN 5 /* steps that are not right */

bool ledger_step_fits(const struct ledger_step *step)
{
	if (step->announced > 1 || step->complete + step->partial + step->lost > 1)
		return false;
	if (step->torn)
		return true;
	if (step->complete && step->layers != ALL_LAYERS)
		return false;
	if (step->partial &&
	    (step->layers & step->missing || (step->layers | step->missing) != ALL_LAYERS))
		return false;
	return true;
}

static bool is_right(const struct ledger *ledger, uint64_t number)
{
	unsigned int complete = 0;
	bool told = false;

	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_step *step = &ledger->generations[i].steps[number];

		if (!ledger_step_fits(step))
			return false;
		complete += step->complete;
		told |= step->complete || step->partial || step->lost;
	}
	return told && complete <= 1;
}

static void show(const struct ledger *ledger, uint64_t number)
{
	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_step *step = &ledger->generations[i].steps[number];

		fprintf(stderr,
			"ledger: step %" PRIu64 " in generation %" PRIu64 ": announced %u, "
			"complete %u, partial %u, lost %u, layers %#x, missing %#x\n",
			number, ledger->generations[i].number, step->announced, step->complete,
			step->partial, step->lost, step->layers, step->missing);
	}
}

uint64_t ledger_unaccounted(const struct ledger *ledger, uint64_t steps)
{
	uint64_t count = 0;

	for (uint64_t step = 1; step <= steps && step <= LEDGER_STEPS; step++) {
		if (is_right(ledger, step))
			continue;
		if (count++ < SHOWN)
			show(ledger, step);
	}
	return count;
}

static void show_step(const char *what, uint64_t number, const struct ledger_step *step)
{
	fprintf(stderr,
		"ledger: step %" PRIu64 " %s: announced %u, complete %u, partial %u, lost %u, "
		"layers %#x, missing %#x\n",
		number, what, step->announced, step->complete, step->partial, step->lost,
		step->layers, step->missing);
}

uint64_t ledger_double(const struct ledger_generation *generation)
{
	uint64_t count = 0;

	for (uint64_t number = 1; number <= generation->newest_step; number++) {
		const struct ledger_step *step = &generation->steps[number];

		if (ledger_step_fits(step))
			continue;
		if (count++ < SHOWN)
			show_step("has two fates", number, step);
	}
	return count;
}

uint64_t ledger_untold(const struct ledger_generation *generation, uint64_t steps)
{
	uint64_t untold = 0;

	for (uint64_t number = 1; number <= steps && number <= LEDGER_STEPS; number++) {
		const struct ledger_step *step = &generation->steps[number];

		if (step->complete || step->partial || step->lost)
			continue;
		if (untold++ < SHOWN && !generation->vague_steps)
			show_step("has no fate", number, step);
	}
	return untold > generation->vague_steps ? untold - generation->vague_steps
						: generation->vague_steps - untold;
}

/* ---- of one engine ------------------------------------------------------ */

/* What its generations say of one step together. */
static struct ledger_step sum_of(const struct ledger *ledger, uint64_t first, uint64_t last,
				 uint64_t number)
{
	struct ledger_step sum = {0};

	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_step *step = &ledger->generations[i].steps[number];

		if (ledger->generations[i].number < first || ledger->generations[i].number > last)
			continue;
		sum.complete += step->complete;
		sum.partial += step->partial;
		sum.lost += step->lost;
		sum.announced += step->announced;
	}
	return sum;
}

uint64_t ledger_engine_wrong(const struct ledger *ledger, uint64_t first, uint64_t last,
			     uint64_t steps)
{
	uint64_t wrong = 0, untold = 0, untold_rows = 0, vague = 0, vague_rows = 0;

	for (uint64_t number = 1; number <= steps && number <= LEDGER_STEPS; number++) {
		const struct ledger_step sum = sum_of(ledger, first, last, number);

		if (sum.complete > 1 && wrong++ < SHOWN)
			show_step("came whole twice", number, &sum);
		if (sum.complete || sum.partial || sum.lost)
			continue;
		untold++;
		untold_rows += ledger->rows_of ? ledger->rows_of(number) : 0;
	}
	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_generation *generation = &ledger->generations[i];

		if (generation->number < first || generation->number > last)
			continue;
		vague += generation->vague_steps;
		vague_rows += generation->vague_rows;
	}
	if (untold == vague && (!ledger->rows_of || untold_rows == vague_rows))
		return wrong;
	fprintf(stderr,
		"ledger: generations %" PRIu64 " to %" PRIu64 ": of %" PRIu64 " steps %" PRIu64
		" (%" PRIu64 " rows) were not told of, %" PRIu64 " (%" PRIu64
		" rows) were lost in ranges of more\n",
		first, last, steps, untold, untold_rows, vague, vague_rows);
	return wrong + 1;
}
