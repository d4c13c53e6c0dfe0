/* SPDX-License-Identifier: Apache-2.0 */
/* Who tells what channels lost: exports, reports of a time, archives without some layers. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/export/export.h"
#include "report/report.h"
#include "tests/unit/archive_verify.h"
#include "tools/export.h"

#define FULL R3RING_CAUSE_RING_FULL

static struct story *const story = &verify_trial.story;

static void expect(const struct lost_account *lost, uint64_t steps, uint64_t unheard,
		   uint64_t unproved)
{
	cr_expect_eq(lost->steps[FULL], steps, "%lu", lost->steps[FULL]);
	cr_expect_eq(lost->unheard_steps[FULL], unheard, "%lu", lost->unheard_steps[FULL]);
	cr_expect_eq(lost->unproved, unproved, "%lu", lost->unproved);
}

static void expect_words(char *text, const char *words)
{
	cr_expect_not_null(strstr(text, words), "\"%s\" is not in: %s", words, text);
	free(text);
}

/* ---- a report ----------------------------------------------------------- */

static struct lost_account report_account(const struct report_options *options)
{
	struct report report;
	struct r3ring_error err;
	struct lost_account lost;

	cr_assert_eq(report_read(&report, verify_trial.builder.dir, options, NULL, NULL, &err), 0,
		     "%s", err.text);
	lost = report.counts.lost;
	report_free(&report);
	return lost;
}

/* A keyframe of the asked time proves what of it fell into a gap, and nothing of what did so
 * before. */
Test(archive_losses_told, a_report_since_a_time_has_what_was_lost_from_then_on)
{
	struct report_options options = {.table = 10};
	struct lost_account lost;

	verify_begin();
	/* Blocks of about the time at which steps were run, a millisecond each. */
	verify_trial.builder.time_ns = 3000000;
	story_step(story, 1, 0, 4);
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	builder_block(&verify_trial.builder, 0);
	options.since_ns = verify_trial.builder.time_ns + 1;
	story_step(story, 1, 4, 1);
	story_keyframe(story);
	story_lost(story, 4, 40, FULL);
	verify_lose_unheard(5, 55);
	story_keyframe(story);
	verify_lose_unheard(6, 66);
	verify_finish();
	lost = report_account(&options);
	expect(&lost, 9, 5, 1);
	cr_expect_eq(lost.rows[FULL], 95);
	options = (struct report_options){.table = 10, .until_ns = options.since_ns};
	lost = report_account(&options);
	expect(&lost, 5, 3, 0);
	builder_close(&verify_trial.builder);
}

/* ---- an export ---------------------------------------------------------- */

/* What it says of losses. */
static char *export_words(void)
{
	char out[128];
	const struct export_options options = {.format = "safetensors", .out = out};
	struct export_summary summary;
	struct r3ring_error err;
	FILE *const was = stderr;
	char *text = NULL;
	size_t bytes = 0;

	snprintf(out, sizeof(out), "%s.safetensors", verify_trial.builder.dir);
	cr_assert_eq(export_archive(verify_trial.builder.dir, &options, NULL, NULL, &summary, &err),
		     0, "%s", err.text);
	unlink(out);
	stderr = open_memstream(&text, &bytes);
	export_print_losses(&summary.losses);
	fclose(stderr);
	stderr = was;
	return text;
}

/* A request that is whole, so that there is something to export. */
static void tell_whole_request(void)
{
	story_step(story, 1, 0, 4);
	story_end(story, 1, 5);
}

Test(archive_losses_told, an_export_says_what_is_known_by_totals_only)
{
	verify_begin();
	tell_whole_request();
	story_lost(story, 2, 20, FULL);
	verify_lose_unheard(3, 33);
	story_keyframe(story);
	verify_finish();
	expect_words(export_words(),
		     "  lost by the channels: ring_full 5 steps (53 rows)\n"
		     "  of these told by totals only: ring_full 3 steps (33 rows): their records "
		     "fell into a gap\n");
	builder_close(&verify_trial.builder);
}

Test(archive_losses_told, an_export_says_at_least_where_no_keyframe_came)
{
	verify_begin();
	tell_whole_request();
	verify_lose_unheard(3, 33);
	verify_finish();
	expect_words(export_words(), "  lost by the channels: nothing that is known: behind 1 gaps "
				     "no keyframe came that would tell more\n");
	builder_close(&verify_trial.builder);
}

/* ---- of layers --------------------------------------------------------- */

/* The first two layers alone are recorded, and nobody has looked at the ids of the third. */
static void begin_with_layers(void)
{
	builder_open(&verify_trial.builder, 3);
	verify_trial.builder.layer_end = 3;
	builder_segment(&verify_trial.builder);
	builder_ready(&verify_trial.builder);
	story_begin(story, &verify_trial.builder, 0, "small/0");
	verify_trial.other = (struct story){0};
	story_request(story, 1, "a", 4);
	story_step(story, 1, 0, 4);
	story->totals.ids_missing += 7;
	story->totals.ids_out_of_range += 5;
}

Test(archive_losses_told, totals_of_layers_that_were_left_out_are_believed)
{
	struct lost_account lost;

	begin_with_layers();
	story_lost(story, 2, 20, FULL);
	story_keyframe(story);
	verify_lose_unheard(3, 33);
	story_keyframe(story);
	verify_finish();
	lost = verify_all().lost;
	cr_expect_str_empty(verify_trial.problems, "%s", verify_trial.problems);
	expect(&lost, 5, 3, 0);
	builder_close(&verify_trial.builder);
}

Test(archive_losses_told, other_totals_are_not_for_layers_that_were_left_out)
{
	begin_with_layers();
	story_lost(story, 2, 20, FULL);
	story->totals.lost_rows[FULL]++;
	story_keyframe(story);
	verify_finish();
	verify_expect_problem("lost_rows is 21, but by the records it is 20");
}

Test(archive_losses_told, totals_of_ids_of_layers_that_are_there_are_a_lie)
{
	verify_begin();
	story_step(story, 1, 0, 4);
	story->totals.ids_missing += 7;
	story_keyframe(story);
	verify_finish();
	verify_expect_problem("ids_missing is 7, but by the records it is 0");
}
