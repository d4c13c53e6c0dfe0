/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of one id, one after the other, on two stages of a pipeline: whatever order their channels
 * are fed in, no stage's rows are taken for those of another's request.
 */
#include "tests/unit/record_feed.h"

#define ORDERS 400u /* that are tried */
#define REQUESTS 8u
#define PROMPT 2u
#define SECOND_NS 1000000000u

enum kind { SCHEMA, BEGIN, RUN, PREEMPT, END, GAP, START };

/* What a stage tells: of the request @number, the same number on both. */
struct event {
	enum kind kind;
	uint16_t number, attempt;
};

#define ONE(n)                                                                                     \
	{BEGIN, n, 0}, {RUN, n, 0},                                                                \
	{                                                                                          \
		END, n, 0                                                                          \
	}
#define PREEMPTED(n)                                                                               \
	{BEGIN, n, 0}, {RUN, n, 0}, {PREEMPT, n, 0}, {BEGIN, n, 1}, {RUN, n, 1},                   \
	{                                                                                          \
		END, n, 1                                                                          \
	}

struct stage {
	struct feed feed;
	const struct event *event;
	uint32_t events, told;
	uint64_t step, handle; /* of its engine so far */
};

/* What came out: how often, by the number of the request that ran, and of those that are whole. */
struct outcome {
	uint32_t given[REQUESTS], whole[REQUESTS], mixed;
};

/* The ids say who ran: the request whose turn it is on the stage. */
static uint16_t number_as_id(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			     uint32_t k)
{
	(void)step;
	(void)row;
	(void)layer;
	return (uint16_t)(feed->salt * FEED_TOP_K + k);
}

static void start(struct stage *stage)
{
	stage->step = 0;
	stage->handle = 0;
	stage->feed.seq = 0;
	feed_schema(&stage->feed);
}

static void run(struct stage *stage, const struct event *event)
{
	const struct r3ring_span span = {.request = stage->handle,
					 .rows = PROMPT,
					 .attempt = event->attempt,
					 .accepted = R3RING_UNKNOWN_U32};

	stage->feed.salt = event->number;
	stage->feed.host_ns = (10u * event->number + event->attempt) * (uint64_t)SECOND_NS +
			      stage->feed.rank.pp.index;
	feed_whole(&stage->feed, ++stage->step, PROMPT, &span, 1);
}

static void tell(struct stage *stage)
{
	const struct event *event = &stage->event[stage->told++];

	switch (event->kind) {
	case START:
		stage->feed.generation++;
		start(stage);
		break;
	case SCHEMA:
		start(stage);
		break;
	case BEGIN:
		feed_begin(&stage->feed, ++stage->handle, "a", PROMPT, event->attempt);
		break;
	case RUN:
		run(stage, event);
		break;
	case PREEMPT:
	case END:
		feed_end(&stage->feed, stage->handle,
			 event->kind == END ? R3RING_END_FINISHED : R3RING_END_PREEMPTED,
			 event->attempt, PROMPT + 1);
		break;
	case GAP: /* with a request in it */
		stage->step++;
		stage->handle++;
		stage->feed.seq += 10;
		r3ring_assembler_gap(stage->feed.assembler, stage->feed.channel);
		break;
	}
}

/* Whose row it is, 0 for none that is valid. */
static uint16_t who_ran(const struct r3ring_assembled *got, uint32_t position, uint32_t layer)
{
	uint16_t ids[FEED_TOP_K];
	uint8_t valid;
	const struct r3ring_assembled_rows rows = {.ids = ids, .valid = &valid};

	cr_assert_eq(r3ring_assembled_read(got, position, 1, layer, 1, &rows), 0);
	return valid ? ids[0] / FEED_TOP_K : 0;
}

/* Two requests' rows in one are what must not be. */
static void look_at(const struct r3ring_assembled *got, struct outcome *outcome)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);
	uint16_t number = 0;

	if (info->flags & R3RING_ASSEMBLED_MIXED) {
		outcome->mixed++;
		return;
	}
	for (uint32_t position = 0; position < PROMPT; position++)
		for (uint32_t layer = 0; layer < info->layers; layer++) {
			uint16_t ran = who_ran(got, position, layer);

			cr_assert(!ran || !number || ran == number, "rows of %u in %u", ran,
				  number);
			number = ran ? ran : number;
		}
	outcome->given[number]++;
	outcome->whole[number] += info->flags == 0 && info->cells_valid == 4u * FEED_LAYERS;
}

static void take_all(struct feed *feed, struct outcome *outcome)
{
	struct r3ring_assembled *got;

	while ((got = r3ring_assembler_take(feed->assembler))) {
		look_at(got, outcome);
		r3ring_assembled_free(got);
	}
}

