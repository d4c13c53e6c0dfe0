/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless readers of a channel that rather drops steps than wait or let go of its readers. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/channel_status.h"
#include "tests/system/lossless_stage.h"

Test(lossless_dropping, steps_dropped_for_a_full_ring_are_counted_exactly, .timeout = 120)
{
	struct reader_job lossless;
	const struct listener *seen;
	int64_t number;

	lossless_start((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS,
					"--lossless-policy", "drop", NULL});
	lossless = lossless_job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	seen = &keen.page->seen;
	lossless_flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	lossless_flood(8000);
	cr_expect_eq(lossless_figure("readers_demoted"), 0);
	reader_worker_go_on(&keen);
	lossless_flood(100);
	number = lossless_settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	lossless_expect_whole(keen.page, (uint64_t)number);
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_RING_FULL], 0);
	cr_expect_eq(seen->lost_rows[R3RING_CAUSE_RING_FULL],
		     ROWS * seen->lost_steps[R3RING_CAUSE_RING_FULL]);
	cr_expect_eq(seen->complete + seen->lost_steps[R3RING_CAUSE_RING_FULL] +
			     seen->lost_steps[R3RING_CAUSE_BUFFER_FULL] +
			     seen->lost_steps[R3RING_CAUSE_QUEUE_FULL],
		     (uint64_t)number);
	cr_expect_geq(seen->newest_step_end, (uint64_t)number);
	lossless_finish();
}

static const char *policy_of(const char *name)
{
	json_t *status = channel_status(daemon_a.dir, name);
	static char policy[16];

	snprintf(policy, sizeof(policy), "%s",
		 json_string_value(json_object_get(status, "lossless_policy")));
	json_decref(status);
	return policy;
}

Test(lossless_dropping, channels_that_a_pattern_names_drop_while_others_demote, .timeout = 60)
{
	struct r3ring_error err = {0};
	struct reader_job lossless;

	lossless_start((const char *[]){"--ring-size", "1M", "--stall-limit", STALL_MS,
					"--lossless-drop", "none/*," BASE "*/0", NULL});
	cr_assert_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, OTHER), 16,
				 &err),
		     0, "%s", err.text);
	cr_expect_str_eq(policy_of(channel_a), "drop");
	cr_expect_str_eq(policy_of(channel_b), "demote");
	lossless = lossless_job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	reader_worker_pause(&keen);
	lossless_flood(8000);
	cr_expect_eq(lossless_figure("readers_demoted"), 0);
	reader_worker_go_on(&keen);
	cr_assert_gt(lossless_settle(), 0);
	reader_worker_finish(&keen);
	cr_expect_gt(keen.page->seen.lost_steps[R3RING_CAUSE_RING_FULL], 0);
	lossless_finish();
}

static bool has_waited_in_vain(void)
{
	return lossless_figure("waited_for_readers_ms") >= 299;
}

/* Of the channel's status: what was lost to a full ring, and what is accounted for. */
static uint64_t lost_to_full_ring(uint64_t *accounted)
{
	json_t *status = channel_status(daemon_a.dir, channel_a);
	const char *cause;
	uint64_t full = 0;
	json_t *counts;

	*accounted = (uint64_t)json_integer_value(json_object_get(status, "steps_complete"));
	json_object_foreach (json_object_get(status, "lost"), cause, counts) {
		uint64_t steps = (uint64_t)json_integer_value(json_object_get(counts, "steps"));

		*accounted += steps;
		if (strcmp(cause, "ring_full") == 0)
			full = steps;
	}
	json_decref(status);
	return full;
}

/* Whether the status has what was lost up to @ctx, a uint64_t, as steps and by cause. */
static bool has_lost(const void *ctx)
{
	uint64_t accounted;

	return lost_to_full_ring(&accounted) >= *(const uint64_t *)ctx &&
	       accounted == (uint64_t)lossless_figure("steps");
}

Test(lossless_dropping, the_status_counts_dropped_steps_while_the_ring_is_full, .timeout = 60)
{
	const char *const args[] = {
		"--ring-size", "1M", "--stall-limit", STALL_MS, "--lossless-policy", "drop", NULL};
	struct reader_job lossless;
	uint64_t lost, accounted;

	lossless_start(args);
	lossless = lossless_job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	lossless_flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !has_waited_in_vain(); i++)
		lossless_flood(20);
	lost = 500;
	for (int i = 0; i < 100 && !has_lost(&lost); i++)
		lossless_flood(20);
	cr_assert(reader_worker_wait(has_lost, &lost, 5000));
	/* Another daemon counts them no less, and no more. */
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, args);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	cr_expect(reader_worker_wait(has_lost, &lost, 5000));
	reader_worker_go_on(&keen);
	cr_assert(reader_worker_accounts(&keen, (uint64_t)lossless_settle()));
	lost = lost_to_full_ring(&accounted);
	reader_worker_finish(&keen);
	cr_expect_eq(keen.page->seen.lost_steps[R3RING_CAUSE_RING_FULL], lost);
	cr_expect_eq(listener_accounted(&keen.page->seen), accounted);
	lossless_finish();
}

Test(lossless_dropping, a_daemons_death_while_it_drops_steps_leaves_their_cause, .timeout = 60)
{
	const char *const args[] = {
		"--ring-size", "1M", "--stall-limit", STALL_MS, "--lossless-policy", "drop", NULL};
	struct r3ring_producer_stats stats;
	struct reader_job lossless;
	const struct listener *seen;
	int64_t number;

	lossless_start(args);
	lossless = lossless_job(R3RING_LOSSLESS);
	reader_worker_start(&keen, &lossless);
	seen = &keen.page->seen;
	lossless_flood(10);
	cr_assert(reader_worker_accounts(&keen, 10));
	reader_worker_pause(&keen);
	for (int i = 0; i < 1000 && !has_waited_in_vain(); i++)
		lossless_flood(20);
	lossless_flood(1000);
	/* Twice: what the second finds noted it tells, too. */
	for (int i = 0; i < 2; i++) {
		test_daemon_kill(&daemon_a);
		test_daemon_restart(&daemon_a, args);
		cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	}
	reader_worker_go_on(&keen);
	number = lossless_settle();
	cr_assert(reader_worker_accounts(&keen, (uint64_t)number));
	reader_worker_finish(&keen);
	r3ring_producer_get_stats(engine_a.producer, &stats);
	cr_expect_gt(seen->lost_steps[R3RING_CAUSE_RING_FULL], 500);
	cr_expect_eq(seen->lost_steps[R3RING_CAUSE_QUEUE_FULL],
		     stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(seen->lost_steps[R3RING_CAUSE_BUFFER_FULL],
		     stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL]);
	cr_expect_eq(listener_accounted(seen), (uint64_t)number);
	cr_expect_eq(seen->wrong, 0);
	lossless_finish();
}
