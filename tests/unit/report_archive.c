/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a small archive for a report: counts against those that the story's rule gives. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/page.h"
#include "tests/support/archive_story.h"

static struct archive_builder builder;
static struct story story, other;
static struct report report;
static struct report_options options;
static struct r3ring_error err;

static void begin(void)
{
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	options = (struct report_options){.table = 10};
}

static void finish(void)
{
	report_free(&report);
	builder_close(&builder);
}

TestSuite(report_archive, .init = begin, .fini = finish);

static int read_report(void)
{
	return report_read(&report, builder.dir, &options, NULL, NULL, &err);
}

static double expected[STORY_LAYERS][STORY_EXPERTS];

static void expect_step(uint64_t generation, uint64_t step, uint32_t rows)
{
	for (uint32_t layer = 0; layer < STORY_LAYERS; layer++)
		for (uint32_t row = 0; row < rows; row++)
			for (uint32_t k = 0; k < STORY_TOP_K; k++)
				expected[layer][story_id(generation, step, row, layer, k)]++;
}

static void expect_counts(void)
{
	cr_assert_eq(report.info.layers, STORY_LAYERS);
	cr_assert_eq(report.info.experts, STORY_EXPERTS);
	for (uint32_t layer = 0; layer < STORY_LAYERS; layer++)
		for (uint32_t e = 0; e < STORY_EXPERTS; e++)
			cr_assert_float_eq(report.info.counts[layer * STORY_EXPERTS + e],
					   expected[layer][e], 1e-9, "layer %u, expert %u", layer,
					   e);
}

/* The page as a text; to be freed. */
static char *page(void)
{
	const struct page_source source = {
		.archive = builder.dir, .title = "a <title>", .options = &options};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	cr_assert_eq(page_write(out, &report, &source, &err), 0, "%s", err.text);
	fclose(out);
	return text;
}

static void expect_not_on_page(const char *part)
{
	char *text = page();

	cr_expect_null(strstr(text, part), "\"%s\" is on the page", part);
	free(text);
}

static void expect_on_page(const char *part)
{
	char *text = page();

	cr_expect(strstr(text, part), "\"%s\" is not on the page; the reader said: %s", part,
		  report.problem[0] ? report.problem[0] : "nothing");
	free(text);
}

/* Two requests over two generations; the end of the first is in the second segment. */
static void tell(void)
{
	static struct story *const all[] = {&story};

	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 4);
	story_step(&story, 1, 4, 1);
	story_keyframe(&story);
	story_next_segment(all, 1);
	story_end(&story, 1, 6);
	story_closed(&story);
	story_generation(&story, 2);
	story_request(&story, 1, "b", 3);
	story_step(&story, 1, 0, 3);
	story_end(&story, 1, 4);
	builder_segment_end(&builder, true);
}

Test(report_archive, counts_are_those_of_all_steps_of_all_generations)
{
	tell();
	cr_assert_eq(read_report(), 0, "%s", err.text);
	expect_step(1, 1, 4);
	expect_step(1, 2, 1);
	expect_step(2, 1, 3);
	expect_counts();
	cr_assert_eq(report.accounts.counted, 8 * STORY_LAYERS);
	cr_assert_eq(report.coverage.requests, 2);
	cr_assert_eq(report.coverage.tokens, 10);
	cr_assert_eq(report.coverage.valid, 8 * STORY_LAYERS);
	cr_assert_eq(report.coverage.missing[R3RING_MISSING_NOT_FED], 2 * STORY_LAYERS);
	cr_assert_eq(report.problems, 0);
	cr_assert_str_eq(report.model, "a small model");
	expect_on_page("Nothing was lost");
	expect_on_page("<title>a &lt;title&gt;</title>");
}

/* Two of three layers. */
Test(report_archive, layers_that_were_not_to_be_recorded_are_told_and_are_no_loss)
{
	const uint64_t left = 8;

	builder_close(&builder);
	builder_open(&builder, 3);
	builder.layer_end = 3;
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	tell();
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.coverage.missing[R3RING_MISSING_NOT_RECORDED], left);
	cr_assert_eq(report.coverage.missing[R3RING_MISSING_GAP], 0);
	cr_assert_eq(report.accounts.lost[R3RING_MISSING_NOT_RECORDED], left);
	cr_assert_eq(report.accounts.gaps, 0);
	for (uint32_t i = 0; i < SERIES_PIECES; i++)
		cr_assert_eq(report.series.piece[i].lost, 0);
	expect_on_page("Nothing was lost: every route that was to be recorded");
	expect_on_page("Only layers 0 to 2 were recorded");
	expect_on_page("of others 8 cells");
	expect_on_page("<th scope=\"row\">not_recorded</th><td>8</td>");
}

