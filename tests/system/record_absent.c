/* SPDX-License-Identifier: Apache-2.0 */
/* Some ranks of an engine: status says which are not here; recorder, verify and report, which were
 * not recorded. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/command.h"
#include "tests/support/remove_dir.h"
#include "tests/support/step_rig.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define STEPS 5u

static struct step_rig rig;
static struct r3ring_producer *other;
static struct command tool;
static char archive[64], page[80];

static void start(void)
{
	snprintf(archive, sizeof(archive), "/tmp/r3ring-absent-%d", getpid());
	snprintf(page, sizeof(page), "%s.html", archive);
	step_rig_start(&rig, NULL, 3, 64, 2, 32);
	rig.options.coordinates.pp = (struct r3ring_coordinate){1, 2};
	step_rig_open(&rig);
}

static void finish(void)
{
	command_free(&tool);
	r3ring_producer_close(other);
	step_rig_close(&rig);
	remove_dir(archive);
	unlink(page);
}

TestSuite(record_absent, .init = start, .fini = finish, .timeout = 60);

static const char *run(const char *const *args)
{
	command_free(&tool);
	cr_assert_eq(command_run(&tool, rig.daemon.dir, args), 0, "%s: %s", args[0], tool.err);
	return tool.out;
}

/* What the recorder says at its end. */
static const char *record(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
		step_rig_step(&rig, 4);
	return run(
		ARGS("record", "--instance", rig.instance, "-o", archive, "--until-idle", "0.4"));
}

static void expect_says(const char *said, const char *what)
{
	cr_expect_not_null(strstr(said, what), "'%s' is not in: %s", what, said);
}

static const char *stage_0(void)
{
	static char words[160];

	snprintf(words, sizeof(words), "pipeline stage 0 of 2, counted from 0, of %s",
		 rig.instance);
	return words;
}

Test(record_absent, the_recorder_says_which_stage_it_did_not_record)
{
	const char *said = record();

	expect_says(said, "lost: nothing of these channels\nnot recorded: pipeline stage 0 of 2");
	expect_says(said, stage_0());
}

Test(record_absent, verify_says_that_only_what_was_recorded_is_true)
{
	json_t *told;

	record();
	run(ARGS("verify", archive));
	expect_says(tool.out, ": all that was recorded is true\n");
	expect_says(tool.out, stage_0());
	told = json_loads(run(ARGS("verify", archive, "--json")), 0, NULL);
	cr_expect_eq(
		json_integer_value(json_object_get(json_object_get(told, "not_recorded"), "ranks")),
		1);
	json_decref(told);
}

Test(record_absent, the_reports_page_says_which_stage_is_in_no_figure)
{
	char text[1 << 15];
	FILE *file;

	record();
	run(ARGS("report", archive, "-o", page));
	file = fopen(page, "r");
	cr_assert_not_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	expect_says(text, "every route that was to be recorded for these requests is here");
	expect_says(text, stage_0());
}

Test(record_absent, of_a_whole_engine_nothing_is_said)
{
	struct r3ring_producer_options options = rig.options;

	options.rank = 1;
	options.coordinates.pp.index = 0;
	other = step_rig_open_channel(&rig, &options, NULL);
	expect_says(record(), "lost: nothing\n");
	cr_expect_null(strstr(tool.out, "not recorded"), "%s", tool.out);
	expect_says(run(ARGS("verify", archive)), ": all of it is true\n");
}

Test(record_absent, a_stage_of_which_the_daemon_has_no_channel_is_named_by_status)
{
	char line[192];

	snprintf(line, sizeof(line), "\nno channel here: %s\n", stage_0());
	expect_says(run(ARGS("status")), line);
}
