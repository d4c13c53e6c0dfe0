/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a real daemon, also of one that hangs, dies and comes back. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>

#include "monitor/daemon_watch.h"
#include "monitor/tail.h"
#include "tests/support/stand_still.h"
#include "tests/support/tool_stage.h"

#define LOOKS 4000 /* of 5 ms */

static struct tool_stage stage;

static void start(void)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "seen");
}

static void stop(void)
{
	tool_stage_close(&stage);
}

TestSuite(monitor_watch, .init = start, .fini = stop);

/* Looks until the watch's newest picture is of that state, and has so many steps. */
static bool watch_sees(struct daemon_watch *watch, enum picture_state state, uint64_t steps)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		struct daemon_picture *before, *now;
		const struct picture_channel *channel;
		bool seen;

		daemon_watch_look(watch, &before, &now);
		channel = daemon_picture_find(now, tool_stage_channel(&stage, "seen"));
		seen = now && now->state == state &&
		       (!steps || (channel && channel->steps == steps));
		daemon_picture_put(before);
		daemon_picture_put(now);
		if (seen)
			return true;
		poll(NULL, 0, 5);
	}
	return false;
}

/* The first picture with the end of so many steps; put by the caller. */
static struct daemon_picture *take_behind(uint64_t steps)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		struct daemon_picture *picture = daemon_picture_take(stage.daemon.dir, 60000);
		const struct picture_channel *channel;

		cr_assert_not_null(picture);
		cr_assert_eq(picture->state, PICTURE_LIVE, "%s", picture->error);
		channel = daemon_picture_find(picture, tool_stage_channel(&stage, "seen"));
		if (channel && channel->steps_complete + channel->steps_partial == steps)
			return picture;
		daemon_picture_put(picture);
		poll(NULL, 0, 5);
	}
	cr_assert_fail("the daemon does not tell of %llu steps", (unsigned long long)steps);
	return NULL;
}

Test(monitor_watch, a_picture_has_what_the_engine_ran)
{
	const struct picture_channel *channel;
	struct daemon_picture *picture;

	tool_stage_run(&stage, "seen", 3);
	picture = take_behind(3);
	channel = daemon_picture_find(picture, tool_stage_channel(&stage, "seen"));
	cr_expect_eq(channel->steps, 3);
	cr_expect_eq(channel->rows, 3 * TOOL_STAGE_ROWS);
	cr_expect_eq(channel->bound_count, 0);
	cr_expect_eq(channel->unbound_count, 0, "layers that come by call miss no binding");
	cr_expect_eq(channel->lost.all_steps, 0);
	cr_expect_geq(channel->records, 3 * (2 + ENGINE_LAYERS));
	daemon_picture_put(picture);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Test(monitor_watch, a_daemon_that_hangs_is_not_waited_for_beyond_the_time)
{
	struct daemon_picture *picture;
	int64_t began;

	stand_still(stage.daemon.pid);
	began = now_ms();
	picture = daemon_picture_take(stage.daemon.dir, 200);
	cr_expect_lt(now_ms() - began, 5000);
	kill(stage.daemon.pid, SIGCONT);
	cr_assert_not_null(picture);
	cr_expect_eq(picture->state, PICTURE_NO_ANSWER);
	cr_expect(strstr(picture->error, "did not answer"), "%s", picture->error);
	daemon_picture_put(picture);
}

Test(monitor_watch, a_daemon_that_dies_is_said_to_be_gone_and_found_again)
{
	struct daemon_watch *watch;
	struct daemon_picture *before, *now;

	cr_assert_eq(daemon_watch_start(&watch, stage.daemon.dir, 20, NULL), 0);
	tool_stage_run(&stage, "seen", 3);
	cr_expect(watch_sees(watch, PICTURE_LIVE, 3));
	test_daemon_kill(&stage.daemon);
	cr_expect(watch_sees(watch, PICTURE_NO_DAEMON, 0));
	daemon_watch_look(watch, &before, &now);
	cr_expect(before && before->state == PICTURE_LIVE);
	cr_expect(now && strstr(now->error, "no daemon"));
	daemon_picture_put(before);
	daemon_picture_put(now);
	test_daemon_restart(&stage.daemon, NULL);
	cr_expect(watch_sees(watch, PICTURE_LIVE, 3), "totals go on");
	daemon_watch_stop(watch);
}

/* ---- what a tail says of itself ----------------------------------------------- */

struct told {
	struct tail *tail;
	uint32_t records, behind; /* that came; of these, which the status did not have */
};

static int take_channel(void *context, uint32_t channel, const char *name)
{
	(void)context;
	(void)channel;
	(void)name;
	return 0;
}

static void take_gap(void *context, uint32_t channel)
{
	(void)context;
	(void)channel;
}

static void take_record(void *context, uint32_t channel, const char *name,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct told *told = context;
	struct tail_status status;

	(void)channel;
	(void)name;
	(void)view;
	(void)record;
	tail_get_status(told->tail, &status);
	r3ring_store_relaxed_u32(&told->behind,
				 told->behind + (status.records != told->records + 1 ||
						 status.state != TAIL_WAITING));
	r3ring_store_relaxed_u32(&told->records, told->records + 1);
}

/* The first records: those that were there are all read at once. */
Test(monitor_watch, a_record_is_counted_before_anybody_sees_what_it_says)
{
	struct told told = {0};
	const struct tail_options options = {
		.instance = engine_instance(stage.daemon.dir, "seen"),
		.runtime_dir = stage.daemon.dir,
		.look_ms = 5,
		.hooks = {.context = &told,
			  .channel = take_channel,
			  .record = take_record,
			  .gap = take_gap},
	};

	tool_stage_run(&stage, "seen", 3);
	daemon_picture_put(take_behind(3));
	cr_assert_eq(tail_open(&told.tail, &options, NULL), 0);
	for (int looks = 0; looks < LOOKS; looks++) {
		if (r3ring_load_relaxed_u32(&told.records) >= 3 * (2 + ENGINE_LAYERS))
			break;
		poll(NULL, 0, 5);
	}
	tail_close(told.tail);
	cr_expect_geq(told.records, 3 * (2 + ENGINE_LAYERS));
	cr_expect_eq(told.behind, 0, "of %u records", told.records);
}
