/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies, its engine runs on alone and is gone before the next one comes. Whoever watched
 * says from then on that more may be lost, beside an engine that runs.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/system/metrics_stage.h"

static struct command top;

/* The beginning of the engine's line of a metric. */
static const char *of_engine(const char *metric)
{
	static char text[160];

	snprintf(text, sizeof(text), "\n%s{engine=\"%s\"} ", metric,
		 engine_instance(metrics.tool.daemon.dir, "prod"));
	return text;
}

static double unfollowed(void)
{
	return metrics_scraped(of_engine("r3ring_engine_ends_unfollowed"));
}

static void await_steps(unsigned int steps)
{
	metrics_await(of_engine("r3ring_load_cells_total"), steps * METRICS_ROWS * ENGINE_LAYERS);
}

static void stop(void)
{
	command_free(&top);
	metrics_stage_stop();
}

TestSuite(monitor_unfollowed, .init = metrics_stage_start, .fini = stop, .timeout = 120);

/* Both read what there is before anything happens to it. */
static void watch(void)
{
	metrics_serve((const char *[]){NULL});
	command_start(&top, metrics.tool.daemon.dir,
		      ARGS("top", "--jsonl", "--interval", "0.1", "--instance",
			   engine_instance(metrics.tool.daemon.dir, "prod")));
	metrics_run(1);
	await_steps(1);
	cr_assert(command_prints(&top, "\"state\":\"live\",\"error\":\"\",\"records\"", 1));
}

Test(monitor_unfollowed, an_end_of_which_only_the_engine_knew_what_came_behind_it_is_told_by_all)
{
	watch();
	cr_expect_eq(unfollowed(), 0);
	test_daemon_kill(&metrics.tool.daemon);
	engine_close(&metrics.tool.engine);
	test_daemon_restart(&metrics.tool.daemon, NULL);
	tool_stage_open(&metrics.tool, "prod");
	metrics_await(of_engine("r3ring_engine_ends_unfollowed"), 1);
	cr_expect(command_prints(&top, "\"ends_unfollowed\":1,\"recent\"", 1), "of what is lost");
	cr_expect(command_prints(&top, "\"ends_unfollowed\":1}", 1), "of who is followed");
}

/* Its next generation says what it ran. */
Test(monitor_unfollowed, one_whose_engine_comes_back_is_none)
{
	watch();
	test_daemon_kill(&metrics.tool.daemon);
	test_daemon_restart(&metrics.tool.daemon, NULL);
	metrics_run(1);
	await_steps(2);
	cr_expect_eq(unfollowed(), 0);
	command_interrupt(&top);
	cr_expect_null(strstr(top.out, "\"ends_unfollowed\":1"), "%s", top.out);
}
