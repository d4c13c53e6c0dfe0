/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring plan of a recording, through the daemon and through an archive: the same map, and
 * the balance that the test works out by itself from the counts beside the recording.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/archive_story.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"
#include "tests/support/remove_dir.h"
#include "tests/support/terminal.h"

#define PHYSICAL 40
#define GPUS 8

static struct test_daemon daemon_a;
static struct command produce, recorder, tool;
static struct recording recording;
static char instance[32], dir[64];
static json_t *report;

static void start(void)
{
	snprintf(instance, sizeof(instance), "planned-%d", getpid());
	snprintf(dir, sizeof(dir), "/tmp/r3ring-planned-%d", getpid());
	test_daemon_start(&daemon_a, NULL);
}

static void finish(void)
{
	command_free(&produce);
	command_free(&recorder);
	command_free(&tool);
	recording_free(&recording);
	json_decref(report);
	remove_dir(dir);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

TestSuite(tools_plan, .init = start, .fini = finish);

static int plan(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, daemon_a.dir, args);
}

#define PLAN(...) plan((const char *[]){"plan", __VA_ARGS__, NULL})

static void load_report(void)
{
	json_decref(report);
	report = json_loads(tool.out, 0, NULL);
	cr_assert(report, "%s", tool.out);
}

static void record(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	command_start(&recorder, daemon_a.dir,
		      (const char *[]){"record", "--instance", instance, "-o", dir, "--until-idle",
				       "3", NULL});
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "500",
				       "--eplb-replicas", "8", NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
}

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* ---- the balance, worked out from the report's map and the recording's counts ------ */

static double ratio_of(const json_t *places, uint32_t layer)
{
	double gpu[GPUS] = {0}, most = 0, sum = 0;
	uint32_t replicas[256] = {0};

	cr_assert_eq(json_array_size(places), PHYSICAL);
	for (size_t p = 0; p < PHYSICAL; p++)
		replicas[json_integer_value(json_array_get(places, p))]++;
	for (size_t p = 0; p < PHYSICAL; p++) {
		size_t expert = (size_t)json_integer_value(json_array_get(places, p));

		gpu[p / (PHYSICAL / GPUS)] +=
			(double)recording.counts[layer * recording.experts + expert] /
			replicas[expert];
	}
	for (uint32_t g = 0; g < GPUS; g++) {
		sum += gpu[g];
		most = gpu[g] > most ? gpu[g] : most;
	}
	return most * GPUS / sum;
}

static void expect_balance(void)
{
	const json_t *planned = json_object_get(report, "planned");
	const json_t *map = json_object_get(report, "map");
	double sum = 0, worst = 0;

	for (uint32_t layer = 0; layer < recording.layers; layer++) {
		double ratio = ratio_of(
			json_array_get(json_object_get(map, "physical_to_logical"), layer), layer);

		cr_assert_float_eq(json_real_value(json_array_get(
					   json_object_get(planned, "max_to_mean"), layer)),
				   ratio, 1e-9, "layer %u", layer);
		sum += ratio;
		worst = ratio > worst ? ratio : worst;
	}
	cr_assert_float_eq(json_real_value(json_object_get(planned, "average")),
			   sum / recording.layers, 1e-9);
	cr_assert_float_eq(json_real_value(json_object_get(planned, "worst")), worst, 1e-9);
}

Test(tools_plan, a_recordings_plan_is_the_same_from_the_ring_and_from_an_archive)
{
	json_t *map;

	record();
	cr_assert_eq(PLAN("--archive", dir, "--gpus", "8", "--replicas", "40", "--json"), 0, "%s",
		     tool.err);
	load_report();
	cr_assert_eq(integer(json_object_get(report, "accounts"), "counted"),
		     (json_int_t)recording.rows * recording.layers);
	cr_assert_gt(integer(json_object_get(report, "today"), "epoch"), 0);
	cr_assert_gt(
		json_real_value(json_object_get(json_object_get(report, "today"), "average")),
		json_real_value(json_object_get(json_object_get(report, "planned"), "average")));
	expect_balance();
	map = json_incref(json_object_get(report, "map"));
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "8", "--replicas", "40", "--json"), 0,
		     "%s", tool.err);
	load_report();
	cr_assert(json_equal(map, json_object_get(report, "map")));
	json_decref(map);
	/* As text: two lines of balance, and the map. */
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "8", "--replicas", "40"), 0, "%s",
		     tool.err);
	cr_assert(strstr(tool.out, "\ntoday          40     8 "), "%s", tool.out);
	cr_assert(strstr(tool.out, "\nplanned        40     8 "), "%s", tool.out);
	cr_assert(strstr(tool.out, "\"physical_to_logical\":[["), "%s", tool.out);
}

