/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a step that is open when its daemon ends, and told again by the generation that goes on. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/signature_fixture.h"

#define CAME (FEED_LAYERS - 1)

static void open_signatures(void)
{
	signature_open(NULL);
	signature_feed.engine_lives = true;
}

TestSuite(signature_again, .init = open_signatures, .fini = signature_close);

static void expect_missing(uint64_t missing, uint64_t part)
{
	const struct r3ring_signature_info *info = signature_get("a");

	cr_expect_eq(info->rows_missing, missing, "%lu missing, not %lu", info->rows_missing,
		     missing);
	cr_expect_eq(info->rows_in_part, part, "%lu in part, not %lu", info->rows_in_part, part);
}

/* A prompt of two by step 1, and of step 2, of two rows, the layers that came. */
static void run_and_cut(void)
{
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 0);

	feed_begin(&signature_feed, 1, "a", 2, 0);
	feed_computed(&signature_feed, 1, 1, 0, 2, NULL, 0);
	feed_step(&signature_feed, 2, 2, &span, 1, NULL, 0);
	feed_layers(&signature_feed, 2, 2, 0, CAME);
}

static void end_step(void)
{
	feed_step_end(&signature_feed, 2, (int32_t)CAME, R3RING_CAUSE_DAEMON_RESTART);
}

static void next_generation(uint16_t continues)
{
	feed_closed(&signature_feed);
	signature_feed.generation++;
	signature_feed.seq = 0;
	signature_feed.units = 0;
	signature_feed.continues = continues;
	feed_schema(&signature_feed);
	feed_begin(&signature_feed, 1, "a", 2, 0);
}

static void expect_whole(void)
{
	struct signature_expected expected = {0};

	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 2);
	signature_expect("a", &expected);
	expect_missing(0, 0);
}

Test(signature_again, become_whole_and_count_each_layer_once)
{
	run_and_cut();
	end_step();
	expect_missing(2, 2);
	next_generation(1);
	feed_computed(&signature_feed, 2, 1, 2, 2, NULL, 0);
	expect_whole();
	cr_expect_eq(signature_stats().rows_recomputed, 0);
	cr_expect_eq(signature_stats().rows_missing, 0);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 5);
	expect_whole();
}

Test(signature_again, so_do_those_that_a_killed_daemon_left)
{
	run_and_cut();
	feed_lost(&signature_feed, 2, 2, R3RING_CAUSE_DAEMON_RESTART, 0);
	next_generation(1);
	feed_computed(&signature_feed, 2, 1, 2, 2, NULL, 0);
	expect_whole();
}

Test(signature_again, so_do_those_of_tokens_that_keys_hold)
{
	const uint64_t key = 7;

	signature_feed.tokens_per_key = 2;
	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	run_and_cut();
	end_step();
	next_generation(1);
	feed_computed(&signature_feed, 2, 1, 2, 2, &key, 1);
	expect_whole();
}

/* Its first layers came again, and no more; then only what came now. */
Test(signature_again, stay_in_part_where_the_next_generation_lacks_a_layer_too)
{
	struct signature_expected expected = {0};

	run_and_cut();
	end_step();
	next_generation(1);
	run_and_cut();
	feed_step_end(&signature_feed, 2, (int32_t)CAME, R3RING_CAUSE_NOT_CAPTURED);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 2);
	memset(&expected.counts[R3RING_SIGNATURE_DECODE][CAME * SIGNATURE_EXPERTS], 0,
	       SIGNATURE_EXPERTS * sizeof(uint16_t));
	expected.rows[R3RING_SIGNATURE_DECODE] = 0;
	signature_expect("a", &expected);
	expect_missing(2, 2);
}

Test(signature_again, stay_in_part_where_the_next_generation_has_nothing_of_them)
{
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 0);

	run_and_cut();
	end_step();
	next_generation(1);
	feed_step(&signature_feed, 2, 2, &span, 1, NULL, 0);
	feed_lost(&signature_feed, 2, 2, R3RING_CAUSE_RING_FULL, 0);
	expect_missing(2, 2);
}

/* Another step over the same tokens is another pass. */
Test(signature_again, are_not_what_another_step_ran)
{
	run_and_cut();
	end_step();
	next_generation(1);
	feed_computed(&signature_feed, 3, 1, 2, 2, NULL, 0);
	expect_missing(2, 2);
	cr_expect_eq(signature_stats().rows_recomputed, 0);
}
