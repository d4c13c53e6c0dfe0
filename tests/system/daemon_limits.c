/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon refuses because it would be too much, and what full queues lose. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel/socket.h"
#include "tests/support/container.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/raw_producer.h"
#include "tests/support/stand_still.h"

static struct test_daemon daemon_a;
static struct engine engine_a, engine_b;
static struct listener listener_a, listener_b;

static void expect_refused(const char *instance, uint32_t max_rows, int code, const char *text)
{
	struct r3ring_error err = {0};

	cr_expect_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, instance),
				 max_rows, &err),
		     code, "%s", err.text);
	cr_expect(strstr(err.text, text), "\"%s\" is not in: %s", text, err.text);
}

static void open_engine(const char *instance, uint32_t max_rows)
{
	struct r3ring_error err = {0};

	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, instance),
				 max_rows, &err),
		     0, "%s", err.text);
}

Test(daemon_limits, channels_per_user)
{
	test_daemon_start(&daemon_a, (const char *[]){"--max-channels", "1", NULL});
	open_engine("first", 16);
	expect_refused("second", 16, -EDQUOT, "--max-channels allows: raise it, or close one");
	engine_close(&engine_a);
}

Test(daemon_limits, an_ended_channel_makes_room_those_with_a_reader_last)
{
	char drained[128];

	test_daemon_start(&daemon_a, (const char *[]){"--max-channels", "2", NULL});
	open_engine("kept", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "kept"));
	engine_close(&engine_a);
	open_engine("gone", 16);
	engine_close(&engine_a);
	snprintf(drained, sizeof(drained), "%s: drained, ", engine_channel(daemon_a.dir, "gone"));
	cr_assert(test_daemon_said(&daemon_a, drained));
	open_engine("third", 16);
	cr_expect(test_daemon_said(&daemon_a, "has ended, removed"));
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, "gone")), 0);
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, "kept")), 1);
	engine_close(&engine_a);
	listener_close(&listener_a);
}

Test(daemon_limits, memory_per_user)
{
	test_daemon_start(&daemon_a, (const char *[]){"--max-memory", "8M", NULL});
	expect_refused("large", 16, -EDQUOT, "--max-memory allows: raise it, close a channel, or");
}

Test(daemon_limits, capture_buffers)
{
	test_daemon_start(&daemon_a, (const char *[]){"--buffer-size", "64K", NULL});
	expect_refused("buffer", 4096, -EDQUOT, "--buffer-size allows: raise it, or set a smaller");
}

/* Asks for a channel on a connection that stays. Returns the answer's type. */
static uint16_t attach(int fd, struct socket_inbox *inbox)
{
	struct r3ring_hello_reader_message hello = {
		.head.type = R3RING_MSG_HELLO_READER,
	};

	snprintf(hello.channel.instance, sizeof(hello.channel.instance), "%s",
		 engine_instance(daemon_a.dir, "read"));
	cr_assert_eq(socket_send(fd, &hello.head, sizeof(hello), NULL, 0, NULL, 0), 0);
	cr_assert_eq(socket_receive(fd, inbox, 5000), 0);
	socket_inbox_close_fds(inbox);
	return inbox->u.head.type;
}

static bool limit_file_size(void *ctx)
{
	const struct rlimit limit = {1 << 20, 1 << 20};

	(void)ctx;
	return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

Test(daemon_limits, a_ring_beyond_the_limit_on_file_sizes_is_refused_with_the_remedy)
{
	daemon_a.prepare = limit_file_size;
	test_daemon_start(&daemon_a, NULL);
	expect_refused("fsize", 16, -EFBIG, "ulimit -f");
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* Leaves the daemon FREE descriptors, whatever it inherited. A new one takes the lowest number. */
static void leave_descriptors(unsigned int free_count)
{
	rlim_t number = 0;
	char path[64];

	for (;; number++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)daemon_a.pid,
			 (unsigned int)number);
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (free_count-- == 0)
			break;
	}
	cr_assert_eq(prlimit(daemon_a.pid, RLIMIT_NOFILE, &(struct rlimit){number, number}, NULL),
		     0);
}

Test(daemon_limits, a_daemon_out_of_descriptors_says_so)
{
	unsigned int named = 0;

	/* From none for the connection to one too few for the channel. */
	for (unsigned int free_count = 0; free_count <= 5; free_count++) {
		struct r3ring_error err = {0};

		test_daemon_start(&daemon_a, NULL);
		leave_descriptors(free_count);
		cr_expect_lt(engine_open(&engine_b, daemon_a.dir,
					 engine_instance(daemon_a.dir, "fds"), 16, &err),
			     0, "with %u free", free_count);
		cr_expect(test_daemon_said(&daemon_a, "out of file descriptors"),
			  "with %u free: %s", free_count, daemon_a.log);
		named += err.code == -EMFILE && strstr(err.text, "ulimit -n");
		test_daemon_close(&daemon_a);
	}
	cr_expect_eq(named, 5, "where there is a connection, its end is told");
}