/* An expert with most tokens; a single token, which is chance and farthest from even; all alike. */
Test(report_archive, layers_that_are_uneven_are_named_and_marked)
{
	char told[128];

	tell();
	cr_assert_eq(read_report(), 0, "%s", err.text);
	for (uint32_t e = 0; e < STORY_EXPERTS; e++) {
		report.load_counts[e] = e == 2 ? 1000 : 10;
		report.load_counts[STORY_EXPERTS + e] = e == 1;
		report.load_counts[2 * STORY_EXPERTS + e] = 1000;
	}
	snprintf(told, sizeof(told),
		 "Uneven: 1 of 3 layers (an expert with more than 2 times the mean, and more than "
		 "chance): layer 1 (%.2f).",
		 1000.0 * STORY_EXPERTS / (1000 + 10 * (STORY_EXPERTS - 1)));
	expect_on_page(told);
	expect_on_page("<tr class=\"layer uneven\"><th scope=\"row\">1 uneven</th>");
	expect_on_page("<tr class=\"layer\"><th scope=\"row\">2</th>");
	expect_on_page("<tr class=\"layer\"><th scope=\"row\">3</th>");
	report.load_counts[2] = 10;
	expect_on_page("No layer is uneven");
}

Test(report_archive, of_one_request_the_routes_alone_are_shown)
{
	static const char *const only[] = {"b"};

	tell();
	options.request = only;
	options.requests = 1;
	cr_assert_eq(read_report(), 0, "%s", err.text);
	expect_step(2, 1, 3);
	expect_counts();
	cr_assert_eq(report.coverage.requests, 1);
	cr_assert_eq(report.coverage.not_asked, 1);
	/* The last of its four tokens was never fed back. */
	cr_assert_float_eq(report.info.rows[0], 3, 1e-9);
	cr_assert_eq(report.accounts.counted, 8 * STORY_LAYERS, "the time line is of all");
}

Test(report_archive, a_request_or_an_instance_that_is_not_there_is_named)
{
	static const char *const only[] = {"a", "nosuch"};

	tell();
	options.request = only;
	options.requests = 2;
	cr_assert_eq(read_report(), -ENOENT);
	cr_assert(strstr(err.text, "'nosuch'"), "%s", err.text);
	report_free(&report);
	options.requests = 0;
	options.instance = "smal";
	cr_assert_eq(read_report(), -ENOENT);
	cr_assert(strstr(err.text, "'smal'"), "%s", err.text);
}

Test(report_archive, of_a_time_only_the_steps_in_it_are_shown)
{
	story_request(&story, 1, "a", 4);
	for (uint32_t i = 0; i < 8; i++) /* step s began at s ms */
		story_step(&story, 1, i, 1);
	builder_segment_end(&builder, true);
	options.since_ns = 3000000;
	options.until_ns = 6000000;
	cr_assert_eq(read_report(), 0, "%s", err.text);
	for (uint64_t step = 3; step < 6; step++)
		expect_step(1, step, 1);
	expect_counts();
	cr_assert_eq(report.accounts.counted, 3 * STORY_LAYERS);
	cr_assert_eq(report.series.first_ns, 3000000);
	cr_assert_eq(report.series.last_ns, 5000000);
}

Test(report_archive, what_was_lost_and_what_was_not_recorded_is_told_by_cause)
{
	story_request(&story, 1, "a", 8);
	story_step(&story, 1, 0, 4);
	story_lost(&story, 2, 3, R3RING_CAUSE_BUFFER_FULL);
	story.absent = true;
	story_step(&story, 1, 4, 2);
	story.absent = false;
	builder_gap(&builder, 0, 9, 13, ARCHIVE_GAP_OVERRUN);
	story_keyframe(&story);
	story_step(&story, 1, 6, 2);
	story_end(&story, 1, 8);
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.counts.lost.steps[R3RING_CAUSE_BUFFER_FULL], 2);
	cr_assert_eq(report.counts.gap_records[ARCHIVE_GAP_OVERRUN], 5);
	cr_assert_eq(page_lost_cells(&report.coverage), 2 * STORY_LAYERS);
	expect_on_page("id=\"losses-state\">Lost: 6 of 24 cells");
	expect_on_page("buffer_full: 2 steps (3 rows)");
	expect_on_page("not recorded, overrun: 5 records in 1 gaps");
}

/* The recorder came when the generation's beginning was overwritten. */
Test(report_archive, steps_in_front_of_a_first_keyframe_are_told)
{
	story.absent = true;
	story_generation(&story, 2);
	story.absent = false;
	builder_gap(&builder, 0, 1, 1, ARCHIVE_GAP_LATE);
	story_step(&story, 1, 0, 2);
	story_step(&story, 1, 2, 1);
	story_keyframe(&story);
	story_request(&story, 2, "b", 3);
	story_step(&story, 2, 0, 3);
	story_end(&story, 2, 4);
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.accounts.counted, 3 * STORY_LAYERS);
	cr_assert_eq(report.steps_unknown, 2);
	expect_on_page("as they came in front of a first keyframe: 2 steps");
}

Test(report_archive, requests_that_do_not_fit_into_the_memory_are_given_up_and_told)
{
	tell();
	options.max_bytes = 2200;
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.coverage.evicted, 2);
	expect_on_page("2 too large for the memory (<code>--max-memory</code>)");
	expect_on_page("id=\"memory-state\">2 of ");
}

