/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of an instance: its ranks merged, each in its own order. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/instance.h>

#include "tests/support/ranks.h"

#define STEPS 20u
#define CHANNELS_MAX 8u
#define DEADLINE_MS 20000

/* What came of one channel. */
struct found {
	uint64_t generation, next_seq;
	uint64_t records, steps, out_of_order, wrong, gaps;
	uint32_t rows; /* of its newest step */
};

static struct ranks ranks;
static struct r3ring_instance *instance;
static struct found found[CHANNELS_MAX];

static void setup(void)
{
	ranks_start(&ranks, (const char *[]){"--ring-size", "4M", NULL});
}

static void teardown(void)
{
	r3ring_instance_close(instance);
	ranks_stop(&ranks);
}

static void start_anew(const char *const *args)
{
	test_daemon_close(&ranks.daemon);
	ranks_start(&ranks, args);
}

TestSuite(many_instance, .init = setup, .fini = teardown, .timeout = 120);

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_with(const struct r3ring_instance_options *as, struct r3ring_error *err)
{
	struct r3ring_instance_options options = *as;

	options.size = sizeof(options);
	options.runtime_dir = ranks.daemon.dir;
	options.instance = ranks.name;
	return r3ring_instance_open(&instance, &options, err);
}

static void open_instance(const struct r3ring_instance_options *as)
{
	struct r3ring_error err = {0};

	cr_assert_eq(open_with(as, &err), 0, "%s", err.text);
}

/* ---- reading ------------------------------------------------------------ */

static void check_ids(struct found *of, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;

	for (uint32_t i = 0; i < head->rows * head->top_k; i++)
		of->wrong += record->u.layer.ids[i] != engine_id(head->step, head->layer_index,
								 head->row + i / head->top_k,
								 i % head->top_k);
}

static void note(struct found *of, const struct r3ring_view *view)
{
	struct r3ring_record record;

	if (view->generation != of->generation) {
		of->generation = view->generation;
		of->next_seq = view->seq;
	}
	of->out_of_order += view->seq != of->next_seq;
	of->next_seq = view->seq + 1;
	of->records++;
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		of->wrong++;
	else if (record.type == R3RING_LAYER)
		check_ids(of, &record);
	else if (record.type == R3RING_STEP)
		of->rows = record.u.step.head.total_rows;
	else if (record.type == R3RING_STEP_END)
		of->steps++;
}

/* Returns what next says. */
static int read_one(void)
{
	struct r3ring_view view;
	int rc = r3ring_instance_next(instance, &view);
	struct found *of = &found[r3ring_instance_current(instance)];
	struct found before = *of;

	if (rc == -EOVERFLOW)
		of->gaps++;
	if (rc != 1)
		return rc;
	note(of, &view);
	if (r3ring_instance_check(instance)) {
		*of = before;
		of->gaps++;
	}
	return rc;
}

static bool has_steps(uint32_t index, uint64_t steps)
{
	long long deadline = now_ms() + DEADLINE_MS;

	while (found[index].steps < steps && now_ms() < deadline) {
		if (read_one() <= 0)
			r3ring_instance_wait(instance, 100);
	}
	return found[index].steps >= steps;
}

static void expect_sound(uint32_t index, uint64_t steps, uint32_t rows)
{
	cr_expect_eq(found[index].steps, steps, "channel %u", index);
	cr_expect_eq(found[index].rows, rows, "channel %u", index);
	cr_expect_eq(found[index].wrong, 0, "channel %u", index);
	cr_expect_eq(found[index].out_of_order, 0, "channel %u", index);
}

/* ---- which channels ----------------------------------------------------- */

