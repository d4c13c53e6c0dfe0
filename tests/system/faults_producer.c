/* SPDX-License-Identifier: Apache-2.0 */
/* Engines that collide, are killed, and begin again. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/ledger.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"

#define BASE "faults-producer"
#define ROWS 8u
#define ALL_LAYERS ((1u << ENGINE_LAYERS) - 1)

static struct test_daemon daemon_a;
static struct worker worker_a;
static struct ledger ledger_a;
static char instance[R3RING_INSTANCE_MAX + 1];

static void start(void)
{
	test_daemon_start(&daemon_a, NULL);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
}

static void finish(void)
{
	ledger_close(&ledger_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
}

TestSuite(faults_producer, .init = start, .fini = finish, .timeout = 120);

/* What a worker is to do. */
struct plan {
	uint32_t rows;
	uint32_t layers;     /* of the step that it is killed in */
	uint64_t generation; /* that it expects to be, for the names of its requests */
};

static int open_engine(struct engine *engine, struct worker_page *page)
{
	return engine_open(engine, daemon_a.dir, instance, 2 * ROWS, &page->err);
}

static int64_t begin_request(struct engine *engine, uint64_t generation, unsigned int place)
{
	char id[32];
	const struct r3ring_request request = {.size = sizeof(request), .id = id};

	snprintf(id, sizeof(id), "g%u-%u", (unsigned int)generation, place);
	return r3ring_request_begin(engine->producer, &request);
}

static void note_progress(struct worker_page *page)
{
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, page->progress + 1);
}

static int run_until_stopped(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	/* A buffer of many such steps: none is lost where the daemon is merely slow. */
	if (engine_open(&engine, daemon_a.dir, instance, 512 * ROWS, &page->err) < 0)
		return 1;
	note_progress(page);
	while (!r3ring_load_relaxed_u64(&page->stop)) {
		engine_step(&engine, 0, ROWS);
		note_progress(page);
		worker_compute();
	}
	r3ring_producer_get_stats(engine.producer, &page->stats);
	engine_close(&engine);
	return 0;
}

/* Ends the worker in good order, and the daemon; reads all there is. */
static void end_all(void)
{
	r3ring_store_relaxed_u64(&worker_a.page->stop, 1);
	cr_assert_eq(worker_wait(&worker_a), 0, "%s", worker_a.page->err.text);
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	test_daemon_restart(&daemon_a, NULL);
}

static void write_text(char path[96])
{
	FILE *file;

	snprintf(path, 96, "%s/text", daemon_a.dir);
	file = fopen(path, "we");
	cr_assert(file);
	fputs("a text of a few words\n", file);
	fclose(file);
}

Test(faults_producer, a_second_engine_is_refused_in_words_and_the_first_is_not_disturbed)
{
	struct command second;
	char pid[32], text[96];

	write_text(text);
	worker_start(&worker_a, run_until_stopped, NULL);
	cr_assert(worker_reaches(&worker_a, 10));
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	for (int tries = 0; tries < 3; tries++) {
		const char *const args[] = {"produce",     "--instance", instance, "--model",
					    "gpt-oss-20b", "--text",     text,     "--hidden",
					    "16",          "--requests", "1",      NULL};

		cr_expect_eq(command_run(&second, daemon_a.dir, args), 1);
		snprintf(pid, sizeof(pid), "(pid %d)", worker_a.pid);
		cr_expect(strstr(second.err, pid), "%s", second.err);
		cr_expect(strstr(second.err, "another --instance or --rank"), "%s", second.err);
		command_free(&second);
	}
	cr_assert(worker_reaches(&worker_a, worker_a.page->progress + 10));
	end_all();
	cr_expect_eq(ledger_a.count, 1);
	cr_expect_eq(ledger_unaccounted(&ledger_a, worker_a.page->stats.steps), 0);
	cr_expect_eq(ledger_newest(&ledger_a)->complete, worker_a.page->stats.steps);
	cr_expect_eq(ledger_a.wrong, 0);
}

/* One whole step, then one in which it waits to be killed. */
static int run_into_a_step(struct worker_page *page, const void *ctx)
{
	const struct plan *plan = ctx;
	struct engine engine = {0};
	int64_t handle, step;

	if (open_engine(&engine, page) < 0)
		return 1;
	engine.doorbell_layers = 1;
	handle = begin_request(&engine, plan->generation, 1);
	begin_request(&engine, plan->generation, 2);
	engine_step(&engine, handle, plan->rows);
	step = engine_begin(&engine, handle, plan->rows);
	for (uint32_t layer = 0; layer < plan->layers; layer++)
		engine_capture(&engine, step, layer, plan->rows);
	note_progress(page);
	pause();
	return 0;
}

/* Step 2 of the newest generation was announced with these layers. */
static bool has_layers_of_step_2(const struct ledger *ledger, uint64_t layers)
{
	const struct ledger_generation *generation = ledger_newest(ledger);

	return generation->newest_step >= 2 && generation->steps[2].announced &&
	       generation->steps[2].layers == layers;
}

