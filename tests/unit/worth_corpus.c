/* SPDX-License-Identifier: Apache-2.0 */
/* What the worth of reservation is measured on, from an archive. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/worth/corpus.h"
#include "tests/support/archive_story.h"

#define PROMPT 40u
#define DECODED 60u

static struct archive_builder builder;
static struct story story;

static void begin(void)
{
	builder_open(&builder, 0);
	builder_segment(&builder);
	story_begin(&story, &builder, 0, "test/0");
	builder_ready(&builder);
}

static void end(void)
{
	builder_close(&builder);
}

TestSuite(worth_corpus, .init = begin, .fini = end);

/* A prompt in one step, then a row a step. Returns the step of the prompt. */
static uint64_t run(uint64_t handle, uint32_t decoded)
{
	char id[16];
	uint64_t step;

	snprintf(id, sizeof(id), "r%u", (unsigned int)handle);
	story_request(&story, handle, id, PROMPT);
	story_step(&story, handle, 0, PROMPT);
	step = story.step;
	for (uint32_t i = 0; i < decoded; i++)
		story_step(&story, handle, PROMPT + i, 1);
	story_end(&story, handle, PROMPT + decoded + 1);
	return step;
}

static void expect_row(const struct corpus *corpus, uint32_t request, uint32_t row, uint64_t step,
		       uint32_t step_row)
{
	const uint16_t *ids =
		corpus->request[request].ids + (size_t)row * STORY_LAYERS * STORY_TOP_K;

	for (uint32_t layer = 0; layer < STORY_LAYERS; layer++) {
		for (uint32_t k = 0; k < STORY_TOP_K; k++)
			cr_assert_eq(ids[layer * STORY_TOP_K + k],
				     story_id(1, step, step_row, layer, k), "request %u, row %u",
				     request, row);
	}
}

Test(worth_corpus, an_archives_requests_begin_with_the_last_rows_of_their_prompts)
{
	struct r3ring_error err = {0};
	struct corpus corpus;
	uint64_t steps[4];

	for (uint32_t i = 0; i < 4; i++)
		steps[i] = run(i + 1, DECODED);
	run(5, 10); /* too short */
	builder_segment_end(&builder, true);
	cr_assert_eq(corpus_read(&corpus, builder.dir, &err), 0, "%s", err.text);
	cr_assert_eq(corpus.count, 4);
	cr_expect_eq(corpus.cells, STORY_LAYERS * STORY_EXPERTS);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_eq(corpus.request[i].rows, PROMPT_ROWS + DECODED);
		for (uint32_t row = 0; row < PROMPT_ROWS; row++)
			expect_row(&corpus, i, row, steps[i], PROMPT - PROMPT_ROWS + row);
		for (uint32_t row = 0; row < DECODED; row++)
			expect_row(&corpus, i, PROMPT_ROWS + row, steps[i] + 1 + row, 0);
	}
	corpus_free(&corpus);
}

Test(worth_corpus, an_archive_with_too_little_in_it_is_refused)
{
	struct r3ring_error err = {0};
	struct corpus corpus;

	run(1, DECODED);
	builder_segment_end(&builder, true);
	cr_expect_eq(corpus_read(&corpus, builder.dir, &err), -EINVAL);
	cr_expect(strstr(err.text, "fewer than four"));
	cr_expect_eq(corpus_read(&corpus, "/nowhere", &err), -ENOENT);
}
