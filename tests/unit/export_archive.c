/* SPDX-License-Identifier: Apache-2.0 */
/* Archives as recorders write them, exported; and what is not exported: damaged ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/writer.h"
#include "tests/support/remove_dir.h"
#include "tests/unit/export_fixture.h"

static char archive[96];
static struct archive_writer *writer;
static int channel;

static void open_writer_with(struct archive_writer_options options)
{
	const uint8_t uuid[16] = {1};

	options.dir = archive;
	options.workers = 1;

	cr_assert_eq(archive_writer_open(&writer, &options, &trial.err), 0, "%s", trial.err.text);
	channel = archive_writer_channel(writer, "test/0");
	cr_assert_geq(channel, 0);
	cr_assert_eq(archive_writer_generation(writer, (uint16_t)channel, 1, uuid), 0);
}

/* Layers from @layer_end on are not kept; 0: all are. */
static void open_writer(uint32_t layer_end)
{
	open_writer_with((struct archive_writer_options){.layer_end = layer_end});
}

static void open_archive(void)
{
	trial_open();
	snprintf(archive, sizeof(archive), "%s-archive", trial.dir);
	open_writer(0);
	trial.options.format = "safetensors";
	trial.options.out = trial.out;
}

static void close_archive(void)
{
	if (writer)
		archive_writer_close(writer, NULL);
	remove_dir(archive);
	trial_close();
}

TestSuite(export_archive, .init = open_archive, .fini = close_archive);

static void record(void *ctx, const struct r3ring_view *view)
{
	(void)ctx;
	cr_assert_eq(archive_writer_record(writer, (uint16_t)channel, view), 0);
}

static void record_two(void)
{
	trial.feed.record = record;
	feed_schema(&trial.feed);
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
}

static void stop_recording(void)
{
	cr_assert_eq(archive_writer_close(writer, &trial.err), 0, "%s", trial.err.text);
	writer = NULL;
}

static int export_it(void)
{
	trial.err.text[0] = 0;
	return export_archive(archive, &trial.options, NULL, NULL, &trial.summary, &trial.err);
}

static void expect_two(void)
{
	trial_read();
	cr_assert_str_eq(safetensors_metadata(&trial.file, "request_ids"), "[\"a\",\"b\"]");
	for (uint32_t row = 0; row < 3; row++)
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
			cr_assert(trial_is("routes", row, layer, 1, row, layer));
			cr_assert(trial_is("routes", row + 4, layer, 3, row, layer));
		}
	safetensors_free(&trial.file);
}

Test(export_archive, what_was_recorded_comes_out)
{
	record_two();
	stop_recording();
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	expect_two();
}

Test(export_archive, what_a_recorder_lost_is_missing_for_that)
{
	const struct archive_gap gap = {
		.lost = 4, .from_seq = 3, .to_seq = 6, .cause = ARCHIVE_GAP_OVERRUN};
	const struct r3ring_span decode = trial_span(1, 2, 1);

	trial.feed.record = record;
	feed_schema(&trial.feed);
	feed_begin(&trial.feed, 1, "a", 2, 0);
	cr_assert_eq(archive_writer_gap(writer, (uint16_t)channel, &gap), 0);
	trial.feed.seq = 6;
	feed_whole(&trial.feed, 2, 1, &decode, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 4);
	stop_recording();
	cr_assert_eq(export_it(), -ENODATA);
	cr_assert_not_null(strstr(trial.err.text, "positions 0 to 1 of layer 0 are missing: gap"),
			   "%s", trial.err.text);
	cr_assert_eq(trial_files(), 0);
}

