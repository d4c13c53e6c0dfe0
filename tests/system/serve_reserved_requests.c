/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a request frees what was reserved for it, on whichever ranks it ran. */
#include <criterion/criterion.h>

#include "tests/system/reservation_stage.h"

static struct engine other; /* the other rank, where a test opens one */

static void stop(void)
{
	engine_close(&other);
	serve_stage_stop();
}

TestSuite(serve_reserved_requests, .init = serve_stage_start, .fini = stop);

/* A row, and then the end for that reason. */
static void run_to_end(struct engine *engine, const char *id, uint32_t attempt,
		       enum r3ring_end_reason reason)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = id, .attempt = attempt};
	int64_t handle = r3ring_request_begin(engine->producer, &info);

	cr_assert_gt(handle, 0);
	engine_step(engine, handle, 1);
	r3ring_request_end(engine->producer, handle, reason, attempt, R3RING_UNKNOWN_U32);
	engine_step(engine, 0, 1);
}

Test(serve_reserved_requests, the_end_of_a_request_frees_what_was_reserved_for_it)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = "req-9"};
	int64_t handle;

	serve_stage_run(1);
	expect_reserved("req-9", 1, 3600000, 201);
	expect_reserved("other", 1, 3600000, 201);
	handle = r3ring_request_begin(stage.tool.engine.producer, &info);
	cr_assert_gt(handle, 0);
	engine_step(&stage.tool.engine, handle, 4);
	r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 5);
	engine_step(&stage.tool.engine, 0, 4);
	cr_expect(reservations_become(1));
}

Test(serve_reserved_requests, a_request_that_is_preempted_keeps_its_reservation_until_it_ends)
{
	serve_stage_run(1);
	expect_reserved("req-9", 1, 3600000, 201);
	run_to_end(&stage.tool.engine, "req-9", 0, R3RING_END_PREEMPTED);
	serve_stage_await(3);
	cr_expect_eq(reservations(), 1);
	run_to_end(&stage.tool.engine, "req-9", 1, R3RING_END_ABORTED);
	cr_expect(reservations_become(0));
}

static bool is_over(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_is_true(at(answer, "ended", NULL));
}

/* Its end has freed what it could; a time that the client says counts. */
Test(serve_reserved_requests, what_is_committed_for_a_request_that_has_ended_keeps_its_time)
{
	char where[256];
	double left;

	serve_stage_run(1);
	run_to_end(&stage.tool.engine, "req-9", 0, R3RING_END_FINISHED);
	cr_assert(becomes("/v1/signature?request=req-9", is_over, NULL));
	reserve_at(where, "req-9");
	left = time_left("PATCH", where, "{\"commit\": true}", 200);
	cr_expect(left > 0 && left < 3600000, "%f", left);
	left = time_left("PATCH", where, "{\"commit\": true, \"tokens\": 2}", 200);
	cr_expect(left > 0 && left < 3600000, "%f", left);
	expect_status("PATCH", where, "{\"commit\": true, \"ttl_ms\": 1}", 200);
	cr_expect(reservations_become(0));
}

Test(serve_reserved_requests, what_is_committed_for_a_request_that_was_not_seen_to_end_has_no_time)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "next");
	cr_expect_lt(time_left("PATCH", where, "{\"commit\": true}", 200), 0);
}

/* ---- on two ranks ---------------------------------------------------------------- */

static void open_other(void)
{
	struct r3ring_error err;

	cr_assert_eq(engine_open_rank(&other, stage.tool.daemon.dir, serve_stage_instance(),
				      (struct engine_rank){.rank = 1}, 64, &err),
		     0, "%s", err.text);
}

/* One book for both ranks: a request's two tokens are 2 x 6 visits, half of them a GPU's. */
Test(serve_reserved_requests,
     ranks_of_an_engine_share_its_gpus_and_each_frees_what_its_requests_held)
{
	serve_stage_run(1);
	open_other();
	cr_expect_float_eq(margin_left(), 97, 1e-9);
	expect_reserved("first", 2, 3600000, 201);
	expect_reserved("second", 2, 3600000, 201);
	cr_expect_float_eq(margin_left(), 85, 1e-9);
	run_to_end(&other, "second", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(1));
	cr_expect_float_eq(margin_left(), 91, 1e-9);
	run_to_end(&stage.tool.engine, "first", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(0));
	cr_expect_float_eq(margin_left(), 97, 1e-9);
}

static int64_t begin(struct engine *engine, const char *id)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = id, .prompt_tokens = 1};
	int64_t handle = r3ring_request_begin(engine->producer, &info);

	cr_assert_gt(handle, 0);
	return handle;
}

static bool is_one_of_two(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_integer_value(at(answer, "same_id", NULL)) == 1;
}

static void finish(struct engine *engine, int64_t handle)
{
	r3ring_request_end(engine->producer, handle, R3RING_END_FINISHED, 0, R3RING_UNKNOWN_U32);
}

/* Both ranks run a request of that id, of which this one's, told before "after" ends, has ended.
 * Returns the other one's. */
static int64_t end_first_of_twins(void)
{
	int64_t first, second;

	serve_stage_run(1);
	open_other();
	expect_reserved("twin", 1, 3600000, 201);
	expect_reserved("after", 1, 3600000, 201);
	first = begin(&stage.tool.engine, "twin");
	second = begin(&other, "twin");
	engine_step(&other, second, 1);
	engine_step(&stage.tool.engine, first, 1);
	cr_assert(becomes("/v1/signature?request=twin", is_one_of_two, NULL));
	finish(&stage.tool.engine, first);
	/* Once this one is freed, the end before it was read. */
	run_to_end(&stage.tool.engine, "after", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(1));
	return second;
}

Test(serve_reserved_requests, what_two_ranks_run_under_one_id_is_freed_when_the_last_of_them_ends)
{
	int64_t second = end_first_of_twins();

	/* Several turns later, too. */
	engine_step(&other, second, 1);
	expect_reserved("brief", 1, 100, 201);
	cr_expect(reservations_become(1));
	cr_expect(becomes("/v1/reservations", is_all_there_is, "twin"));
	finish(&other, second);
	engine_step(&other, 0, 1);
	cr_expect(reservations_become(0));
}

Test(serve_reserved_requests, a_rank_that_goes_without_an_end_holds_nothing_up)
{
	end_first_of_twins();
	engine_close(&other);
	cr_expect(reservations_become(0));
}
