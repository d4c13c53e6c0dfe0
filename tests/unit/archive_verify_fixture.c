/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/archive_verify.h"

#include <stdio.h>
#include <string.h>

#include "archive/index.h"

struct verify_trial verify_trial;
struct story *const verify_stories[] = {&verify_trial.story, &verify_trial.other};

static void note(void *ctx, const char *text)
{
	size_t len = strlen(verify_trial.problems);

	(void)ctx;
	snprintf(verify_trial.problems + len, sizeof(verify_trial.problems) - len, "%s\n", text);
}

struct archive_verified verify_all(void)
{
	const struct archive_verify_hooks hooks = {.problem = note};
	struct archive_verified verified;
	struct r3ring_error err = {0};

	verify_trial.problems[0] = '\0';
	cr_assert_eq(archive_verify(verify_trial.builder.dir, &hooks, &verified, &err), 0, "%s",
		     err.text);
	return verified;
}

void verify_begin(void)
{
	builder_open(&verify_trial.builder, 3);
	builder_segment(&verify_trial.builder);
	builder_ready(&verify_trial.builder);
	story_begin(&verify_trial.story, &verify_trial.builder, 0, "small/0");
	story_begin(&verify_trial.other, &verify_trial.builder, 1, "small/1");
	story_request(&verify_trial.story, 1, "a", 4);
}

void verify_lose_unheard(uint64_t steps, uint64_t rows)
{
	struct story *story = &verify_trial.story;
	const uint64_t before = story->seq;

	story->absent = true;
	story_lost(story, steps, rows, R3RING_CAUSE_RING_FULL);
	story->absent = false;
	builder_gap(&verify_trial.builder, 0, before + 1, story->seq, ARCHIVE_GAP_OVERRUN);
}

void verify_finish(void)
{
	struct r3ring_error err = {0};

	builder_segment_end(&verify_trial.builder, true);
	cr_assert_eq(archive_index_update(verify_trial.builder.dir, &err), 0, "%s", err.text);
}

void verify_tell_all(void)
{
	verify_begin();
	story_step(&verify_trial.story, 1, 0, 4);
	story_lost(&verify_trial.story, 2, 3, R3RING_CAUSE_BUFFER_FULL);
	story_keyframe(&verify_trial.story);
	builder_block(&verify_trial.builder, 0);
	story_step_begin(&verify_trial.story, 1, 4, 1);
	story_layer(&verify_trial.story, 0, 1);
	story_next_segment(verify_stories, 2);
	story_layer(&verify_trial.story, 1, 1);
	story_layer(&verify_trial.story, 2, 1);
	story_step_end(&verify_trial.story, 1);
	verify_trial.other.absent = true;
	story_request(&verify_trial.other, 3, "not here", 2);
	story_step(&verify_trial.other, 3, 0, 2);
	verify_trial.other.absent = false;
	builder_gap(&verify_trial.builder, 1, 2, 7, ARCHIVE_GAP_OVERRUN);
	story_step(&verify_trial.other, 3, 2, 1);
	story_keyframe(&verify_trial.story);
	story_keyframe(&verify_trial.other);
	story_next_segment(verify_stories, 2);
	story_end(&verify_trial.story, 1, 6);
	story_closed(&verify_trial.story);
	story_generation(&verify_trial.story, 2);
	story_request(&verify_trial.story, 1, "b", 1);
	story_step(&verify_trial.story, 1, 0, 1);
	story_keyframe(&verify_trial.story);
	verify_finish();
}

void verify_expect_problem(const char *what)
{
	struct archive_verified verified = verify_all();

	cr_expect_eq(verified.problems, 1, "%s: %lu\n%s", what, verified.problems,
		     verify_trial.problems);
	cr_expect(strstr(verify_trial.problems, what), "%s: %s", what, verify_trial.problems);
	builder_close(&verify_trial.builder);
}