/* A request that began and ended in it left no trace but the place. */
Test(export_archive, failure_32_a_gap_is_told_with_its_channel_size_and_place)
{
	const struct archive_gap gap = {
		.lost = 40, .from_seq = 18, .to_seq = 57, .cause = ARCHIVE_GAP_OVERRUN};
	const struct export_losses *losses = &trial.summary.losses;

	trial.feed.record = record;
	feed_schema(&trial.feed);
	trial_request(1, "before", 1);
	cr_assert_eq(archive_writer_gap(writer, (uint16_t)channel, &gap), 0);
	trial.feed.seq += 40;
	trial_request(2, "behind", 30);
	stop_recording();
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_assert_eq(losses->gaps, 1);
	cr_assert_eq(losses->records, 40);
	cr_assert_eq(losses->unsized, 0);
	cr_assert_eq(losses->told, 1);
	cr_assert_str_eq(losses->gap[0].channel, "test/0");
	cr_assert_eq(losses->gap[0].cause, ARCHIVE_GAP_OVERRUN);
	cr_assert_eq(losses->gap[0].lost, 40);
	cr_assert_eq(losses->gap[0].step_before, 2);
	cr_assert_eq(losses->gap[0].step_after, 30);
	cr_assert(losses->gap[0].from_ns && losses->gap[0].from_ns <= losses->gap[0].to_ns);
	trial_read();
	cr_assert_str_eq(safetensors_metadata(&trial.file, "gaps"), "1");
	trial.options.request = (const char *[]){"within"};
	trial.options.requests = 1;
	cr_assert_eq(export_it(), -ENOENT);
	cr_assert_not_null(strstr(trial.err.text, "records were lost in 1 places"), "%s",
			   trial.err.text);
}

Test(export_archive, a_gap_of_unknown_size_is_counted_as_such)
{
	const struct archive_gap gap = {.from_seq = 18, .cause = ARCHIVE_GAP_STOPPED};

	record_two();
	cr_assert_eq(archive_writer_gap(writer, (uint16_t)channel, &gap), 0);
	stop_recording();
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_assert_eq(trial.summary.losses.gaps, 1);
	cr_assert_eq(trial.summary.losses.unsized, 1);
	cr_assert_eq(trial.summary.losses.gap[0].lost, 0);
	cr_assert_eq(trial.summary.losses.gap[0].step_after, 0);
}

static void expect_own(const char *name)
{
	char out[128];

	snprintf(out, sizeof(out), "%s/./%s", archive, name);
	trial.options.out = out;
	cr_assert_eq(export_it(), -EINVAL, "%s", name);
	cr_assert_not_null(strstr(trial.err.text, "is a file of the archive itself"), "%s",
			   trial.err.text);
}

Test(export_archive, nor_is_it_put_beside_them)
{
	char out[128];

	record_two();
	stop_recording();
	snprintf(out, sizeof(out), "%s/./new.safetensors", archive);
	trial.options.out = out;
	cr_expect_eq(export_it(), -EINVAL);
	cr_expect_not_null(strstr(trial.err.text, "is in the archive's own directory"), "%s",
			   trial.err.text);
	cr_expect_eq(access(out, F_OK), -1);
}

Test(export_archive, an_output_does_not_replace_the_archive_s_own_files)
{
	record_two();
	stop_recording();
	expect_own("00000001" ARCHIVE_SUFFIX);
	expect_own("00000017" ARCHIVE_SUFFIX);
	expect_own("index.sqlite");
	expect_own("index.sqlite-wal");
	expect_own(ARCHIVE_LOCK);
	trial.options.out = trial.out;
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	expect_two();
}

static void record_two_of_three_layers(void)
{
	stop_recording();
	remove_dir(archive);
	open_writer(2);
	record_two();
	stop_recording();
}

Test(export_archive, layers_that_were_not_recorded_are_counted_for_that_where_they_are_filled)
{
	record_two_of_three_layers();
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_assert_eq(trial.summary.filled[R3RING_MISSING_NOT_RECORDED], 8);
	cr_assert_eq(export_summary_filled(&trial.summary), 8);
	trial_read();
	cr_assert_str_eq(safetensors_metadata(&trial.file, "filled_by_cause"),
			 "{\"not_recorded\":8}");
}

Test(export_archive, a_trainer_of_all_layers_is_told_of_those_that_were_not_recorded)
{
	record_two_of_three_layers();
	trial.options.format = "miles";
	cr_assert_eq(export_it(), -ENODATA, "%s", trial.err.text);
	cr_assert_not_null(
		strstr(trial.err.text, "--format safetensors with --layers 0:2 takes those"), "%s",
		trial.err.text);
}

