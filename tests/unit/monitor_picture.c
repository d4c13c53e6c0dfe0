/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon told, as a picture; and rates between two of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "monitor/daemon_picture.h"

static struct daemon_picture *picture_of(const char *json)
{
	json_t *status = json_loads(json, 0, NULL);
	struct daemon_picture *picture = daemon_picture_of(status);

	cr_assert_not_null(status);
	cr_assert_not_null(picture);
	json_decref(status);
	return picture;
}

/* One channel "a/0"; @more: fields of it. */
static struct daemon_picture *one_channel(uint64_t at_ns, unsigned int generation,
					  unsigned int steps, unsigned int lost)
{
	char json[512];
	struct daemon_picture *picture;

	snprintf(json, sizeof(json),
		 "{\"daemon\":{\"pid\":7},\"channels\":[{\"channel\":\"a/0\",\"uuid\":\"u%u\","
		 "\"generation\":%u,\"steps\":%u,\"rows\":%u,\"bytes\":%u,"
		 "\"ring\":{\"tail_seq\":%u},"
		 "\"lost\":{\"ring_full\":{\"steps\":%u,\"rows\":%u}}}]}",
		 generation, generation, steps, steps * 4, steps * 100, steps * 7, lost, lost * 4);
	picture = picture_of(json);
	picture->taken_ns = at_ns;
	return picture;
}

static void rates_of(struct daemon_picture *before, struct daemon_picture *now,
		     struct picture_rates *rates)
{
	picture_rates(before, now, &now->channels[0], rates);
	daemon_picture_put(before);
	daemon_picture_put(now);
}

Test(picture, a_channel_is_told_with_losses_layers_and_readers)
{
	struct daemon_picture *picture = picture_of(
		"{\"daemon\":{\"pid\":7,\"version\":\"0.1.0\",\"uptime_s\":9},\"channels\":["
		"{\"channel\":\"a/0\",\"model\":\"m\",\"state\":\"live\",\"generation\":3,"
		"\"producer_pid\":12,\"steps\":10,\"steps_partial\":1,\"last_step_age_ms\":250,"
		"\"bound_layers\":[3,4],\"unbound_layers\":[5],\"ring\":{\"tail_seq\":100},"
		"\"lost\":{\"ring_full\":{\"steps\":2,\"rows\":8},"
		"\"never_heard_of\":{\"steps\":5,\"rows\":20}},"
		"\"readers\":[{\"pid\":8,\"label\":\"trainer\",\"mode\":\"lossless\",\"lag_"
		"records\":3,"
		"\"lag_bytes\":192,\"got\":90,\"lost\":4,\"skipped\":1}]},"
		"{\"channel\":\"b/1\",\"lost\":{},\"last_step_age_ms\":null}]}");
	const struct picture_channel *a = daemon_picture_find(picture, "a/0");
	const struct picture_channel *b = daemon_picture_find(picture, "b/1");

	cr_assert_not_null(a);
	cr_assert_not_null(b);
	cr_expect_eq(picture->state, PICTURE_LIVE);
	cr_expect_eq(picture->pid, 7);
	cr_expect_str_eq(a->state, "live");
	cr_expect_eq(a->producer_pid, 12);
	cr_expect_eq(a->records, 100);
	cr_expect_eq(a->last_step_age_ms, 250);
	cr_expect_eq(a->bound_count, 2);
	cr_expect_eq(a->bound[1], 4);
	cr_expect_eq(a->unbound[0], 5);
	cr_expect_eq(a->lost.steps[R3RING_CAUSE_RING_FULL], 2);
	cr_expect_eq(a->lost.steps[R3RING_CAUSE_NONE], 5, "of a cause that has no name here");
	cr_expect_eq(a->lost.all_steps, 7);
	cr_expect_eq(a->lost.all_rows, 28);
	cr_expect_eq(a->reader_count, 1);
	cr_expect_eq(a->readers[0].pid, 8);
	cr_expect_str_eq(a->readers[0].label, "trainer");
	cr_expect(a->readers[0].lossless);
	cr_expect_eq(a->readers[0].cursor, 98, "98, 99 and 100 are not read yet");
	cr_expect_eq(a->readers[0].lost, 4);
	cr_expect_eq(b->last_step_age_ms, -1);
	cr_expect_eq(b->lost.all_steps, 0);
	cr_expect_null(daemon_picture_find(picture, "c/0"));
	daemon_picture_put(picture);
}

