/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a channel's pictures say that it has ended. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "monitor/ends.h"

#define S 1000000000ull

/* "a/0" of generation 3, all of whose 100 records were read; come to after a second. */
static const struct ends_channel read_whole = {
	.name = "a/0", .generation = 3, .next = 101, .since_ns = S};

/* Of a daemon that has run for so long, with one channel. */
static struct daemon_picture *picture_of(const char *channel, unsigned int generation,
					 const char *state)
{
	char json[512];
	struct daemon_picture *picture;
	json_t *status;

	snprintf(json, sizeof(json),
		 "{\"daemon\":{\"uptime_s\":60},\"channels\":[{\"channel\":\"%s\",\"state\":\"%s\","
		 "\"generation\":%u,\"ring\":{\"tail_seq\":100}}]}",
		 channel, state, generation);
	status = json_loads(json, 0, NULL);
	picture = daemon_picture_of(status);
	cr_assert_not_null(picture);
	json_decref(status);
	picture->taken_ns = 60 * S;
	return picture;
}

static bool judged(struct ends_channel channel, struct daemon_picture *picture)
{
	bool ended = ends_judge(&channel, picture);

	daemon_picture_put(picture);
	return ended;
}

/* Whatever the picture says nothing of stays as it was. */
static void expect_nothing_changed(struct ends_channel channel, struct daemon_picture *picture)
{
	channel.ended = true;
	cr_expect(ends_judge(&channel, picture));
	channel.ended = false;
	cr_expect_not(judged(channel, picture));
}

Test(monitor_ends, what_the_daemon_says_has_ended_has_once_all_was_read)
{
	struct ends_channel behind = read_whole;

	cr_expect(judged(read_whole, picture_of("a/0", 3, "ended")));
	behind.next = 100;
	cr_expect_not(judged(behind, picture_of("a/0", 3, "ended")));
}

Test(monitor_ends, what_lives_or_is_waited_for_has_not)
{
	struct ends_channel again = read_whole;

	again.ended = true; /* it was said to have */
	cr_expect_not(judged(read_whole, picture_of("a/0", 3, "live")));
	cr_expect_not(judged(again, picture_of("a/0", 3, "live")));
	cr_expect_not(judged(read_whole, picture_of("a/0", 3, "orphan")));
}

Test(monitor_ends, another_generation_says_nothing)
{
	expect_nothing_changed(read_whole, picture_of("a/0", 2, "ended"));
	expect_nothing_changed(read_whole, picture_of("a/0", 4, "live"));
}

Test(monitor_ends, a_daemon_that_is_gone_says_nothing)
{
	struct daemon_picture *gone = picture_of("a/0", 3, "ended");

	gone->state = PICTURE_NO_DAEMON;
	expect_nothing_changed(read_whole, gone);
	expect_nothing_changed(read_whole, NULL);
}

Test(monitor_ends, a_daemon_that_does_not_know_it_must_have_had_time_to_hear_of_it)
{
	struct daemon_picture *young = picture_of("b/0", 3, "live");
	struct ends_channel late = read_whole;

	cr_expect(judged(read_whole, picture_of("b/0", 3, "live")));
	young->uptime_s = 9;
	expect_nothing_changed(read_whole, young);
	late.since_ns = 51 * S; /* nine seconds before the picture */
	expect_nothing_changed(late, picture_of("b/0", 3, "live"));
}

Test(monitor_ends, one_whose_process_died_has_where_no_daemon_can_tell)
{
	struct ends_channel dead = read_whole;
	struct daemon_picture *gone = picture_of("a/0", 3, "live");
	struct daemon_picture *young = picture_of("b/0", 3, "live");

	dead.died = true;
	gone->state = PICTURE_NO_DAEMON;
	young->uptime_s = 1;
	cr_expect(judged(dead, NULL));
	cr_expect(judged(dead, gone));
	cr_expect(judged(dead, young));
	cr_expect(judged(dead, picture_of("a/0", 2, "live")));
	cr_expect(judged(dead, picture_of("a/0", 3, "orphan")));
}

/* What it still drains is yet to come. */
Test(monitor_ends, one_whose_process_died_has_not_while_its_daemon_says_that_it_is_live)
{
	struct ends_channel dead = read_whole;

	dead.died = true;
	cr_expect_not(judged(dead, picture_of("a/0", 3, "live")));
}
