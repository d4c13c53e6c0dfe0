/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of an archive that are not whole, as uploads in parts and full targets leave them. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/command.h"

#define NOWHERE "/nonexistent/r3ring"
#define PART 4096u /* bytes of an upload's parts */
#define SEGMENTS 3u
#define STEPS 40u /* of a segment */

static struct archive_builder builder;
static struct story story;
static struct story *const stories[] = {&story};
static struct builder_bytes whole[SEGMENTS];
static struct command tool;
static char out[96];

static int run(const char *const *args)
{
	command_free(&tool);
	return command_run(&tool, NOWHERE, args);
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})
#define EXPORT(...)                                                                                \
	RUN("export", builder.dir, "--format", "jsonl", "-o", out, "--missing", "-1", __VA_ARGS__)

static const char *segment(unsigned int number)
{
	char name[32];

	snprintf(name, sizeof(name), "%08u.r3seg", number);
	return builder_path(&builder, name);
}

/* A request in each segment, in blocks of a few steps; and its index. */
static void start(void)
{
	char id[16];

	builder_open(&builder, 0);
	builder.apart = true;
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "copied/0");
	for (unsigned int s = 1; s <= SEGMENTS; s++) {
		snprintf(id, sizeof(id), "in-%u", s);
		story_request(&story, s, id, 1);
		for (uint32_t i = 0; i < STEPS; i++) {
			story_step(&story, s, i, 1);
			if (i % 5 == 4)
				builder_block(&builder, 0);
		}
		story_end(&story, s, STEPS + 1);
		if (s < SEGMENTS)
			story_next_segment(stories, 1);
	}
	story_closed(&story);
	builder_segment_end(&builder, true);
	for (unsigned int s = 0; s < SEGMENTS; s++)
		whole[s] = builder_read(segment(s + 1));
	snprintf(out, sizeof(out), "%s.jsonl", builder.dir);
	cr_assert_eq(RUN("verify", builder.dir, "--reindex"), 0, "%s", tool.err);
}

static void stop(void)
{
	command_free(&tool);
	for (unsigned int s = 0; s < SEGMENTS; s++)
		free(whole[s].at);
	unlink(out);
	builder_close(&builder);
}

TestSuite(archive_copies, .init = start, .fini = stop, .timeout = 120);

/* It is told, with the file; nothing is exported unless that is asked for, and then what the
 * copy has; from the original it is whole again. */
static void expect_told(unsigned int number, unsigned int requests)
{
	const char *name = segment(number) + strlen(builder.dir) + 1;
	char told[sizeof(out) + 32];

	cr_expect_eq(RUN("verify", builder.dir), 1);
	/* What ends between two blocks shows at the segment behind it. */
	cr_expect(strstr(tool.err, name) || strstr(tool.err, "does not follow the segment before"),
		  "%s: %s", name, tool.err);
	cr_expect_eq(EXPORT("--json"), 1);
	cr_expect(strstr(tool.err, "--include damaged"), "%s", tool.err);
	cr_expect_lt(access(out, F_OK), 0);
	snprintf(told, sizeof(told), "%s: %u requests", out, requests);
	cr_expect_eq(EXPORT("--include", "damaged"), 0, "%s", tool.err);
	cr_expect(strstr(tool.err, told), "%s: %s", told, tool.err);
	cr_expect(strstr(tool.err, "the archive is damaged in 1 places"), "%s", tool.err);
	cr_expect_eq(unlink(out), 0);
	builder_write(segment(number), whole[number - 1].at, whole[number - 1].len);
	cr_expect_eq(RUN("verify", builder.dir), 0, "%s", tool.err);
}

/* Parts [0, part) came. */
static void expect_parts_told(unsigned int number, size_t part, unsigned int requests)
{
	cr_assert_lt(part * PART, whole[number - 1].len);
	builder_write(segment(number), whole[number - 1].at, part * PART);
	expect_told(number, requests);
}

Test(archive_copies, of_a_segment_that_came_in_part_the_others_are_exported)
{
	expect_parts_told(2, 1, 2);
	expect_parts_told(2, whole[1].len / PART, 2);
}

Test(archive_copies, of_a_segment_that_came_empty_the_others_are_exported)
{
	expect_parts_told(2, 0, 2);
}

Test(archive_copies, of_a_last_segment_that_came_in_part_what_there_is_can_be_closed)
{
	const size_t parts = whole[SEGMENTS - 1].len / PART;

	expect_parts_told(SEGMENTS, parts, 2);
	builder_write(segment(SEGMENTS), whole[SEGMENTS - 1].at, parts * PART);
	cr_expect_eq(RUN("verify", builder.dir, "--close"), 0, "%s", tool.err);
	cr_expect(strstr(tool.err, "bytes that were not whole are cut"), "%s", tool.err);
	cr_expect_eq(EXPORT("--include", "unfinished"), 0, "%s", tool.err);
	cr_expect(strstr(tool.err, "3 requests"), "%s", tool.err);
}

/* As a target that made the file first leaves a part that never came. */
Test(archive_copies, of_a_segment_with_a_part_of_zeros_what_is_behind_it_is_read)
{
	struct builder_bytes *copy = &whole[1];
	uint8_t *bytes = malloc(copy->len);

	memcpy(bytes, copy->at, copy->len);
	memset(bytes + PART, 0, PART);
	builder_write(segment(2), bytes, copy->len);
	free(bytes);
	expect_told(2, 3);
}

Test(archive_copies, a_segment_that_did_not_come_is_told_the_last_one_by_the_index)
{
	for (unsigned int number = 1; number <= SEGMENTS; number++) {
		cr_assert_eq(unlink(segment(number)), 0);
		expect_told(number, 2);
	}
}

Test(archive_copies, a_copy_without_its_index_gets_one)
{
	cr_assert_eq(unlink(builder_path(&builder, "index.sqlite")), 0);
	cr_expect_eq(RUN("verify", builder.dir), 1);
	cr_expect(strstr(tool.err, "--reindex"), "%s", tool.err);
	cr_expect_eq(EXPORT("--json"), 0, "%s", tool.err);
	cr_expect_eq(RUN("verify", builder.dir, "--reindex"), 0, "%s", tool.err);
}