/* From 100 to 150 steps in two seconds. */
Test(picture_rates, rates_are_differences_over_the_time_between)
{
	struct picture_rates rates;

	rates_of(one_channel(1000000000, 1, 100, 3), one_channel(3000000000, 1, 150, 5), &rates);
	cr_expect(rates.known);
	cr_expect_eq(rates.seconds, 2);
	cr_expect_eq(rates.steps, 25);
	cr_expect_eq(rates.rows, 100);
	cr_expect_eq(rates.records, 175);
	cr_expect_eq(rates.bytes, 2500);
	cr_expect_eq(rates.lost_steps, 1);
	cr_expect_eq(rates.lost_in_between.steps[R3RING_CAUSE_RING_FULL], 2);
	cr_expect_eq(rates.lost_in_between.all_rows, 8);
}

Test(picture_rates, a_new_generation_has_no_rate_yet)
{
	struct picture_rates rates;

	rates_of(one_channel(1000000000, 1, 100, 3), one_channel(3000000000, 2, 150, 5), &rates);
	cr_expect_not(rates.known);
	cr_expect_eq(rates.steps, 0);
}

Test(picture_rates, counts_that_went_back_give_no_rate)
{
	struct picture_rates rates;

	rates_of(one_channel(1000000000, 1, 100, 3), one_channel(3000000000, 1, 99, 3), &rates);
	cr_expect_not(rates.known);
	rates_of(one_channel(1000000000, 1, 100, 3), one_channel(3000000000, 1, 101, 2), &rates);
	cr_expect_not(rates.known);
}

Test(picture_rates, without_two_moments_there_is_none)
{
	struct picture_rates rates;

	rates_of(NULL, one_channel(3000000000, 1, 150, 5), &rates);
	cr_expect_not(rates.known);
	rates_of(one_channel(3000000000, 1, 100, 3), one_channel(3000000000, 1, 150, 5), &rates);
	cr_expect_not(rates.known);
}

/* A channel whose daemon died while its ring was full: what the ring lacks of the losses,
 * the engine has yet to bring to the next daemon. */
Test(picture, losses_that_a_new_daemon_does_not_know_yet_are_not_forgotten)
{
	struct daemon_picture *before = one_channel(1000000000, 1, 750, 500);
	struct daemon_picture *now = one_channel(2000000000, 1, 250, 3);
	const struct picture_channel *channel = &now->channels[0];

	picture_carry_on(now, before);
	cr_expect_eq(channel->steps, 750);
	cr_expect_eq(channel->lost.steps[R3RING_CAUSE_RING_FULL], 500);
	cr_expect_eq(channel->lost.rows[R3RING_CAUSE_RING_FULL], 2000);
	cr_expect_eq(channel->lost.all_steps, 500);
	cr_expect_eq(channel->lost.all_rows, 2000);
	daemon_picture_put(before);
	daemon_picture_put(now);
}

Test(picture, another_generation_begins_with_its_own_losses)
{
	struct daemon_picture *before = one_channel(1000000000, 1, 750, 500);
	struct daemon_picture *now = one_channel(2000000000, 2, 250, 3);

	picture_carry_on(now, before);
	cr_expect_eq(now->channels[0].steps, 250);
	cr_expect_eq(now->channels[0].lost.steps[R3RING_CAUSE_RING_FULL], 3);
	daemon_picture_put(before);
	daemon_picture_put(now);
}