/* Behind all else that is told of an engine's death. */
static bool has_ended_requests(const struct ledger *ledger, uint64_t requests)
{
	return ledger_newest(ledger)->aborted == requests;
}

/* Of all causes. */
static json_int_t lost_figure(const json_t *channel, const char *key)
{
	json_int_t sum = 0;
	const char *cause;
	json_t *counts;

	json_object_foreach (json_object_get(channel, "lost"), cause, counts)
		sum += json_integer_value(json_object_get(counts, key));
	return sum;
}

/* The daemon counts what this reader was given, and no row twice. */
static void expect_status_of_the_ledger(void)
{
	const struct ledger_generation *generation = ledger_newest(&ledger_a);
	json_t *channel = channel_status(daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	json_int_t rows = 0;

	for (uint64_t i = 1; i <= generation->newest_step; i++)
		rows += generation->steps[i].layers ? generation->steps[i].rows : 0;
	cr_assert(channel);
	cr_expect_eq(json_integer_value(json_object_get(channel, "rows")), rows);
	cr_expect_eq(json_integer_value(json_object_get(channel, "steps")),
		     (json_int_t)generation->newest_step);
	cr_expect_eq(json_integer_value(json_object_get(channel, "steps_partial")),
		     (json_int_t)generation->partial);
	cr_expect_eq(lost_figure(channel, "steps"),
		     (json_int_t)generation->lost_steps[R3RING_CAUSE_PRODUCER_DIED]);
	cr_expect_eq(lost_figure(channel, "rows"),
		     (json_int_t)generation->lost_rows[R3RING_CAUSE_PRODUCER_DIED]);
	json_decref(channel);
}

static void kill_in_step(uint32_t layers)
{
	const struct plan plan = {.rows = ROWS, .layers = layers, .generation = 1};
	const uint32_t rang = (1u << layers) - 1;
	const struct ledger_generation *generation;

	worker_start(&worker_a, run_into_a_step, &plan);
	cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	cr_assert(ledger_read_until(&ledger_a, has_layers_of_step_2, rang));
	worker_kill(&worker_a);
	cr_assert(ledger_read_until(&ledger_a, has_ended_requests, 2));
	generation = ledger_newest(&ledger_a);
	cr_expect_eq(generation->steps[1].complete, 1);
	cr_expect_eq(generation->steps[2].partial, 1);
	cr_expect_eq(generation->steps[2].layers, rang);
	cr_expect_eq(generation->steps[2].missing, ALL_LAYERS & ~rang);
	cr_expect_eq(generation->missing_layers[R3RING_CAUSE_PRODUCER_DIED],
		     ENGINE_LAYERS - layers);
	cr_expect_eq(generation->steps[2].lost, 0);
	cr_expect_eq(generation->lost_steps[R3RING_CAUSE_PRODUCER_DIED], 0);
	cr_expect_eq(ledger_unaccounted(&ledger_a, 2), 0);
	cr_expect_eq(ledger_a.wrong, 0);
	cr_assert(status_becomes(daemon_a.dir, engine_channel(daemon_a.dir, BASE), status_has_ended,
				 0));
	expect_status_of_the_ledger();
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	expect_status_of_the_ledger();
}

Test(faults_producer, killed_before_any_layer_rang_the_whole_step_is_lost)
{
	kill_in_step(0);
}

Test(faults_producer, killed_after_two_layers_rang_these_are_right_and_the_rest_is_named)
{
	kill_in_step(2);
}

Test(faults_producer, killed_after_all_layers_but_one_rang_only_that_one_is_missing)
{
	kill_in_step(ENGINE_LAYERS - 1);
}

/* Steps until the queue has been full for a while. */
static int run_until_the_queue_is_full(struct worker_page *page, const void *ctx)
{
	struct engine engine = {0};

	(void)ctx;
	if (open_engine(&engine, page) < 0)
		return 1;
	engine_step(&engine, 0, ROWS);
	note_progress(page);
	while (!r3ring_load_relaxed_u64(&page->stop))
		worker_compute();
	do {
		engine_step(&engine, 0, ROWS);
		r3ring_producer_get_stats(engine.producer, &page->stats);
	} while (page->stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL] < 1000);
	note_progress(page);
	pause();
	return 0;
}

static bool has_told_of(const struct ledger *ledger, uint64_t step)
{
	const struct ledger_generation *generation = ledger_newest(ledger);

	return generation->newest_step >= step;
}