static uint32_t below(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % limit;
}

/* Tells both in an order that is the @seed's: each its own, the one up to all before the other. */
static struct outcome tell_in_order(struct stage stage[2], uint32_t seed)
{
	const uint32_t first_in_ten = below(&seed, 11);
	struct outcome outcome = {0};

	while (stage[0].told < stage[0].events || stage[1].told < stage[1].events) {
		uint32_t next = below(&seed, 10) >= first_in_ten;

		if (stage[next].told == stage[next].events)
			next = !next;
		tell(&stage[next]);
		take_all(&stage[0].feed, &outcome);
	}
	r3ring_assembler_flush(stage[0].feed.assembler);
	take_all(&stage[0].feed, &outcome);
	return outcome;
}

static void stages_create(struct stage stage[2])
{
	feed_create(&stage[0].feed, NULL);
	stage[1].feed = feed_channel(&stage[0].feed, "test/1");
	for (uint16_t i = 0; i < 2; i++) {
		stage[i].feed.rank.pp = (struct r3ring_coordinate){i, 2};
		stage[i].feed.first_layer = i ? FEED_LAYERS : 0;
		stage[i].feed.id = number_as_id;
	}
}

static struct outcome tell_both(const struct event *first, uint32_t firsts,
				const struct event *second, uint32_t seconds, uint32_t seed)
{
	struct stage stage[2] = {{.event = first, .events = firsts},
				 {.event = second, .events = seconds}};
	struct outcome outcome;

	stages_create(stage);
	outcome = tell_in_order(stage, seed);
	feed_destroy(&stage[0].feed);
	return outcome;
}

#define TELL(first, second, seed)                                                                  \
	tell_both(first, sizeof(first) / sizeof(*(first)), second,                                 \
		  sizeof(second) / sizeof(*(second)), seed)

static void expect_whole(const struct outcome *outcome, uint32_t seed, uint16_t from, uint16_t to)
{
	for (uint16_t number = from; number <= to; number++)
		cr_assert(outcome->given[number] == 1 && outcome->whole[number] == 1,
			  "order %u: %u is given %u times, whole %u", seed, number,
			  outcome->given[number], outcome->whole[number]);
	cr_assert_eq(outcome->mixed, 0, "order %u", seed);
}

Test(assembler_repeats, each_is_whole_in_whatever_order_stages_are_fed)
{
	static const struct event both[] = {{SCHEMA, 0, 0}, ONE(1), PREEMPTED(2), ONE(3), ONE(4)};

	for (uint32_t seed = 0; seed < ORDERS; seed++) {
		struct outcome outcome = TELL(both, both, seed);

		expect_whole(&outcome, seed, 1, 4);
	}
}

/* One stage warms up with a step and a request more. */
Test(assembler_repeats, so_it_is_where_stages_number_steps_and_handles_apart)
{
	static const struct event first[] = {{SCHEMA, 0, 0}, {GAP, 0, 0}, {START, 0, 0},
					     ONE(1),         ONE(2),      ONE(3)};
	static const struct event second[] = {{SCHEMA, 0, 0}, {START, 0, 0}, {RUN, 1, 0},
					      ONE(1),         ONE(2),        ONE(3)};

	for (uint32_t seed = 0; seed < ORDERS; seed++) {
		struct outcome outcome = TELL(first, second, seed);

		expect_whole(&outcome, seed, 1, 3);
	}
}

/* The engine is killed when the second stage has yet to hear of the third request, and counts ids from
 * the first one on again. */
Test(assembler_repeats, an_engine_that_is_started_again_does_not_go_on_with_those_of_before)
{
	static const struct event first[] = {{SCHEMA, 0, 0}, ONE(1), ONE(2), ONE(3),
					     {START, 0, 0},  ONE(4), ONE(5)};
	static const struct event second[] = {{SCHEMA, 0, 0}, ONE(1), ONE(2),
					      {START, 0, 0},  ONE(4), ONE(5)};

	for (uint32_t seed = 0; seed < ORDERS; seed++) {
		struct outcome outcome = TELL(first, second, seed);

		cr_assert_eq(outcome.whole[3], 0, "order %u", seed);
		outcome.given[3] = 0;
		expect_whole(&outcome, seed, 1, 2);
		expect_whole(&outcome, seed, 4, 5);
	}
}