Test(many_instance, all_ranks_come_each_whole_and_in_its_own_order)
{
	ranks_open_all(&ranks);
	ranks_open_draft(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	cr_assert_eq(r3ring_instance_channels(instance), RANKS);
	cr_assert_str_eq(r3ring_instance_channel(instance, 2), ranks_channel(&ranks, "2"));
	cr_assert_null(r3ring_instance_channel(instance, RANKS));
	for (uint32_t rank = RANKS; rank-- > 0;)
		ranks_run(&ranks, rank, STEPS + rank);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		cr_assert(has_steps(rank, STEPS + rank));
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_sound(rank, STEPS + rank, rank + 1);
}

Test(many_instance, failure_13_channels_of_draft_models_come_only_when_asked_for)
{
	ranks_open_all(&ranks);
	ranks_open_draft(&ranks);
	open_instance(&(struct r3ring_instance_options){.models = R3RING_DRAFT_CHANNELS});
	cr_expect_eq(r3ring_instance_channels(instance), 1);
	cr_expect_str_eq(r3ring_instance_channel(instance, 0), ranks_channel(&ranks, "0.draft"));
	r3ring_instance_close(instance);
	open_instance(&(struct r3ring_instance_options){.models = R3RING_ALL_CHANNELS});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS + 1);
	cr_expect_str_eq(r3ring_instance_channel(instance, RANKS),
			 ranks_channel(&ranks, "0.draft"));
	r3ring_instance_close(instance);
	open_instance(&(struct r3ring_instance_options){0});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

Test(many_instance, other_instances_stay_out)
{
	char longer[80];
	struct r3ring_error err = {0};

	ranks_open_all(&ranks);
	snprintf(longer, sizeof(longer), "%.40s-x", ranks.name);
	cr_assert_eq(engine_open(&ranks.draft, ranks.daemon.dir, longer, RANKS_MAX_ROWS, &err), 0,
		     "%s", err.text);
	open_instance(&(struct r3ring_instance_options){0});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

Test(many_instance, a_rank_that_appears_later_is_read_from_its_first_record)
{
	ranks_open(&ranks, 0);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	cr_assert_eq(r3ring_instance_channels(instance), 1);
	ranks_open(&ranks, 2);
	ranks_run(&ranks, 2, STEPS);
	cr_assert(has_steps(1, STEPS));
	cr_expect_str_eq(r3ring_instance_channel(instance, 1), ranks_channel(&ranks, "2"));
	expect_sound(1, STEPS, 3);
}

Test(many_instance, what_a_rank_that_appears_later_has_overwritten_is_told_as_lost)
{
	struct r3ring_reader_stats stats;

	start_anew((const char *[]){"--ring-size", "256K", NULL});
	ranks_open(&ranks, 0);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	ranks_open(&ranks, 2);
	for (uint32_t i = 0; i < 100; i++)
		ranks_run(&ranks, 2, STEPS);
	engine_close(&ranks.engines[2]);
	cr_assert(test_daemon_said(&ranks.daemon, "drained, "));
	while (found[1].gaps == 0 && found[1].records == 0) {
		if (read_one() == 0)
			r3ring_instance_wait(instance, 100);
	}
	cr_expect_eq(found[1].gaps, 1, "a record came before the loss was told");
	cr_assert_eq(r3ring_instance_get_stats(instance, 1, &stats), 0);
	cr_expect_eq(stats.now.start, 1);
	cr_expect_eq(stats.now.gap_from, 1);
	cr_expect_gt(stats.now.lost, 0);
	cr_expect_gt(stats.now.lost_units, 0);
}

Test(many_instance, a_rank_that_is_opened_anew_is_followed)
{
	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	ranks_run(&ranks, 1, STEPS);
	engine_close(&ranks.engines[1]);
	ranks_open(&ranks, 1);
	ranks_run(&ranks, 1, STEPS);
	ranks_run(&ranks, 0, 1);
	cr_assert(has_steps(1, 2 * STEPS));
	cr_assert(has_steps(0, 1));
	expect_sound(1, 2 * STEPS, 2);
	cr_expect_eq(found[1].generation, found[0].generation + 1);
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

/* ---- order and accounts ------------------------------------------------- */

Test(many_instance, channels_that_have_records_take_turns)
{
	ranks_open_all(&ranks);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&ranks, rank, STEPS);
	cr_assert(ranks_published(&ranks, STEPS));
	open_instance(&(struct r3ring_instance_options){0});
	for (uint32_t i = 0; i < STEPS; i++) {
		for (uint32_t rank = 0; rank < RANKS; rank++)
			cr_assert_eq(read_one(), 1);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			cr_assert_eq(found[rank].records, i + 1);
	}
}

Test(many_instance, accounts_are_kept_by_channel_and_summed)
{
	struct r3ring_instance_sums sums;
	struct r3ring_reader_stats stats;
	uint64_t records = 0;

	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		ranks_run(&ranks, rank, STEPS + rank);
		cr_assert(has_steps(rank, STEPS + rank));
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		cr_assert_eq(r3ring_instance_get_stats(instance, rank, &stats), 0);
		cr_expect_eq(stats.now.got, found[rank].records);
		records += found[rank].records;
	}
	r3ring_instance_get_sums(instance, &sums);
	cr_expect_eq(sums.channels, RANKS);
	cr_expect_eq(sums.got, records);
	cr_expect_eq(sums.lost + sums.skipped + sums.corrupt, 0);
	cr_expect_eq(r3ring_instance_get_stats(instance, RANKS, &stats), -EINVAL);
}

Test(many_instance, a_copy_that_does_not_fit_comes_again_of_the_same_channel)
{
	static _Alignas(64) char buffer[1 << 16];
	struct r3ring_view view, again;
	uint32_t current;

	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	cr_assert_eq(r3ring_instance_wait(instance, 10000), 1);
	cr_assert_eq(r3ring_instance_read(instance, &view, buffer, 1), -EMSGSIZE);
	current = r3ring_instance_current(instance);
	cr_assert_eq(r3ring_instance_read(instance, &again, buffer, sizeof(buffer)), 1);
	cr_expect_eq(r3ring_instance_current(instance), current);
	cr_expect_eq(again.seq, view.seq);
	cr_expect_geq(r3ring_instance_max_record(instance), again.len);
}

/* ---- ends --------------------------------------------------------------- */

static int read_to_the_end(void)
{
	long long deadline = now_ms() + DEADLINE_MS;
	int rc;

	do {
		rc = read_one();
		if (rc == 0)
			r3ring_instance_wait(instance, 100);
	} while (rc != -EPIPE && now_ms() < deadline);
	return rc;
}

Test(many_instance, it_has_ended_when_all_its_channels_have)
{
	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){.stay = 1});
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ranks_run(&ranks, rank, STEPS);
	engine_close(&ranks.engines[0]);
	cr_assert(has_steps(0, STEPS));
	for (uint32_t rank = 1; rank < RANKS; rank++)
		engine_close(&ranks.engines[rank]);
	cr_assert_eq(test_daemon_stop(&ranks.daemon), 0);
	cr_assert_eq(read_to_the_end(), -EPIPE);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_sound(rank, STEPS, rank + 1);
	cr_expect_eq(r3ring_instance_wait(instance, 0), 1);
}

