/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of an instance: its ranks merged, each in its own order. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <r3ring/instance.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define RANKS 3u
#define STEPS 20u
#define MAX_ROWS 64u
#define CHANNELS_MAX 8u
#define DEADLINE_MS 20000

/* What came of one channel. */
struct found {
	uint64_t generation, next_seq;
	uint64_t records, steps, out_of_order, wrong, gaps;
	uint32_t rows; /* of its newest step */
};

static struct test_daemon daemon_a;
static struct engine engines[RANKS], draft;
static struct r3ring_instance *instance;
static struct found found[CHANNELS_MAX];
static char name[64];

static void setup(void)
{
	test_daemon_start(&daemon_a, NULL);
	strcpy(name, engine_instance(daemon_a.dir, "many"));
}

static void teardown(void)
{
	r3ring_instance_close(instance);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		engine_close(&engines[rank]);
	engine_close(&draft);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static void start_with_small_rings(void)
{
	test_daemon_close(&daemon_a);
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	strcpy(name, engine_instance(daemon_a.dir, "many"));
}

TestSuite(many_instance, .init = setup, .fini = teardown, .timeout = 120);

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void open_rank(struct engine *engine, uint32_t rank, bool is_draft)
{
	const struct engine_rank which = {.rank = rank, .draft = is_draft};
	struct r3ring_error err = {0};

	cr_assert_eq(engine_open_rank(engine, daemon_a.dir, name, which, MAX_ROWS, &err), 0, "%s",
		     err.text);
}

static void open_ranks(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		open_rank(&engines[rank], rank, false);
}

/* Steps of a rank have one row more than the rank's number. */
static void run_steps(uint32_t rank, uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++)
		cr_assert_gt(engine_step(&engines[rank], 0, rank + 1), 0);
}

static int open_with(const struct r3ring_instance_options *as, struct r3ring_error *err)
{
	struct r3ring_instance_options options = *as;

	options.size = sizeof(options);
	options.runtime_dir = daemon_a.dir;
	options.instance = name;
	return r3ring_instance_open(&instance, &options, err);
}

static void open_instance(const struct r3ring_instance_options *as)
{
	struct r3ring_error err = {0};

	cr_assert_eq(open_with(as, &err), 0, "%s", err.text);
}

static const char *channel_name(const char *suffix)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/%s", name, suffix);
	return text;
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
	open_ranks();
	open_rank(&draft, 0, true);
	open_instance(&(struct r3ring_instance_options){0});
	cr_assert_eq(r3ring_instance_channels(instance), RANKS);
	cr_assert_str_eq(r3ring_instance_channel(instance, 2), channel_name("2"));
	cr_assert_null(r3ring_instance_channel(instance, RANKS));
	for (uint32_t rank = RANKS; rank-- > 0;)
		run_steps(rank, STEPS + rank);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		cr_assert(has_steps(rank, STEPS + rank));
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_sound(rank, STEPS + rank, rank + 1);
}

Test(many_instance, failure_13_channels_of_draft_models_come_only_when_asked_for)
{
	open_ranks();
	open_rank(&draft, 0, true);
	open_instance(&(struct r3ring_instance_options){.models = R3RING_DRAFT_CHANNELS});
	cr_expect_eq(r3ring_instance_channels(instance), 1);
	cr_expect_str_eq(r3ring_instance_channel(instance, 0), channel_name("0.draft"));
	r3ring_instance_close(instance);
	open_instance(&(struct r3ring_instance_options){.models = R3RING_ALL_CHANNELS});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS + 1);
	cr_expect_str_eq(r3ring_instance_channel(instance, RANKS), channel_name("0.draft"));
	r3ring_instance_close(instance);
	open_instance(&(struct r3ring_instance_options){0});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

Test(many_instance, other_instances_stay_out)
{
	char longer[80];
	struct r3ring_error err = {0};

	open_ranks();
	snprintf(longer, sizeof(longer), "%.40s-x", name);
	cr_assert_eq(engine_open(&draft, daemon_a.dir, longer, MAX_ROWS, &err), 0, "%s", err.text);
	open_instance(&(struct r3ring_instance_options){0});
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

Test(many_instance, a_rank_that_appears_later_is_read_from_its_first_record)
{
	open_rank(&engines[0], 0, false);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	cr_assert_eq(r3ring_instance_channels(instance), 1);
	open_rank(&engines[2], 2, false);
	run_steps(2, STEPS);
	cr_assert(has_steps(1, STEPS));
	cr_expect_str_eq(r3ring_instance_channel(instance, 1), channel_name("2"));
	expect_sound(1, STEPS, 3);
}

Test(many_instance, what_a_rank_that_appears_later_has_overwritten_is_told_as_lost)
{
	struct r3ring_reader_stats stats;

	start_with_small_rings();
	open_rank(&engines[0], 0, false);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	open_rank(&engines[2], 2, false);
	for (uint32_t i = 0; i < 100; i++)
		run_steps(2, STEPS);
	engine_close(&engines[2]);
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
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
	open_ranks();
	open_instance(&(struct r3ring_instance_options){0});
	run_steps(1, STEPS);
	engine_close(&engines[1]);
	open_rank(&engines[1], 1, false);
	run_steps(1, STEPS);
	run_steps(0, 1);
	cr_assert(has_steps(1, 2 * STEPS));
	cr_assert(has_steps(0, 1));
	expect_sound(1, 2 * STEPS, 2);
	cr_expect_eq(found[1].generation, found[0].generation + 1);
	cr_expect_eq(r3ring_instance_channels(instance), RANKS);
}

/* ---- order and accounts ------------------------------------------------- */

static bool all_published(void)
{
	struct listener listeners[RANKS];
	bool all = true;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", rank);
		listener_open(&listeners[rank], daemon_a.dir, channel_name(number));
		all &= listener_read_until(&listeners[rank], listener_has_step, STEPS);
		listener_close(&listeners[rank]);
	}
	return all;
}

