/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of r3ring serve calls out of balance: the same as all else does. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/balance.h"
#include "tests/system/page_stage.h"

TestSuite(page_balance, .init = page_stage_start, .fini = page_stage_stop);

Test(page_balance, chance_is_what_it_is_elsewhere)
{
	static const double means[] = {0, 0.01, 0.5, 3, 100, 1e6};
	static const uint32_t cells[] = {2, 32, 896};

	for (size_t i = 0; i < sizeof(means) / sizeof(*means); i++) {
		for (size_t j = 0; j < sizeof(cells) / sizeof(*cells); j++) {
			char call[64];
			double here = balance_chance(means[i], cells[j]);

			snprintf(call, sizeof(call), "chanceOf(%g, %u)", means[i], cells[j]);
			cr_expect_float_eq(page_computes("counts.js", call), here, here * 1e-9,
					   "%s", call);
		}
	}
}

Test(page_balance, a_layer_is_uneven_beyond_the_limit_and_beyond_chance)
{
	cr_expect_eq(page_computes("counts.js", "isUneven({mean: 1e6, ratio: 2}, 256, 2)"), 0);
	cr_expect_eq(page_computes("counts.js", "isUneven({mean: 1e6, ratio: 2.01}, 256, 2)"), 1);
	cr_expect_eq(page_computes("counts.js", "isUneven({mean: 1, ratio: 2.01}, 256, 2)"), 0);
}

static void expect_runs(const char *numbers, const char *words)
{
	char call[256];

	snprintf(call, sizeof(call), "asRuns([%s]) === '%s'", numbers, words);
	cr_expect_eq(page_computes("dom.js", call), 1, "%s", call);
}

Test(page_balance, layers_in_a_row_are_named_as_one)
{
	expect_runs("", "");
	expect_runs("7", "7");
	expect_runs("21, 2, 0, 1, 12, 11", "0 to 2, 11 to 12, 21");
	expect_runs("0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 19",
		    "0, 2, 4, 6, 8, 10, 12, 14 and 3 more");
}

/* By the rule that the engine makes its ids by, in steps of four rows. */
static bool is_visited(uint64_t steps, uint32_t layer, uint32_t expert)
{
	for (uint64_t step = 1; step <= steps; step++)
		for (uint32_t i = 0; i < 4 * ENGINE_TOP_K; i++)
			if (engine_id(step, layer, i / ENGINE_TOP_K, i % ENGINE_TOP_K) == expert)
				return true;
	return false;
}

/* Experts that are visited come to the first GPU, as many as it holds; or to each in turn. */
static void place(uint64_t steps, uint32_t layer, bool in_turn, uint16_t map[ENGINE_EXPERTS])
{
	uint32_t next[2] = {0, ENGINE_EXPERTS / 2}, placed = 0;

	for (int visited = 1; visited >= 0; visited--) {
		for (uint32_t expert = 0; expert < ENGINE_EXPERTS; expert++) {
			uint32_t gpu = in_turn ? placed % 2 : next[0] == ENGINE_EXPERTS / 2;

			if (is_visited(steps, layer, expert) != visited)
				continue;
			map[expert] = (uint16_t)next[gpu]++;
			placed++;
		}
	}
}

static void announce_map(uint64_t steps, bool in_turn)
{
	static uint16_t map[ENGINE_LAYERS][ENGINE_EXPERTS];
	const struct r3ring_eplb_record head = {.epoch = 7,
						.layers = ENGINE_LAYERS,
						.experts = ENGINE_EXPERTS,
						.replicas = 1,
						.physical = ENGINE_EXPERTS,
						.gpus = 2};

	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		place(steps, layer, in_turn, map[layer]);
	cr_assert_eq(r3ring_eplb(stage.tool.engine.producer, &head, &map[0][0]), 0);
	stage.tool.engine.eplb_epoch = 7;
}

static void show_gpus(uint64_t steps, bool in_turn)
{
	announce_map(steps, in_turn);
	page_serve((const char *[]){NULL});
	page_run((unsigned int)steps);
	page_look();
	expect_becomes("document.querySelectorAll('#gpus tbody tr').length === 2");
}

Test(page_balance, gpus_out_of_balance_are_said_on_top)
{
	show_gpus(1, false);
	expect_becomes(WORD("balance") " === 'GPUs out of balance'");
	expect_becomes("document.getElementById('verdict-balance').className === 'verdict warn'");
	expect_becomes("document.querySelector('#verdict-balance .more').textContent.includes("
		       "'GPUs out of balance: GPU 0 has 2.00 \u00d7 the mean of layer 3.')");
	expect_becomes("document.getElementById('gpus-says').className === 'note warn'");
}

Test(page_balance, gpus_in_balance_are_no_alarm)
{
	show_gpus(20, true);
	expect_becomes("document.querySelector('#verdict-balance .more').textContent.includes("
		       "'Of GPUs the worst: GPU ')");
	expect_becomes("!document.getElementById('verdicts').textContent.includes('GPUs out of')");
	expect_becomes("document.getElementById('gpus-says').className === 'note'");
}