Test(report_archive, a_request_that_is_given_up_is_counted_once_however_often_it_is_said_again)
{
	story_request(&story, 1, "a", 8);
	for (uint32_t i = 0; i < 4; i++) {
		story_step(&story, 1, 2 * i, 2);
		story_keyframe(&story);
	}
	story_end(&story, 1, 8);
	story_request(&story, 2, "a", 1); /* another one, of the same name */
	story_step(&story, 2, 0, 1);
	story_end(&story, 2, 1);
	builder_segment_end(&builder, true);
	options.max_bytes = 1;
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.coverage.requests, 2);
	cr_assert_eq(report.coverage.evicted, 2);
	cr_assert_eq(report.coverage.unfinished, 0);
	expect_on_page("2 requests of ");
}

/* As where a recorder came to its --max-size. */
Test(report_archive, cells_that_the_archives_end_cuts_off_are_told_as_such)
{
	story_request(&story, 1, "a", 4);
	story_step(&story, 1, 0, 2);
	story_step_begin(&story, 1, 2, 2);
	story_layer(&story, 0, 2);
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_gt(report.coverage.missing[R3RING_MISSING_GAP], 0);
	expect_on_page("0 gaps in what was recorded: the cells of cause gap are of steps that the "
		       "beginning or the end of the archive cuts.");
}

/* Turns a byte of segment @number round, in its block. */
static void damage(const char *segment)
{
	const char *path = builder_path(&builder, segment);
	struct builder_bytes file = builder_read(path);

	file.at[file.len - 100] ^= 0x40;
	builder_write(path, file.at, file.len);
	free(file.at);
}

Test(report_archive, of_a_damaged_archive_what_can_be_read_is_shown_and_the_rest_is_named)
{
	tell();
	damage("00000002.r3seg");
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_gt(report.problems, 0);
	expect_step(1, 1, 4);
	expect_step(1, 2, 1);
	expect_counts();
	expect_on_page("The archive is damaged in ");
	expect_on_page("<li>segment 00000002.r3seg, byte 128: ");
	cr_assert_eq(report.coverage.unfinished, 1);
}

Test(report_archive, that_the_oldest_segments_were_rotated_out_is_shown)
{
	builder_close(&builder);
	builder_open(&builder, 3);
	builder.segment_flags = ARCHIVE_SEGMENT_ROTATES;
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	tell();
	unlink(builder_path(&builder, "00000001.r3seg"));
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.problems, 0);
	expect_on_page("id=\"rotated-state\">The oldest 1 segments were removed by the recorder");
}

Test(report_archive, that_the_oldest_segments_were_lost_is_no_rotation)
{
	builder_close(&builder);
	builder_open(&builder, 3);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	tell();
	unlink(builder_path(&builder, "00000001.r3seg"));
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report.problems, 1);
	expect_on_page("id=\"problems-state\"");
	expect_not_on_page("rotated-state");
}

Test(report_archive, another_model_is_refused_with_the_remedy)
{
	struct r3ring_layer_entry layer = {.layer_id = 1};
	struct r3ring_record schema = {.type = R3RING_SCHEMA};

	story_begin(&other, &builder, 1, "other/0");
	schema.u.schema.head = (struct r3ring_schema_record){.layers = 1,
							     .experts = 8,
							     .top_k = 2,
							     .max_rows = 64,
							     .rows_per_record = 64,
							     .clock = 1,
							     .generation = 1,
							     .model = "another"};
	schema.u.schema.layers = &layer;
	story_record(&other, &schema, 0, 0, 0);
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), -EPROTO);
	cr_assert(strstr(err.text, "--instance"), "%s", err.text);
}

Test(report_archive, an_archive_without_routes_is_told_to_have_none)
{
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), -ENODATA);
	cr_assert(strstr(err.text, "no route"), "%s", err.text);
}

Test(report_archive, ids_of_strangers_are_text_on_the_page)
{
	story_request(&story, 1, "<script>&\"'\xff\xe2\x80\xae", 4);
	story_step(&story, 1, 0, 4);
	story_end(&story, 1, 5);
	builder_segment_end(&builder, true);
	cr_assert_eq(read_report(), 0, "%s", err.text);
	expect_on_page("<bdi>&lt;script&gt;&amp;&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd</bdi>");
}

Test(report_archive, a_plan_of_gpus_is_shown_beside_what_is)
{
	const struct r3ring_eplb_options place = {
		.size = sizeof(place), .physical = STORY_EXPERTS + 24, .gpus = 8};

	tell();
	cr_assert_eq(read_report(), 0, "%s", err.text);
	cr_assert_eq(report_place(&report, &place, &err), 0, "%s", err.text);
	cr_assert(!report.placing.captured);
	cr_assert(report.placing.today);
	expect_on_page("Planned: 1024 physical experts of a layer on 8 GPUs. Today, assumed:");
}