Test(many_instance, channels_that_have_records_take_turns)
{
	open_ranks();
	for (uint32_t rank = 0; rank < RANKS; rank++)
		run_steps(rank, STEPS);
	cr_assert(all_published());
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

	open_ranks();
	open_instance(&(struct r3ring_instance_options){0});
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		run_steps(rank, STEPS + rank);
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

	open_ranks();
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
	open_ranks();
	open_instance(&(struct r3ring_instance_options){.stay = 1});
	for (uint32_t rank = 0; rank < RANKS; rank++)
		run_steps(rank, STEPS);
	engine_close(&engines[0]);
	cr_assert(has_steps(0, STEPS));
	for (uint32_t rank = 1; rank < RANKS; rank++)
		engine_close(&engines[rank]);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert_eq(read_to_the_end(), -EPIPE);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_sound(rank, STEPS, rank + 1);
	cr_expect_eq(r3ring_instance_wait(instance, 0), 1);
}

Test(many_instance, failure_02_writers_that_are_all_dead_are_told_of)
{
	long long deadline = now_ms() + DEADLINE_MS;
	int rc;

	open_ranks();
	open_instance(&(struct r3ring_instance_options){0});
	run_steps(0, 1);
	cr_assert(has_steps(0, 1));
	test_daemon_kill(&daemon_a);
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

	start_with_small_rings();
	open_ranks();
	open_instance(&(struct r3ring_instance_options){0});
	run_steps(0, STEPS);
	cr_assert(has_steps(0, STEPS));
	for (uint32_t i = 0; i < 100; i++)
		run_steps(1, STEPS);
	engine_close(&engines[1]);
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
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
	cr_expect(strstr(err.text, name), "%s", err.text);
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

	test_daemon_close(&daemon_a);
	test_daemon_start(&daemon_a, (const char *[]){"--max-readers", "1", NULL});
	strcpy(name, engine_instance(daemon_a.dir, "many"));
	open_rank(&engines[0], 0, false);
	open_instance(&(struct r3ring_instance_options){.from = R3RING_FROM_LATEST});
	open_rank(&engines[1], 1, false);
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

/* ---- r3ring dump --------------------------------------------------------- */

static struct command tool;

static unsigned int lines_with(const char *text, const char *part, const char *other)
{
	unsigned int count = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');
		const char *one = strstr(line, part), *also = strstr(line, other);

		if (!end)
			break;
		count += one && one < end && also && also < end;
	}
	return count;
}

static void dump_json(const char *const *args)
{
	cr_expect_eq(command_run(&tool, daemon_a.dir, args), 0, "%s", tool.err);
}

static void expect_dumped(uint32_t rank, uint32_t steps)
{
	char member[160], suffix[8];

	snprintf(suffix, sizeof(suffix), "%u", rank);
	snprintf(member, sizeof(member), "{\"channel\":\"%s\",", channel_name(suffix));
	cr_expect_eq(lines_with(tool.out, member, "\"type\":\"step_end\""), steps, "rank %u", rank);
}

Test(many_instance, a_dump_of_an_instance_names_the_channel_of_every_object)
{
	open_ranks();
	open_rank(&draft, 0, true);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		run_steps(rank, STEPS);
	cr_assert(all_published());
	dump_json((const char *[]){"dump", name, "--json", NULL});
	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect_dumped(rank, STEPS);
	cr_expect_null(strstr(tool.out, ".draft"));
	cr_expect_eq(lines_with(tool.out, "{", "\"seq\""),
		     lines_with(tool.out, "{\"channel\"", "\"seq\""));
	command_free(&tool);
}

Test(many_instance, a_dump_of_one_channel_is_as_it_was)
{
	open_ranks();
	run_steps(0, STEPS);
	dump_json((const char *[]){"dump", channel_name("0"), "--json", NULL});
	cr_expect_null(strstr(tool.out, "\"channel\""));
	command_free(&tool);
}

Test(many_instance, a_dump_that_follows_joins_ranks_that_appear)
{
	open_rank(&engines[0], 0, false);
	run_steps(0, STEPS);
	command_start(&tool, daemon_a.dir,
		      (const char *[]){"dump", name, "--json", "--until-idle", "3", NULL});
	open_rank(&engines[1], 1, false);
	run_steps(1, STEPS);
	cr_assert_eq(command_wait(&tool), 0, "%s", tool.err);
	expect_dumped(0, STEPS);
	expect_dumped(1, STEPS);
	command_free(&tool);
}

Test(many_instance, totals_are_those_of_one_channel)
{
	open_ranks();
	cr_expect_eq(
		command_run(&tool, daemon_a.dir, (const char *[]){"dump", name, "--count", NULL}),
		2);
	cr_expect(strstr(tool.err, "/RANK"), "%s", tool.err);
	command_free(&tool);
}