Test(export_archive, layers_that_were_not_recorded_are_missing_until_they_are_left_out)
{
	record_two_of_three_layers();
	cr_assert_eq(export_it(), -ENODATA);
	cr_assert_not_null(
		strstr(trial.err.text, "positions 0 to 3 of layer 2 are missing: not_recorded"),
		"%s", trial.err.text);
	cr_assert_not_null(strstr(trial.err.text, "(record --layers): --layers 0:2 takes those"),
			   "%s", trial.err.text);
	trial.options.layer_end = 2;
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], 2);
	for (uint32_t row = 0; row < 3; row++)
		cr_assert(trial_is("routes", row, 1, 1, row, 1));
}

Test(export_archive, only_the_instance_that_is_asked_for_is_exported)
{
	record_two();
	stop_recording();
	trial.options.instance = "tes";
	cr_assert_eq(export_it(), -ENOENT);
	cr_assert_not_null(strstr(trial.err.text,
				  "--instance tes: no channel of the archive is of it; there are "
				  "test"),
			   "%s", trial.err.text);
	trial.options.instance = "test";
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	expect_two();
}

Test(export_archive, what_ended_at_another_time_is_counted)
{
	record_two();
	stop_recording();
	trial.options.until_ns = 5;
	cr_assert_eq(export_it(), -ENOENT);
	cr_assert_not_null(strstr(trial.err.text, "2 ended at other times"), "%s", trial.err.text);
}

Test(export_archive, a_directory_without_an_archive_is_named)
{
	stop_recording();
	remove_dir(archive);
	cr_assert_eq(export_it(), -ENOENT);
	cr_assert_not_null(strstr(trial.err.text, archive), "%s", trial.err.text);
	cr_assert_eq(trial_files(), 0);
}

/* ---- damage ------------------------------------------------------------- */

static char *segment_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/00000001" ARCHIVE_SUFFIX, archive);
	return path;
}

static uint8_t *load_segment(size_t *bytes)
{
	struct stat there;
	int fd = open(segment_path(), O_RDONLY);
	uint8_t *content;

	cr_assert_eq(fstat(fd, &there), 0);
	*bytes = (size_t)there.st_size;
	content = malloc(*bytes);
	cr_assert_eq(read(fd, content, *bytes), (ssize_t)*bytes);
	close(fd);
	return content;
}

static void store_segment(const uint8_t *content, size_t bytes)
{
	int fd = open(segment_path(), O_WRONLY | O_TRUNC);

	cr_assert_eq(write(fd, content, bytes), (ssize_t)bytes);
	close(fd);
}

/* Several segments, the last request being @last. */
static void record_with(struct archive_writer_options options, uint32_t last)
{
	char id[16];

	stop_recording();
	remove_dir(archive);
	open_writer_with(options);
	trial.feed.record = record;
	feed_schema(&trial.feed);
	for (uint32_t i = 1; i <= last; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		trial_request(i, id, 2 * (uint64_t)i);
	}
	stop_recording();
}

static void record_segments(uint32_t last)
{
	record_with((struct archive_writer_options){.segment_bytes = 1 << 16}, last);
}

/* Until the first of them are gone. */
static void record_rotated(uint32_t last)
{
	record_with((struct archive_writer_options){.segment_bytes = 1 << 16,
						    .max_bytes = 1 << 17,
						    .rotate = true},
		    last);
}

Test(export_archive, segments_that_were_rotated_out_are_told)
{
	char gone[16];

	record_rotated(1500);
	trial.options.missing = EXPORT_FILL_MINUS_ONE; /* one may have begun before */
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	trial_read();
	cr_assert_lt(trial.summary.requests, 1500);
	cr_assert_geq(trial.summary.losses.rotated.segments, 1);
	cr_assert_gt(trial.summary.losses.rotated.from_ns, 0);
	cr_assert_eq(trial.summary.losses.gaps, 0);
	snprintf(gone, sizeof(gone), "%lu", trial.summary.losses.rotated.segments);
	cr_assert_str_eq(safetensors_metadata(&trial.file, "segments_rotated_out"), gone);
}