Test(faults_producer, failure_20_steps_that_a_killed_engine_had_begun_and_not_queued_are_counted)
{
	const struct r3ring_producer_stats *stats;
	const struct ledger_generation *generation;

	worker_start(&worker_a, run_until_the_queue_is_full, NULL);
	cr_assert(worker_reaches(&worker_a, 1));
	ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
	cr_assert(ledger_read_until(&ledger_a, ledger_has_ended_step, 1));
	stand_still(daemon_a.pid);
	r3ring_store_relaxed_u64(&worker_a.page->stop, 1);
	cr_assert(worker_reaches(&worker_a, 2));
	worker_kill(&worker_a);
	kill(daemon_a.pid, SIGCONT);
	stats = &worker_a.page->stats;
	cr_assert(ledger_read_until(&ledger_a, has_told_of, stats->steps));
	generation = ledger_newest(&ledger_a);
	cr_expect_eq(generation->lost_steps[R3RING_CAUSE_PRODUCER_DIED],
		     stats->dropped_steps[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(generation->lost_rows[R3RING_CAUSE_PRODUCER_DIED],
		     stats->dropped_rows[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(generation->lost_steps[R3RING_CAUSE_BUFFER_FULL],
		     stats->dropped_steps[R3RING_CAUSE_BUFFER_FULL]);
	cr_expect_eq(ledger_unaccounted(&ledger_a, stats->steps), 0);
	cr_expect_eq(ledger_a.gaps, 0);
	cr_expect_eq(ledger_a.wrong, 0);
}

Test(faults_producer, failure_50_engines_killed_and_started_anew_are_generations_of_their_own)
{
	struct plan plan = {.layers = 2};

	for (uint64_t i = 1; i <= 6; i++) {
		plan.generation = i;
		plan.rows = (uint32_t)i;
		worker_start(&worker_a, run_into_a_step, &plan);
		cr_assert(worker_reaches(&worker_a, 1), "%s", worker_a.page->err.text);
		if (i == 1)
			ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
		cr_assert(ledger_read_until(&ledger_a, ledger_has_generations, i));
		cr_assert(ledger_read_until(&ledger_a, has_layers_of_step_2, 3));
		worker_kill(&worker_a);
	}
	cr_assert(ledger_read_until(&ledger_a, has_ended_requests, 2));
	for (unsigned int i = 0; i < 6; i++) {
		const struct ledger_generation *generation = &ledger_a.generations[i];

		cr_expect_eq(generation->number, i + 1);
		cr_expect_eq(generation->steps[1].rows, i + 1);
		cr_expect_eq(generation->steps[1].complete, 1);
		cr_expect_eq(generation->steps[2].rows, i + 1);
		cr_expect_eq(generation->steps[2].partial, 1);
		cr_expect_eq(generation->missing_layers[R3RING_CAUSE_PRODUCER_DIED],
			     ENGINE_LAYERS - 2);
		cr_expect_eq(generation->lost_rows[R3RING_CAUSE_PRODUCER_DIED], 0);
		cr_expect_eq(generation->aborted, 2);
		cr_expect_eq(generation->attributed, 2);
		cr_expect_eq(generation->foreign, 0);
		cr_expect_eq(generation->closed, i < 5 ? R3RING_CLOSED_NEXT : 0);
		cr_expect_eq(generation->next, i < 5 ? i + 2 : 0);
	}
	cr_expect_eq(ledger_a.wrong, 0);
}

/* As many steps as its rows, then a close in good order. */
static int run_and_close(struct worker_page *page, const void *ctx)
{
	const struct plan *plan = ctx;
	struct engine engine = {0};
	int64_t handle;

	if (open_engine(&engine, page) < 0)
		return 1;
	handle = begin_request(&engine, plan->generation, 1);
	for (uint32_t i = 0; i < plan->rows; i++) {
		engine_step(&engine, handle, plan->rows);
		worker_compute();
	}
	r3ring_request_end(engine.producer, handle, R3RING_END_FINISHED, 0, plan->rows);
	r3ring_producer_get_stats(engine.producer, &page->stats);
	engine_close(&engine);
	return 0;
}

Test(faults_producer, failure_50_readers_follow_an_engine_that_closes_and_opens_again)
{
	struct plan plan = {0};

	for (uint64_t i = 1; i <= 5; i++) {
		plan.generation = i;
		plan.rows = (uint32_t)i;
		worker_start(&worker_a, run_and_close, &plan);
		cr_assert_eq(worker_wait(&worker_a), 0, "%s", worker_a.page->err.text);
		if (i == 1)
			ledger_open(&ledger_a, daemon_a.dir, engine_channel(daemon_a.dir, BASE));
		cr_assert(ledger_read_until(&ledger_a, ledger_has_generations, i));
		cr_assert(ledger_read_until(&ledger_a, has_told_of, i));
	}
	test_daemon_stop(&daemon_a);
	cr_assert(ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN));
	test_daemon_restart(&daemon_a, NULL);
	for (unsigned int i = 0; i < 5; i++) {
		const struct ledger_generation *generation = &ledger_a.generations[i];

		cr_expect_eq(generation->number, i + 1);
		cr_expect_eq(generation->newest_step, i + 1);
		cr_expect_eq(generation->complete, i + 1);
		cr_expect_eq(generation->attributed, i + 1);
		cr_expect_eq(generation->foreign, 0);
		cr_expect_eq(generation->aborted, 0);
	}
	cr_expect_eq(ledger_a.wrong, 0);
}
