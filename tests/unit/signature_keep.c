/* SPDX-License-Identifier: Apache-2.0 */
/* What requests did goes to a history when they end. */
#include <criterion/criterion.h>

#include <errno.h>

#include <r3ring/predict.h>

#include "tests/unit/record_feed.h"

#define EXPERTS 8u
#define CELLS (FEED_LAYERS * EXPERTS)

static struct feed from;
static struct r3ring_history *history;

static void open_kept(void)
{
	cr_assert_eq(r3ring_history_create(&history, NULL, NULL), 0);
	feed_create_signatures(&from, NULL);
	cr_assert_eq(r3ring_signatures_keep(from.signatures, history), 0);
	from.experts = EXPERTS;
	feed_schema(&from);
}

static void close_kept(void)
{
	feed_destroy(&from);
	r3ring_history_destroy(history);
}

TestSuite(signature_keep, .init = open_kept, .fini = close_kept);

/* A prompt of two rows and a decoded one. */
static void run(uint64_t handle, const char *id, uint64_t step)
{
	const struct r3ring_span one = {.request = handle,
					.rows = 3,
					.accepted = R3RING_UNKNOWN_U32,
					.kind = R3RING_SPAN_COMPUTED};

	feed_begin(&from, handle, id, 2, 0);
	feed_whole(&from, step, 3, &one, 1);
}

/* What the only finished request of that class did. */
static int kept(const char *class_name, uint32_t counts[CELLS])
{
	const struct r3ring_known known = {
		.shape = {.layers = FEED_LAYERS, .experts = EXPERTS, .top_k = FEED_TOP_K},
		.history = history,
		.labels = {.class_name = class_name},
		.model = "small",
	};
	struct r3ring_evidence evidence;

	return r3ring_predict(R3RING_PREDICT_CLASS, &known, counts, &evidence, NULL);
}

Test(signature_keep, a_request_that_ends_is_kept_whole_with_what_was_said_of_it)
{
	const struct r3ring_labels code = {.class_name = "code"};
	uint32_t counts[CELLS], expected[CELLS] = {0};

	cr_assert_eq(r3ring_history_label(history, "a", &code), 0);
	run(1, "a", 1);
	cr_expect_eq(kept("code", counts), -ENODATA, "it runs still");
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 4);
	for (uint32_t row = 0; row < 3; row++) {
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				expected[layer * EXPERTS +
					 feed_id(0, 1, row, layer, k) % EXPERTS]++;
	}
	cr_assert_eq(kept("code", counts), 0);
	for (uint32_t i = 0; i < CELLS; i++)
		cr_expect_eq(counts[i], expected[i]);
}

Test(signature_keep, one_that_never_ended_or_never_ran_is_not)
{
	struct r3ring_history_stats stats;

	feed_begin(&from, 1, "none", 2, 0);
	feed_end(&from, 1, R3RING_END_ABORTED, 0, 0);
	run(2, "half", 1);
	feed_destroy(&from);
	from = (struct feed){0};
	r3ring_history_get_stats(history, &stats);
	cr_expect_eq(stats.added, 0);
	cr_expect_eq(stats.refused, 0);
}

/* A prompt that another machine ran, of which the step runs so many rows more. */
static void run_behind(uint64_t handle, const char *id, uint64_t step, uint32_t rows)
{
	const struct r3ring_span spans[] = {
		{.request = handle, .rows = 2, .kind = R3RING_SPAN_EXTERNAL},
		{.request = handle,
		 .position = 2,
		 .rows = rows,
		 .accepted = R3RING_UNKNOWN_U32,
		 .kind = R3RING_SPAN_COMPUTED}};

	feed_begin(&from, handle, id, 2, 0);
	feed_whole(&from, step, rows, spans, rows ? 2 : 1);
	feed_end(&from, handle, R3RING_END_FINISHED, 0, 2 + rows);
}

static uint64_t added(void)
{
	struct r3ring_history_stats stats;

	r3ring_history_get_stats(history, &stats);
	return stats.added;
}

Test(signature_keep, one_whose_rows_are_all_missing_is_not_and_one_that_only_decoded_is)
{
	run_behind(1, "none", 1, 0);
	cr_expect_eq(added(), 0);
	run_behind(2, "decoded", 2, 1);
	cr_expect_eq(added(), 1);
}

Test(signature_keep, one_whose_rows_all_lack_a_layer_is_with_the_others)
{
	const struct r3ring_span one = {.request = 1,
					.rows = 2,
					.accepted = R3RING_UNKNOWN_U32,
					.kind = R3RING_SPAN_COMPUTED};

	feed_begin(&from, 1, "a", 2, 0);
	feed_step(&from, 1, 2, &one, 1, NULL, 0);
	feed_layers(&from, 1, 2, 0, FEED_LAYERS - 1);
	feed_step_end(&from, 1, FEED_LAYERS - 1, R3RING_CAUSE_NOT_CAPTURED);
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 3);
	cr_expect_eq(added(), 1);
}

Test(signature_keep, the_history_that_was_named_last_has_them)
{
	struct r3ring_history *former = history;

	cr_assert_eq(r3ring_history_create(&history, NULL, NULL), 0);
	cr_assert_eq(r3ring_signatures_keep(from.signatures, history), 0);
	r3ring_history_destroy(former);
	run(1, "a", 1);
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 4);
	cr_expect_eq(added(), 1);
}

/* Its rows are known as far as they were read; a keyframe behind the gap names it no more. */
Test(signature_keep, a_request_whose_end_was_missed_says_so_and_teaches_nothing)
{
	const struct r3ring_labels code = {.class_name = "code"};
	struct r3ring_signature *signature;
	uint32_t counts[CELLS];

	cr_assert_eq(r3ring_history_label(history, "a", &code), 0);
	run(1, "a", 1);
	from.seq += 9;
	feed_keyframe(&from, 0);
	feed_schema(&from);
	cr_assert_eq(r3ring_signature_create(&signature), 0);
	cr_assert_eq(r3ring_signatures_get(from.signatures, "a", signature), 0);
	cr_expect_eq(r3ring_signature_get_info(signature)->flags,
		     R3RING_SIGNATURE_ENDED | R3RING_SIGNATURE_END_MISSED);
	cr_expect_eq(kept("code", counts), -ENODATA);
	r3ring_signature_free(signature);
}