Test(many_instance, failure_02_writers_that_are_all_dead_are_told_of)
{
	long long deadline = now_ms() + DEADLINE_MS;
	int rc;

	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	ranks_run(&ranks, 0, 1);
	cr_assert(has_steps(0, 1));
	test_daemon_kill(&ranks.daemon);
	do {
		rc = r3ring_instance_wait(instance, 200);
		if (rc == 1)
			read_one();
	} while (rc != -EOWNERDEAD && now_ms() < deadline);
	cr_expect_eq(rc, -EOWNERDEAD);
}

Test(many_instance, what_one_channel_loses_is_told_of_that_one)
{
	struct r3ring_reader_stats stats;

	start_anew((const char *[]){"--ring-size", "256K", NULL});
	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){0});
	ranks_run(&ranks, 0, STEPS);
	cr_assert(has_steps(0, STEPS));
	for (uint32_t i = 0; i < 100; i++)
		ranks_run(&ranks, 1, STEPS);
	engine_close(&ranks.engines[1]);
	cr_assert(test_daemon_said(&ranks.daemon, "drained, "));
	while (read_one() != 0)
		;
	cr_assert_eq(r3ring_instance_get_stats(instance, 1, &stats), 0);
	cr_expect_gt(stats.now.lost, 0);
	cr_expect_eq(stats.now.got + stats.now.lost, stats.now.cursor - stats.now.start);
	cr_expect_gt(found[1].gaps, 0);
	cr_expect_eq(found[0].gaps + found[2].gaps, 0);
	cr_assert_eq(r3ring_instance_get_stats(instance, 0, &stats), 0);
	cr_expect_eq(stats.now.lost, 0);
	cr_expect_eq(found[1].wrong, 0);
}

/* ---- refusals ----------------------------------------------------------- */

Test(many_instance, an_instance_without_channels_is_not_there)
{
	struct r3ring_error err = {0};

	cr_expect_eq(open_with(&(struct r3ring_instance_options){0}, &err), -ENOENT);
	cr_expect(strstr(err.text, ranks.name), "%s", err.text);
}

