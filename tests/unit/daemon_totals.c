/* SPDX-License-Identifier: Apache-2.0 */
/* What an ended step adds to a generation's totals. */
#include <criterion/criterion.h>

#include "capture_daemon/totals.h"

#define LAYERS 3u
#define STEP 7u
#define ROWS 10u

static struct r3ring_totals totals;
static struct r3ring_lost_record lost;
static struct r3ring_missing_layer missing[LAYERS];

TestSuite(daemon_totals);

static struct r3ring_record ended(uint32_t count, uint16_t cause)
{
	struct r3ring_record record = {.type = R3RING_STEP_END};

	for (uint32_t i = 0; i < count; i++)
		missing[i] = (struct r3ring_missing_layer){.cause = cause};
	record.u.step_end.head = (struct r3ring_step_end_record){.step = STEP, .missing = count};
	record.u.step_end.missing = missing;
	return record;
}

static void add(uint32_t count, uint16_t cause)
{
	const struct r3ring_record record = ended(count, cause);

	totals_add_end(&totals, &record, ROWS, LAYERS);
}

Test(daemon_totals, a_whole_step_adds_its_rows_in_every_layer)
{
	add(0, 0);
	cr_expect_eq(totals.steps_complete, 1);
	cr_expect_eq(totals.steps_partial, 0);
	cr_expect_eq(totals.rows, ROWS);
	cr_expect_eq(totals.layer_rows, ROWS * LAYERS);
	cr_expect_eq(totals.layers_missing, 0);
}

Test(daemon_totals, a_step_that_lacks_a_layer_adds_its_rows_in_the_others)
{
	add(1, R3RING_CAUSE_NOT_CAPTURED);
	cr_expect_eq(totals.steps_partial, 1);
	cr_expect_eq(totals.rows, ROWS);
	cr_expect_eq(totals.layer_rows, ROWS * (LAYERS - 1));
	cr_expect_eq(totals.layers_missing, 1);
}

Test(daemon_totals, a_step_of_which_no_layer_came_adds_no_row)
{
	add(LAYERS, R3RING_CAUSE_NOT_CAPTURED);
	cr_expect_eq(totals.steps_partial, 1);
	cr_expect_eq(totals.rows, 0);
	cr_expect_eq(totals.layer_rows, 0);
	cr_expect_eq(totals.layers_missing, LAYERS);
}

Test(daemon_totals, rows_that_a_death_cut_are_not_counted_as_having_come)
{
	add(1, R3RING_CAUSE_PRODUCER_DIED);
	cr_expect_eq(totals.steps_partial, 1);
	cr_expect_eq(totals.rows, 0);
	cr_expect_eq(totals.layer_rows, ROWS * (LAYERS - 1));
}

Test(daemon_totals, what_a_death_cut_is_lost_in_the_layers_that_it_cut)
{
	const struct r3ring_record record = ended(2, R3RING_CAUSE_PRODUCER_DIED);

	missing[1].cause = R3RING_CAUSE_NOT_CAPTURED;
	cr_expect(totals_add_cut(&lost, &record, ROWS));
	cr_expect(totals_add_cut(&lost, &record, ROWS));
	cr_expect_eq(lost.from_step, STEP);
	cr_expect_eq(lost.to_step, STEP);
	cr_expect_eq(lost.steps, 2);
	cr_expect_eq(lost.rows, 2 * ROWS);
	cr_expect_eq(lost.layer_rows, 2 * ROWS);
}

Test(daemon_totals, a_step_that_lacks_layers_for_another_cause_is_not_lost)
{
	const struct r3ring_record record = ended(2, R3RING_CAUSE_TOO_FEW_ROWS);

	cr_expect_not(totals_add_cut(&lost, &record, ROWS));
	cr_expect_eq(lost.steps, 0);
}