Test(tools_plan, what_cannot_be_planned_is_refused_with_the_reason)
{
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "8", "--replicas", "40"), 3);
	cr_assert(strstr(tool.err, instance), "%s", tool.err);
	cr_assert_eq(PLAN("--archive", dir, "--gpus", "8", "--replicas", "40"), 1);
	cr_assert(strstr(tool.err, dir), "%s", tool.err);
	cr_assert_eq(PLAN("--instance", instance, "--replicas", "40"), 2);
	cr_assert(strstr(tool.err, "--gpus"), "%s", tool.err);
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "0", "--replicas", "40"), 2);
	cr_assert(strstr(tool.err, "--gpus: '0' is not a number from 1"), "%s", tool.err);
	cr_assert_eq(PLAN("--gpus", "8", "--replicas", "40"), 2);
	cr_assert(strstr(tool.err, "either --instance or --archive"), "%s", tool.err);
	cr_assert_eq(PLAN("--instance", "a", "--archive", "b", "--gpus", "8", "--replicas", "40"),
		     2);
	cr_assert(strstr(tool.err, "either --instance or --archive"), "%s", tool.err);
	cr_assert_eq(PLAN("--archive", dir, "--gpus", "8", "--replicas", "40", "--watch", "1"), 2);
	cr_assert(strstr(tool.err, "--watch is for an instance"), "%s", tool.err);
	cr_assert_eq(PLAN("--help"), 0);
	cr_assert(strstr(tool.out, "usage: r3ring plan"), "%s", tool.out);
}

Test(tools_plan, an_archive_of_steps_without_routes_is_no_load)
{
	struct archive_builder builder;
	struct story story;

	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_request(&story, 1, "a", 4);
	story_step_begin(&story, 1, 0, 4);
	story_step_end(&story, 4);
	builder_segment_end(&builder, true);
	cr_assert_eq(PLAN("--archive", builder.dir, "--gpus", "2", "--replicas", "64"), 1, "%s",
		     tool.out);
	cr_assert(strstr(tool.err, "has no step with routes"), "%s", tool.err);
	cr_assert_str_empty(tool.out);
	builder_close(&builder);
}

Test(tools_plan, to_a_terminal_no_map_is_printed_but_how_to_get_it)
{
	struct archive_builder builder;
	struct story story;
	char line[256];

	if (!terminal_possible())
		cr_skip_test("no tmux here: there is no terminal to look at");
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 4);
	builder_segment_end(&builder, true);
	snprintf(line, sizeof(line), "%s plan --archive %s --gpus 2 --replicas 1000; echo ended $?",
		 test_program("r3ring"), builder.dir);
	terminal_open(24, 100, "TERM=xterm");
	terminal_line(line);
	cr_expect(terminal_shows("\nended 0"), "%s", terminal_screen());
	cr_expect(strstr(terminal_screen(), "the map, as JSON, is for a file or a pipe"), "%s",
		  terminal_screen());
	cr_expect(!strstr(terminal_screen(), "physical_to_logical"), "%s", terminal_screen());
	terminal_close();
	builder_close(&builder);
}

Test(tools_plan, gpus_that_do_not_fit_are_told_and_the_newest_steps_can_be_had_alone)
{
	char said[80];

	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--model", "gpt-oss-20b",
				       "--text", "README.md", "--requests", "2", "--max-steps", "4",
				       NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	snprintf(said, sizeof(said), "channel %s/0: drained", instance);
	cr_assert(test_daemon_said(&daemon_a, said), "%s", daemon_a.log);
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "7", "--replicas", "40"), 2);
	cr_assert(strstr(tool.err, "take a multiple of the GPUs"), "%s", tool.err);
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "8", "--replicas", "24"), 2);
	cr_assert(strstr(tool.err, "at least one of each"), "%s", tool.err);
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "5", "--replicas", "40"), 0, "%s",
		     tool.err);
	cr_assert_eq(PLAN("--instance", instance, "--gpus", "8", "--replicas", "40", "--watch",
			  "0.3", "--window", "2"),
		     0, "%s", tool.err);
	cr_assert(strstr(tool.out, "; 2 steps of 1 channel"), "%s", tool.out);
}