Test(export_archive, a_request_that_was_rotated_out_is_refused_with_the_likely_cause)
{
	record_rotated(1500);
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial.options.request = (const char *[]){"r1"};
	trial.options.requests = 1;
	cr_assert_eq(export_it(), -ENOENT);
	cr_assert(strstr(trial.err.text, "request 'r1' is not in the archive; "), "%s",
		  trial.err.text);
	cr_assert(strstr(trial.err.text, "were removed by the recorder (--rotate)"), "%s",
		  trial.err.text);
}

Test(export_archive, of_an_archive_that_did_not_rotate_nothing_is_told_of_it)
{
	record_two();
	stop_recording();
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_assert_eq(trial.summary.losses.rotated.segments, 0);
}

Test(export_archive, a_first_segment_that_was_lost_is_damage_and_was_not_rotated_out)
{
	char first[128];

	record_segments(1500);
	snprintf(first, sizeof(first), "%s/00000001.r3seg", archive);
	cr_assert_eq(unlink(first), 0);
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial.options.include |= EXPORT_INCLUDE_DAMAGED;
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_expect_eq(trial.summary.losses.damage.places, 1);
	cr_expect(strstr(trial.summary.losses.damage.first, "is not there, but 2 is"), "%s",
		  trial.summary.losses.damage.first);
	cr_expect_eq(trial.summary.losses.rotated.segments, 0);
}

Test(export_archive, a_last_segment_that_is_gone_is_told)
{
	char path[128], id[16];
	unsigned int newest = 0;

	stop_recording();
	remove_dir(archive);
	open_writer_with((struct archive_writer_options){.segment_bytes = 1 << 16});
	trial.feed.record = record;
	feed_schema(&trial.feed);
	for (unsigned int i = 0; i < 4000; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		trial_request(i + 1, id, 2 * i + 1);
	}
	stop_recording();
	cr_assert_eq(export_it(), 0, "%s", trial.err.text);
	cr_assert_eq(trial.summary.requests, 4000);
	do
		snprintf(path, sizeof(path), "%s/%08u" ARCHIVE_SUFFIX, archive, ++newest);
	while (!access(path, F_OK));
	cr_assert_gt(newest, 2, "one segment only");
	snprintf(path, sizeof(path), "%s/%08u" ARCHIVE_SUFFIX, archive, newest - 1);
	cr_assert_eq(unlink(path), 0);
	unlink(trial.out);
	cr_assert_eq(export_it(), -EBADMSG);
	cr_assert_not_null(strstr(trial.err.text, "was removed"), "%s", trial.err.text);
	cr_assert_eq(trial_files(), 0);
}

/* Whatever was done to it: refused, naming who says more, or exported right. */
static void expect_refused(const char *what, size_t at)
{
	int rc = export_it();

	cr_assert(rc < 0, "%s at %zu: exported", what, at);
	cr_assert(rc != -EBADMSG || strstr(trial.err.text, "r3ring verify"), "%s at %zu: %s", what,
		  at, trial.err.text);
	cr_assert_eq(trial_files(), 0, "%s at %zu", what, at);
}

/* Thousands of exports: with a sanitizer, or emulated, and beside others, they take minutes. */
Test(export_archive, with_any_byte_changed_it_is_refused, .timeout = 1200)
{
	uint8_t *content;
	size_t bytes;

	record_two();
	stop_recording();
	content = load_segment(&bytes);
	for (size_t at = 0; at < bytes; at++) {
		content[at] ^= 0x10;
		store_segment(content, bytes);
		expect_refused("changed", at);
		content[at] ^= 0x10;
	}
	free(content);
}

Test(export_archive, cut_anywhere_it_is_refused, .timeout = 120)
{
	uint8_t *content;
	size_t bytes;

	record_two();
	stop_recording();
	content = load_segment(&bytes);
	for (size_t end = 0; end < bytes; end += 7) {
		store_segment(content, end);
		expect_refused("cut", end);
	}
	free(content);
}
