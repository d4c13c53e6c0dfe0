/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a real daemon: which request their rows belong to, and their death. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/reader.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define ROWS 16u
#define STEPS_MAX 1000u

static struct test_daemon daemon_a;
static struct engine engine_a;
static char instance[R3RING_INSTANCE_MAX + 1], channel[R3RING_INSTANCE_MAX + 3];

/* A reader that attributes the rows of each step. */
struct attributor {
	struct r3ring_reader *reader;
	struct r3ring_requests *requests;
	uint64_t newest_step;
	uint64_t generation;
	char owner[64]; /* of the newest step's first span, "" when nobody's */
};

static void start(void)
{
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "requests"));
	snprintf(channel, sizeof(channel), "%s/0", instance);
}

TestSuite(reader_requests, .init = start, .timeout = 120);

static void start_engine(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, ROWS, &err), 0, "%s", err.text);
}

static int64_t begin_request(const char *id)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = id};
	int64_t handle = r3ring_request_begin(engine_a.producer, &request);

	cr_assert_gt(handle, 0);
	return handle;
}

static void attributor_open(struct attributor *a, enum r3ring_cursor_start from)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
		.from = from,
	};
	struct r3ring_error err = {0};

	*a = (struct attributor){.requests = r3ring_requests_create()};
	cr_assert_not_null(a->requests);
	cr_assert_eq(r3ring_reader_open(&a->reader, &options, &err), 0, "%s", err.text);
}

static void attributor_close(struct attributor *a)
{
	r3ring_reader_close(a->reader);
	r3ring_requests_destroy(a->requests);
}

static void take(struct attributor *a, const struct r3ring_view *view)
{
	struct r3ring_record record;
	const char *id;

	cr_assert_eq(r3ring_record_decode(&record, view->type, view->data, view->len, NULL), 0);
	cr_assert_eq(r3ring_requests_feed(a->requests, view, &record), 0);
	if (view->type != R3RING_STEP)
		return;
	cr_assert_eq(record.u.step.head.spans, 1);
	id = r3ring_requests_id(a->requests, record.u.step.spans[0].request);
	snprintf(a->owner, sizeof(a->owner), "%s", id ? id : "");
	a->newest_step = view->step;
	a->generation = view->generation;
}

/* Reads until the STEP record of @step of @generation was taken. */
static void read_step(struct attributor *a, uint64_t generation, uint64_t step)
{
	_Alignas(64) static uint8_t buffer[65536];
	struct r3ring_view view;

	while (a->generation < generation || a->newest_step < step) {
		int rc = r3ring_reader_wait(a->reader, 20000);

		cr_assert_eq(rc, 1, "step %llu does not come", (unsigned long long)step);
		rc = r3ring_reader_read(a->reader, &view, buffer, sizeof(buffer));
		if (rc == 1)
			take(a, &view);
		else
			cr_assert(rc == 0 || rc == -EPIPE, "read says %d", rc);
	}
}

Test(reader_requests, failure_49_a_late_reader_attributes_no_row_before_a_keyframe)
{
	struct attributor early, late;
	uint64_t step = 1;
	int64_t handle;

	start_engine();
	attributor_open(&early, R3RING_FROM_OLDEST);
	handle = begin_request("of-old");
	engine_step(&engine_a, handle, ROWS);
	read_step(&early, 1, 1);
	cr_assert_str_eq(early.owner, "of-old");

	attributor_open(&late, R3RING_FROM_LATEST);
	do {
		cr_assert_lt(step, STEPS_MAX, "there is no keyframe");
		engine_step(&engine_a, handle, ROWS);
		read_step(&early, 1, ++step);
		read_step(&late, 1, step);
		cr_assert_str_eq(early.owner, "of-old");
		cr_assert_str_eq(late.owner, r3ring_requests_ready(late.requests) ? "of-old" : "");
		cr_assert(step > 2 || !r3ring_requests_ready(late.requests));
	} while (!r3ring_requests_ready(late.requests));
	attributor_close(&early);
	attributor_close(&late);
	engine_close(&engine_a);
}

Test(reader_requests, failure_50_the_same_handle_of_a_restarted_engine_is_another_request)
{
	struct attributor follower;
	int64_t handle;

	start_engine();
	attributor_open(&follower, R3RING_FROM_OLDEST);
	handle = begin_request("first-life");
	engine_step(&engine_a, handle, ROWS);
	read_step(&follower, 1, 1);
	cr_assert_str_eq(follower.owner, "first-life");
	engine_close(&engine_a);

	start_engine();
	cr_assert_eq(begin_request("second-life"), handle);
	engine_step(&engine_a, handle, ROWS);
	follower.newest_step = 0;
	read_step(&follower, 2, 1);
	cr_assert_str_eq(follower.owner, "second-life");
	attributor_close(&follower);
	engine_close(&engine_a);
}

/* A child that reads until it is killed; @ready becomes readable when it does. */
static pid_t fork_reader(int ready[2])
{
	struct listener listener;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listener_open(&listener, daemon_a.dir, channel);
	listener_read_until(&listener, listener_has_step, 1);
	if (write(ready[1], "r", 1) != 1)
		_exit(1);
	listener_read_until(&listener, listener_has_step, UINT64_MAX);
	_exit(0);
}

Test(reader_requests, a_killed_reader_disturbs_neither_engine_nor_siblings)
{
	struct listener sibling;
	int ready[2], status;
	char byte;
	pid_t pid;

	start_engine();
	listener_open(&sibling, daemon_a.dir, channel);
	engine_step(&engine_a, 0, ROWS);
	pid = fork_reader(ready);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	for (uint64_t step = 2; step <= 50; step++) {
		cr_assert_eq(engine_step(&engine_a, 0, ROWS), (int64_t)step);
		cr_assert(listener_read_until(&sibling, listener_has_step, step));
	}
	cr_assert_eq(sibling.complete, 50);
	cr_assert_eq(sibling.wrong, 0);
	cr_assert_eq(sibling.overruns, 0);
	listener_close(&sibling);
	engine_close(&engine_a);
}
