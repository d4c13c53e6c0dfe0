/* SPDX-License-Identifier: Apache-2.0 */
/* From a real producer through a real daemon to a reader. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/container.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct listener listener_a;

static void open_engine(struct engine *engine, const char *instance, uint32_t max_rows)
{
	struct r3ring_error err = {0};

	cr_assert_eq(engine_open(engine, daemon_a.dir, engine_instance(daemon_a.dir, instance),
				 max_rows, &err),
		     0, "%s", err.text);
}

static int64_t begin_request(struct engine *engine, const char *id)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = id};

	return r3ring_request_begin(engine->producer, &request);
}

Test(daemon_capture, every_id_of_every_step_reaches_a_reader)
{
	int64_t handle, step = 0;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "e2e", 64);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "e2e"));
	handle = begin_request(&engine_a, "request one");
	for (uint32_t i = 1; i <= 20; i++) {
		step = engine_step(&engine_a, handle, i);
		cr_assert_eq(step, i);
		cr_assert(listener_read_until(&listener_a, listener_has_step, i));
	}
	cr_expect_eq(listener_a.wrong, 0);
	cr_expect_eq(listener_a.ids_checked, 210 * ENGINE_LAYERS * ENGINE_TOP_K);
	cr_expect_eq(listener_a.complete, 20);
	cr_expect_eq(listener_a.records[R3RING_STEP], 20);
	cr_expect_eq(listener_a.records[R3RING_REQUEST], 1);
	engine_close(&engine_a);
	listener_close(&listener_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_capture, it_captures_on_epoll_too)
{
	static struct container without_io_uring = {.io_uring_error = ENOSYS};

	daemon_a.prepare = container_prepare;
	daemon_a.prepare_ctx = &without_io_uring;
	test_daemon_start(&daemon_a, NULL);
	cr_assert(strstr(daemon_a.log, "runs on epoll"));
	open_engine(&engine_a, "epoll", 64);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "epoll"));
	for (uint64_t i = 1; i <= 5; i++) {
		engine_step(&engine_a, 0, 10);
		cr_assert(listener_read_until(&listener_a, listener_has_step, i));
	}
	cr_expect_eq(listener_a.complete, 5);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
	cr_expect(test_daemon_said(&daemon_a, "drained, 5 of 5 steps complete"));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_capture, steps_of_no_row_one_row_and_more_rows_than_a_record_are_whole)
{
	const uint32_t rows[] = {0, 1, 5000, 8192};
	uint64_t total = 0;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "sizes", 8192);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "sizes"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		engine_step(&engine_a, 0, rows[i]);
		total += rows[i];
		cr_assert(listener_read_until(&listener_a, listener_has_step, i + 1));
	}
	cr_expect_eq(listener_a.wrong, 0);
	cr_expect_eq(listener_a.complete, 4);
	cr_expect_eq(listener_a.ids_checked, total * ENGINE_LAYERS * ENGINE_TOP_K);
	/* 4096 rows a record: 1 + 1 + 2 + 2 records a layer. */
	cr_expect_eq(listener_a.records[R3RING_LAYER], 6 * ENGINE_LAYERS);
	engine_close(&engine_a);
	listener_close(&listener_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- while a step runs -------------------------------------------------- */

static bool has_layers(const struct listener *listener, uint64_t count)
{
	return listener->records[R3RING_LAYER] >= count;
}

Test(daemon_capture, layers_whose_bell_rang_are_published_before_the_step_ends)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = 8,
		.row_end = 8,
		.valid_end = 8,
		.doorbell_layers = 2,
	};
	int64_t number;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "bells", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "bells"));
	number = r3ring_step_begin(engine_a.producer, &step, NULL);
	for (uint32_t layer = 0; layer < 3; layer++)
		engine_capture(&engine_a, number, layer, 8);
	cr_assert(listener_read_until(&listener_a, has_layers, 2));
	cr_expect_eq(listener_a.records[R3RING_STEP_END], 0);
	for (uint32_t layer = 3; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, number, layer, 8);
	engine_end(&engine_a);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.complete, 1);
	cr_expect_eq(listener_a.records[R3RING_LAYER], ENGINE_LAYERS);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

Test(daemon_capture, failure_08_rows_of_a_shard_keep_their_place_in_the_whole_step)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = 12,
		.row_begin = 4,
		.row_end = 10,
		.valid_end = 9,
	};
	struct r3ring_record record;
	struct r3ring_view view;
	int64_t number;
	unsigned int layers = 0;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "shard", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "shard"));
	number = r3ring_step_begin(engine_a.producer, &step, NULL);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, number, layer, 12);
	engine_end(&engine_a);
	while (layers < ENGINE_LAYERS) {
		if (r3ring_reader_next(listener_a.reader, &view) != 1) {
			cr_assert_eq(r3ring_reader_wait(listener_a.reader, 5000), 1);
			continue;
		}
		r3ring_record_decode(&record, view.type, view.data, view.len, NULL);
		if (view.type == R3RING_LAYER) {
			const struct r3ring_layer_record *head = &record.u.layer.head;

			cr_expect_eq(head->row, 4);
			cr_expect_eq(head->rows, 6);
			cr_expect_eq(head->valid_rows, 5);
			cr_expect_eq(head->total_rows, 12);
			cr_expect_eq(record.u.layer.ids[0], engine_id(1, layers, 4, 0));
			/* The last row is padding. */
			cr_expect_eq(record.u.layer.ids[5 * ENGINE_TOP_K], R3RING_MISSING);
			layers++;
		}
		cr_assert_eq(r3ring_reader_check(listener_a.reader), 0);
	}
	engine_close(&engine_a);
}

