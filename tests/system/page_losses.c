/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of r3ring serve says was lost, in a real browser. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/system/page_stage.h"

TestSuite(page_losses, .init = page_stage_start, .fini = page_stage_stop);

Test(page_losses, what_is_known_to_be_lost_comes_before_what_may_be)
{
	page_five_steps();
	page_lose(1);
	expect_becomes("document.querySelector('#verdict-losses .more').textContent"
		       ".startsWith('1 step lost in the last ten seconds: too_big 1')");
	test_daemon_kill(&stage.tool.daemon);
	engine_close(&stage.tool.engine);
	test_daemon_restart(&stage.tool.daemon, NULL);
	expect_becomes("/too_big 1.*ran on without a daemon/.test(document.querySelector("
		       "'#verdict-losses .more').textContent)");
	/* And once it is not of the last ten seconds any more. */
	expect_becomes(WORD("losses") " === 'lost, perhaps more' && /too_big 1.*ran on without a "
				      "daemon/.test(document.querySelector('#verdict-losses .more')"
				      ".textContent)");
}

Test(page_losses, an_end_that_nobody_follows_is_told_beside_an_engine_that_runs)
{
	page_five_steps();
	expect_becomes(WORD("losses") " === 'nothing lost'");
	test_daemon_kill(&stage.tool.daemon);
	page_run(1);
	engine_close(&stage.tool.engine);
	test_daemon_restart(&stage.tool.daemon, NULL);
	tool_stage_open(&stage.tool, "prod");
	page_run(1);
	expect_becomes(
		WORD("losses") " === 'nothing that is known' && /more may be lost/.test("
			       "document.querySelector('#verdict-losses .more').textContent)"
			       " && document.querySelector('#channels tbody').rows.length === 1");
}

/* The page's clock stands still, so many ms after its beginning. */
static void set_clock(int ms)
{
	char script[128];

	snprintf(script, sizeof(script),
		 "window.began = window.began || performance.now();"
		 "performance.now = () => window.began + %d;",
		 ms);
	browser_run(&browser, script);
}

#define LOST "document.querySelector('#verdict-losses .more').textContent"
#define LOST_LATELY(row, column)                                                                   \
	"document.querySelector('#losses tbody').rows[" row "].cells[" column "].textContent"

Test(page_losses, what_is_lost_in_ten_seconds_is_added_up_a_burst_and_a_trickle)
{
	page_five_steps();
	expect_becomes(WORD("losses") " === 'nothing lost'");
	set_clock(0);
	page_lose(40);
	expect_becomes(LOST
		       ".startsWith('40 steps lost in the last ten seconds: too_big 40 (') && " LOST
		       ".endsWith('). 40 steps lost in this generation.')");
	set_clock(6000);
	page_lose(3);
	expect_becomes(LOST
		       ".startsWith('43 steps lost in the last ten seconds: too_big 43 (') && " LOST
		       ".endsWith('). 43 steps lost in this generation.')");
	expect_becomes(LOST_LATELY("0", "2") " === '43' && " LOST_LATELY("0", "4") " === '43'");
	/* Another stream, of the same engine, counts nothing twice. */
	browser_click(&browser, "#reset");
	expect_becomes(WORD("balance") " === 'no load'");
	set_clock(10001);
	expect_becomes(LOST
		       ".startsWith('3 steps lost in the last ten seconds: too_big 3 (') && " LOST
		       ".endsWith('). 43 steps lost in this generation.')");
	expect_becomes(LOST_LATELY("0", "2") " === '43' && " LOST_LATELY("0", "4") " === '3'");
	set_clock(16001);
	expect_becomes(
		WORD("losses") " === 'nothing just now' && " LOST
			       ".startsWith('43 steps lost in this generation: too_big 43')");
}

Test(page_losses, a_loss_is_seen_at_once_with_its_cause)
{
	int64_t step;

	page_five_steps();
	expect_becomes(WORD("losses") " === 'nothing lost'");
	step = engine_begin(&stage.tool.engine, 0, 4);
	engine_capture(&stage.tool.engine, step, 0, 4);
	engine_end(&stage.tool.engine);
	expect_becomes(WORD("losses") " === 'being lost'");
	expect_becomes("/[a-z_]+ \\d+/.test(document.querySelector('#verdict-losses .more')"
		       ".textContent)");
}

/* As where a rank died while no daemon ran: the next one does not list it. */
#define LOSSES_WORD(partial, before)                                                               \
	"lossesOf({}, {daemon: 'live', channels: [{lost: {}, ids_out_of_range: '0', "              \
	"steps_partial: " partial ", unbound_layers: [], state: 'live'}]}, " before ")[1]"

Test(page_losses, what_the_daemon_counts_no_more_or_came_in_part_is_lost_all_the_same)
{
	browser_run(&browser, "window.lately = {sum: () => ({})}; window.hasEnded = () => false;"
			      "window.stepsOf = (lost) => lost;"
			      "window.plural = (count, what) => `${count} ${what}s`;");
	cr_expect_eq(
		page_computes("losses.js", LOSSES_WORD("'0'", "true") " === 'nothing just now'"),
		1);
	cr_expect_eq(
		page_computes("losses.js", LOSSES_WORD("'2'", "false") " === 'nothing just now'"),
		1);
	cr_expect_eq(page_computes("losses.js", LOSSES_WORD("'0'", "false") " === 'nothing lost'"),
		     1);
}