Test(daemon_limits, readers_per_user)
{
	static struct socket_inbox inbox;
	const struct r3ring_refused_message *refused = (const void *)inbox.u.bytes;
	int first, second;

	test_daemon_start(&daemon_a, (const char *[]){"--max-readers", "1", NULL});
	open_engine("read", 16);
	first = socket_connect(daemon_a.dir, NULL);
	second = socket_connect(daemon_a.dir, NULL);
	cr_expect_eq(attach(first, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(attach(first, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(attach(second, &inbox), R3RING_MSG_REFUSED);
	cr_expect_eq(refused->code, -EDQUOT);
	cr_expect(strstr(refused->text, "--max-readers allows: raise it"));
	close(first);
	close(second);
	engine_close(&engine_a);
}

Test(daemon_limits, a_ring_too_small_for_a_record_of_64_rows_names_the_size_it_needs)
{
	struct raw_producer raw;
	struct r3ring_schema_record *schema = (void *)raw.schema;

	/* 64 + 64 x 256 x 2 bytes are more than an eighth of an arena of 256 KiB. */
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	raw_producer_prepare(&raw, daemon_a.dir, engine_instance(daemon_a.dir, "small"));
	schema->max_rows = 64;
	schema->experts = 256;
	schema->top_k = 256;
	cr_expect_eq(raw_producer_hello(&raw), -EMSGSIZE);
	cr_expect(strstr(raw.err.text, "need at least 720896 (r3ringd --ring-size 704K)"), "%s",
		  raw.err.text);
	raw_producer_close(&raw);
}

Test(daemon_limits, the_smallest_ring_that_is_taken_serves_a_small_model)
{
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	open_engine("least", 16);
	engine_close(&engine_a);
}

/* The daemon gets a /dev/shm of 1 MiB. */
static void prepare_small_shm(void)
{
	static struct container small = {.shm_size = "1m"};
	char why[128];

	if (container_make(&small, why, sizeof(why)))
		cr_skip_test("%s", why);
	daemon_a.prepare = container_join;
	daemon_a.prepare_ctx = &small;
}

Test(daemon_limits, failure_01_a_full_dev_shm_is_an_error_that_names_need_free_and_remedy)
{
	prepare_small_shm();
	test_daemon_start(&daemon_a, NULL);
	expect_refused("shm", 16, -ENOSPC, "needs 19005440 bytes");
	expect_refused("shm", 16, -ENOSPC, "1048576 are free");
	expect_refused("shm", 16, -ENOSPC, "--ring-size");
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_limits, failure_01_what_fits_dev_shm_runs)
{
	prepare_small_shm();
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "512K", NULL});
	open_engine("fits", 16);
	for (int i = 0; i < 10; i++)
		engine_step(&engine_a, 0, 16);
	engine_close(&engine_a);
	cr_expect(test_daemon_said(&daemon_a, "drained, "));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- losses ------------------------------------------------------------- */

/* The daemon stands still while the engine goes on. */
static void run_while_stopped(uint32_t steps, uint32_t rows, struct r3ring_producer_stats *stats)
{
	stand_still(daemon_a.pid);
	for (uint32_t i = 0; i < steps; i++)
		engine_step(&engine_a, 0, rows);
	r3ring_producer_get_stats(engine_a.producer, stats);
	kill(daemon_a.pid, SIGCONT);
}

Test(daemon_limits, failure_20_steps_without_room_in_the_buffer_are_announced_exactly)
{
	struct r3ring_producer_stats stats;

	test_daemon_start(&daemon_a, NULL);
	open_engine("buffer", 16);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "buffer"));
	run_while_stopped(40, 16, &stats);
	cr_assert_gt(stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL], 0);
	/* May find no room either, and is counted then. */
	engine_step(&engine_a, 0, 1);
	r3ring_producer_get_stats(engine_a.producer, &stats);
	cr_assert(listener_read_until(&listener_a, listener_has_lost, R3RING_CAUSE_BUFFER_FULL));
	engine_close(&engine_a);
	cr_expect(test_daemon_said(&daemon_a, "drained, "));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(listener_read_until(&listener_a, listener_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_BUFFER_FULL],
		     stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL]);
	cr_expect_eq(listener_a.lost_rows[R3RING_CAUSE_BUFFER_FULL],
		     stats.dropped_rows[R3RING_CAUSE_BUFFER_FULL]);
	cr_expect_eq(listener_a.records[R3RING_STEP], stats.steps);
	cr_expect_eq(listener_a.wrong, 0);
}

Test(daemon_limits, failure_20_steps_without_room_in_the_queue_are_announced_exactly)
{
	struct r3ring_producer_stats stats;

	test_daemon_start(&daemon_a, NULL);
	open_engine("queue", 1);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "queue"));
	/* A STEP entry has at least 256 bytes, the queue 4 MiB. */
	run_while_stopped(20000, 1, &stats);
	cr_assert_gt(stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL], 0);
	engine_close(&engine_a);
	cr_expect(test_daemon_said(&daemon_a, "drained, "));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(listener_read_until(&listener_a, listener_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_expect_eq(listener_a.lost_steps[R3RING_CAUSE_QUEUE_FULL],
		     stats.dropped_steps[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(listener_a.lost_rows[R3RING_CAUSE_QUEUE_FULL],
		     stats.dropped_rows[R3RING_CAUSE_QUEUE_FULL]);
	cr_expect_eq(listener_a.overruns, 0);
	cr_expect_eq(listener_a.wrong, 0);
}

/* ---- small rings -------------------------------------------------------- */

Test(daemon_limits, a_lapped_reader_is_never_given_a_wrong_row)
{
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	open_engine("lapped", 64);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "lapped"));
	listener_open(&listener_b, daemon_a.dir, engine_channel(daemon_a.dir, "lapped"));
	for (uint64_t i = 1; i <= 100; i++) {
		engine_step(&engine_a, 0, 64);
		cr_assert(listener_read_until(&listener_b, listener_has_step, i));
	}
	cr_expect_eq(listener_b.complete, 100);
	cr_expect_eq(listener_b.wrong, 0);
	engine_close(&engine_a);
	cr_assert(test_daemon_said(&daemon_a, "drained, "));
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_assert(listener_read_until(&listener_a, listener_has_closed, R3RING_CLOSED_SHUTDOWN));
	cr_expect_gt(listener_a.overruns, 0);
	cr_expect_gt(listener_a.records[R3RING_KEYFRAME], 0);
	cr_expect_eq(listener_a.wrong, 0);
}