Test(daemon_capture, failure_06_a_layer_that_never_came_is_missing_not_zero)
{
	int64_t step;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "missing", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "missing"));
	step = engine_begin(&engine_a, 0, 8);
	for (uint32_t layer = 1; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, 8);
	engine_end(&engine_a);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.partial, 1);
	cr_expect_eq(listener_a.records[R3RING_LAYER], ENGINE_LAYERS - 1);
	cr_expect_eq(listener_a.missing_layers[R3RING_CAUSE_NOT_CAPTURED], 1);
	cr_expect_eq(listener_a.wrong, 0);
}

Test(daemon_capture, failure_07_fewer_rows_than_were_run_make_the_layer_missing)
{
	int64_t step;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "few", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "few"));
	step = engine_begin(&engine_a, 0, 8);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, layer == 2 ? 7 : 8);
	engine_end(&engine_a);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.partial, 1);
	cr_expect_eq(listener_a.missing_layers[R3RING_CAUSE_TOO_FEW_ROWS], 1);
	cr_expect_eq(listener_a.records[R3RING_LAYER], ENGINE_LAYERS - 1);
	cr_expect_eq(listener_a.wrong, 0);
}

Test(daemon_capture, a_layer_captured_twice_is_an_overlap_and_missing)
{
	int64_t step;

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "twice", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "twice"));
	step = engine_begin(&engine_a, 0, 8);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(&engine_a, step, layer, 8);
	engine_capture(&engine_a, step, 1, 8);
	engine_end(&engine_a);
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.partial, 1);
	cr_expect_eq(listener_a.missing_layers[R3RING_CAUSE_OVERLAP], 1);
}

Test(daemon_capture, a_second_producer_of_a_channel_is_refused_and_told_of_the_first)
{
	struct r3ring_error err = {0};
	struct engine second = {0};
	char expected[32];

	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "busy", 16);
	cr_expect_eq(
		engine_open(&second, daemon_a.dir, engine_instance(daemon_a.dir, "busy"), 16, &err),
		-EBUSY);
	snprintf(expected, sizeof(expected), "(pid %d)", getpid());
	cr_expect(strstr(err.text, expected), "%s", err.text);
	engine_close(&engine_a);
}

Test(daemon_capture, failure_04_a_channel_may_be_opened_again_after_close)
{
	test_daemon_start(&daemon_a, NULL);
	open_engine(&engine_a, "again", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "again"));
	engine_step(&engine_a, 0, 4);
	engine_close(&engine_a);
	open_engine(&engine_a, "again", 16);
	engine_step(&engine_a, 0, 4);
	engine_step(&engine_a, 0, 4);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_assert(listener_read_until(&listener_a, listener_has_step, 2));
	cr_expect_eq(listener_a.closed_reason, R3RING_CLOSED_NEXT);
	cr_expect_eq(listener_a.complete, 3);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
}

Test(daemon_capture, the_end_of_the_daemon_closes_channels_and_leaves_no_name_behind)
{
	const char *instance;

	test_daemon_start(&daemon_a, NULL);
	instance = engine_instance(daemon_a.dir, "closing");
	open_engine(&engine_a, "closing", 16);
	cr_expect_eq(test_shm_names(instance), 1);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "closing"));
	engine_step(&engine_a, 0, 4);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(listener_read_until(&listener_a, listener_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_expect_eq(listener_a.complete, 1);
	cr_expect_eq(test_shm_names(instance), 0);
	engine_close(&engine_a);
}

/* A process that begins step 2 and is killed in the middle of it. */
static pid_t start_victim(const char *instance, int ready_fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct engine engine;
		struct r3ring_error err;
		int64_t step;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (engine_open(&engine, daemon_a.dir, engine_instance(daemon_a.dir, instance), 16,
				&err) < 0)
			_exit(1);
		begin_request(&engine, "never finished");
		engine_step(&engine, 0, 8);
		step = engine_begin(&engine, 0, 8);
		engine_capture(&engine, step, 0, 8);
		if (write(ready_fd, "x", 1) != 1)
			_exit(1);
		pause();
	}
	return pid;
}

Test(daemon_capture, a_producer_killed_in_a_step_leaves_it_partial)
{
	int fds[2];
	char byte;
	pid_t pid;

	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(pipe(fds), 0);
	pid = start_victim("victim", fds[1]);
	cr_assert_eq(read(fds[0], &byte, 1), 1);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "victim"));
	cr_assert(listener_read_until(&listener_a, listener_has_step, 1));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* At once: its name is free although no event may have told of the death. */
	open_engine(&engine_a, "victim", 16);
	cr_assert(listener_read_until(&listener_a, listener_has_generation, 2));
	cr_expect_eq(listener_a.complete, 1);
	cr_expect_eq(listener_a.partial, 1);
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_PRODUCER_DIED], 0);
	cr_expect_eq(listener_a.missing_layers[R3RING_CAUSE_PRODUCER_DIED], ENGINE_LAYERS);
	cr_expect_eq(listener_a.wrong, 0);
	cr_expect_eq(listener_a.aborted, 1);
	engine_close(&engine_a);
}