Test(many_instance, a_channel_that_is_not_there_is_named_with_those_that_are)
{
	char third[128], there[320];
	const char *const only[] = {third, NULL};
	struct r3ring_error err = {0};

	snprintf(third, sizeof(third), "%s", ranks_channel(&ranks, "9"));
	ranks_open(&ranks, 0);
	ranks_open(&ranks, 1);
	cr_assert_eq(open_with(&(struct r3ring_instance_options){.only = only}, &err), -ENOENT);
	snprintf(there, sizeof(there), "there is no channel %s, but %s/0, %s/1", third, ranks.name,
		 ranks.name);
	cr_expect_str_eq(err.text, there);
}

Test(many_instance, where_only_draft_models_have_channels_that_is_said)
{
	struct r3ring_error err = {0};

	ranks_open_draft(&ranks);
	cr_assert_eq(open_with(&(struct r3ring_instance_options){0}, &err), -ENOENT);
	cr_expect(strstr(err.text, "there is no channel of a target model of instance"), "%s",
		  err.text);
	cr_expect(strstr(err.text, "/0.draft"), "%s", err.text);
}

Test(many_instance, sequences_are_each_channels_own)
{
	struct r3ring_error err = {0};

	cr_expect_eq(open_with(&(struct r3ring_instance_options){.from = R3RING_FROM_SEQ}, &err),
		     -EINVAL);
	cr_expect(strstr(err.text, "sequence"), "%s", err.text);
}

Test(many_instance, a_rank_that_the_daemon_refuses_is_told_of_once)
{
	struct r3ring_view view;
	int rc = 0, told = 0;

	start_anew((const char *[]){"--max-readers", "1", NULL});
	ranks_open(&ranks, 0);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	ranks_open(&ranks, 1);
	for (long long end = now_ms() + 3000; now_ms() < end;) {
		rc = r3ring_instance_next(instance, &view);
		if (rc == 0)
			r3ring_instance_wait(instance, 100);
		if (rc != -EDQUOT)
			continue;
		told++;
		cr_expect(strstr(r3ring_instance_error(instance), "--max-readers"), "%s",
			  r3ring_instance_error(instance));
		cr_expect_eq(r3ring_instance_current(instance), 1);
	}
	cr_expect_eq(told, 1);
}

/* ---- going on ------------------------------------------------------------- */

Test(many_instance, a_channel_goes_on_behind_where_it_was_left_off)
{
	struct r3ring_instance_start start = {.channel = NULL, .seq = 5};
	struct r3ring_reader_stats stats;
	struct listener listener;
	struct r3ring_view view;
	char buffer[4096] __attribute__((aligned(64)));

	ranks_open_all(&ranks);
	ranks_run(&ranks, 0, 1);
	listener_open(&listener, ranks.daemon.dir, ranks_channel(&ranks, "0"));
	cr_assert(listener_read_until(&listener, listener_has_step, 1));
	listener_close(&listener);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_FIRST});
	cr_assert_eq(r3ring_instance_get_stats(instance, 0, &stats), 0);
	start.channel = strdup(r3ring_instance_channel(instance, 0));
	start.generation = stats.generation;
	memcpy(start.uuid, stats.uuid, sizeof(start.uuid));
	r3ring_instance_close(instance);
	open_instance(&(struct r3ring_instance_options){
		.from = R3RING_FROM_FIRST, .starts = &start, .start_count = 1});
	while (r3ring_instance_read(instance, &view, buffer, sizeof(buffer)) == 1) {
		if (r3ring_instance_current(instance) == 0)
			break;
	}
	cr_expect_eq(view.seq, 6);
	r3ring_instance_close(instance);
	/* Of another ring of that number it is read from the first record on. */
	start.uuid[0] ^= 1;
	open_instance(&(struct r3ring_instance_options){
		.from = R3RING_FROM_FIRST, .starts = &start, .start_count = 1});
	while (r3ring_instance_read(instance, &view, buffer, sizeof(buffer)) == 1) {
		if (r3ring_instance_current(instance) == 0)
			break;
	}
	cr_expect_eq(view.seq, 1);
	free((void *)(uintptr_t)start.channel);
}

Test(many_instance, only_the_channels_that_are_named_are_read)
{
	char second[128];
	const char *const only[] = {second, NULL};

	snprintf(second, sizeof(second), "%s", ranks_channel(&ranks, "1"));
	ranks_open_all(&ranks);
	open_instance(&(struct r3ring_instance_options){.only = only});
	cr_assert_eq(r3ring_instance_channels(instance), 1);
	cr_expect_str_eq(r3ring_instance_channel(instance, 0), second);
}