/* The second stage's start is tried once more than the first's. */
Test(assembler_repeats, a_start_of_one_stage_alone_is_no_start_of_the_other)
{
	static const struct event first[] = {{SCHEMA, 0, 0}, ONE(1),        {START, 0, 0}, ONE(3),
					     ONE(4),         {START, 0, 0}, ONE(5)};
	static const struct event second[] = {{SCHEMA, 0, 0}, {START, 0, 0}, ONE(1),
					      {START, 0, 0},  ONE(3),        ONE(4),
					      {START, 0, 0},  ONE(5)};

	for (uint32_t seed = 0; seed < ORDERS; seed++)
		TELL(first, second, seed);
}

/* How many the second stage ran is not known then. */
Test(assembler_repeats, behind_one_that_was_lost_no_other_is_taken_for_it)
{
	static const struct event first[] = {{SCHEMA, 0, 0}, ONE(1), ONE(2), ONE(3), ONE(4)};
	static const struct event second[] = {{SCHEMA, 0, 0}, ONE(1), {GAP, 0, 0}, ONE(3), ONE(4)};

	for (uint32_t seed = 0; seed < ORDERS; seed++) {
		struct outcome outcome = TELL(first, second, seed);

		cr_assert_eq(outcome.whole[2], 0, "order %u", seed);
	}
}

Test(assembler_repeats, what_is_run_together_behind_a_loss_is_one_request)
{
	static const struct event first[] = {{SCHEMA, 0, 0}, {GAP, 0, 0}, ONE(2)};
	static const struct event second[] = {{SCHEMA, 0, 0}, {GAP, 0, 0}, ONE(2)};

	for (uint32_t seed = 0; seed < ORDERS; seed++) {
		struct outcome outcome = TELL(first, second, seed);

		expect_whole(&outcome, seed, 2, 2);
	}
}

/* The first stage hears of the second request while the second stage, which began late, still runs the first:
 * they are at work at one time, and no step is told by both of the same rows. */
Test(assembler_repeats, what_is_run_at_one_time_behind_a_loss_by_other_steps_is_not_one_request)
{
	struct r3ring_span span = {.rows = PROMPT, .accepted = R3RING_UNKNOWN_U32};
	struct stage stage[2] = {0};
	struct outcome outcome = {0};

	stages_create(stage);
	for (uint32_t i = 0; i < 2; i++) {
		struct feed *feed = &stage[i].feed;

		feed_schema(feed);
		feed->seq += 10;
		r3ring_assembler_gap(feed->assembler, feed->channel);
		span.request = 7;
		feed_begin(feed, 7, "a", PROMPT, 0);
		feed->salt = i ? 1 : 2;
		feed->host_ns = SECOND_NS;
		feed_whole(feed, i ? 11 : 12, PROMPT, &span, 1);
		feed_end(feed, 7, R3RING_END_FINISHED, 0, PROMPT + 1);
	}
	r3ring_assembler_flush(stage[0].feed.assembler);
	take_all(&stage[0].feed, &outcome);
	cr_assert_eq(outcome.mixed, 1);
	feed_destroy(&stage[0].feed);
}

static void run_whole(struct feed *feed, uint16_t number, uint64_t handle, uint64_t ns)
{
	const struct r3ring_span span = {
		.request = handle, .rows = PROMPT, .accepted = R3RING_UNKNOWN_U32};

	feed_begin(feed, handle, "a", PROMPT, 0);
	feed->salt = number;
	feed->host_ns = ns;
	feed_whole(feed, handle, PROMPT, &span, 1);
	feed_end(feed, handle, R3RING_END_FINISHED, 0, PROMPT + 1);
}

/* Of the first run only the second stage was recorded, which had closed before the next one began. */
Test(assembler_repeats, a_run_that_had_closed_is_not_of_one_start_with_a_later_one)
{
	struct stage stage[2] = {0};
	struct outcome outcome = {0};

	stages_create(stage);
	start(&stage[1]);
	run_whole(&stage[1].feed, 1, 1, SECOND_NS);
	feed_closed(&stage[1].feed);
	start(&stage[0]);
	run_whole(&stage[0].feed, 2, 1, 4u * (uint64_t)SECOND_NS);
	stage[1].feed.generation++;
	start(&stage[1]);
	run_whole(&stage[1].feed, 2, 1, 4u * (uint64_t)SECOND_NS + 1);
	run_whole(&stage[0].feed, 3, 2, 5u * (uint64_t)SECOND_NS);
	run_whole(&stage[1].feed, 3, 2, 5u * (uint64_t)SECOND_NS + 1);
	r3ring_assembler_flush(stage[0].feed.assembler);
	take_all(&stage[0].feed, &outcome);
	cr_assert_eq(outcome.whole[1], 0);
	cr_assert_eq(outcome.whole[3], 1);
	feed_destroy(&stage[0].feed);
}
