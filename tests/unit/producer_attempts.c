/* SPDX-License-Identifier: Apache-2.0 */
/* Of which request a later attempt says that it is, where ids are not unique and where they are. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>

#include "tests/unit/producer_fixture.h"

static void start_rank_of_two(void)
{
	struct r3ring_producer_options options;

	start_closed();
	options = fake_service_options(&service);
	options.coordinates.dp = (struct r3ring_coordinate){.index = 1, .size = 2};
	open_with(options);
}

TestSuite(producer_attempts, .init = start, .fini = stop, .timeout = 30);
TestSuite(producer_attempts_dp, .init = start_rank_of_two, .fini = stop, .timeout = 30);

/* Begins an attempt; returns the handle that it says to be the first one's, 0: none. */
static uint64_t begin(const char *id, uint32_t attempt, int64_t first, int64_t *handle)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .attempt = attempt, .first = first};
	struct r3ring_record record;

	*handle = r3ring_request_begin(producer, &request);
	cr_assert_gt(*handle, 0, "%s", r3ring_producer_error(producer));
	next_record(R3RING_REQUEST, &record);
	cr_assert_eq(record.u.request.head.handle, (uint64_t)*handle);
	return r3ring_request_first(&record.u.request.head);
}

static void end(int64_t handle, enum r3ring_end_reason reason)
{
	struct r3ring_record record;

	cr_assert_eq(r3ring_request_end(producer, handle, reason, 0, 4), 0);
	next_record(R3RING_REQUEST, &record);
	cr_assert_eq(record.u.request.head.since_first, 0);
}

Test(producer_attempts, all_of_a_request_lead_to_the_first)
{
	int64_t other, first, handle;

	begin("other", 0, 0, &other);
	cr_expect_eq(begin("r", 0, 0, &first), 2);
	end(first, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, 0, &handle), 2);
	end(handle, R3RING_END_PREEMPTED);
	begin("third", 0, 0, &other);
	cr_expect_eq(begin("r", 2, 0, &handle), 2);
	end(handle, R3RING_END_FINISHED);
	cr_expect_eq(begin("r", 3, 0, &handle), 0, "it had ended");
}

Test(producer_attempts, the_one_that_goes_on_is_the_one_that_was_preempted)
{
	int64_t one, two, handle;

	begin("r", 0, 0, &one);
	begin("r", 0, 0, &two);
	end(one, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, 0, &handle), 1);
	end(two, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, 0, &handle), 2);
}

Test(producer_attempts, which_of_two_that_were_preempted_goes_on_is_not_known)
{
	int64_t one, two, handle;

	begin("r", 0, 0, &one);
	end(one, R3RING_END_PREEMPTED);
	begin("r", 0, 0, &two);
	end(two, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, 0, &handle), 0);
	end(handle, R3RING_END_FINISHED);
	cr_expect_eq(begin("r", 1, 0, &handle), 0, "that may have been either");
	cr_expect_eq(begin("r", 1, one, &handle), (uint64_t)one, "unless it is told");
}

Test(producer_attempts, what_is_told_needs_no_end_of_the_attempt_before)
{
	int64_t one, two, handle;

	begin("r", 0, 0, &one);
	begin("r", 0, 0, &two);
	cr_expect_eq(begin("r", 1, one, &handle), (uint64_t)one);
	end(two, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, R3RING_FIRST_UNKNOWN, &handle), 0);
	cr_expect_eq(begin("r", 1, two, &handle), (uint64_t)two);
	cr_expect_eq(begin("r", 2, 0, &handle), 0, "it does not wait any more");
}

Test(producer_attempts, a_first_handle_that_was_not_given_is_refused)
{
	struct r3ring_request request = {
		.size = sizeof(request), .id = "r", .attempt = 1, .first = 1};

	cr_expect_eq(r3ring_request_begin(producer, &request), -EINVAL);
	assert_says("first is 1 of attempt 1");
	cr_assert_eq(begin_request("r"), 1);
	request.first = -2;
	cr_expect_eq(r3ring_request_begin(producer, &request), -EINVAL);
	request.first = 1;
	request.attempt = 0;
	cr_expect_eq(r3ring_request_begin(producer, &request), -EINVAL, "it is the first");
}

/* An engine need not say that one that it had preempted was given up. */
Test(producer_attempts, more_that_never_went_on_than_are_kept_leave_nothing_known)
{
	int64_t handle;
	char id[32];

	for (unsigned int i = 0; i <= ONGOING_PREEMPTED_MAX; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		begin(id, 0, 0, &handle);
		end(handle, R3RING_END_PREEMPTED);
		if (i == 1)
			cr_assert_eq(begin("r0", 1, 0, &handle), 1);
		if (i == 1)
			end(handle, R3RING_END_PREEMPTED);
	}
	cr_expect_eq(begin("r0", 1, 0, &handle), 0);
	end(handle, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r0", 2, 0, &handle), 0, "others of its id may wait");
}

Test(producer_attempts_dp, a_data_parallel_rank_goes_by_what_is_told)
{
	int64_t one, handle;

	begin("r", 0, 0, &one);
	end(one, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 1, 0, &handle), 0, "it may be another rank's");
	end(handle, R3RING_END_PREEMPTED);
	cr_expect_eq(begin("r", 2, one, &handle), (uint64_t)one);
}
