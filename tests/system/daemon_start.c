/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's beginning and end: options, runtime directory, signals. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel/namespaces.h"
#include "channel/socket.h"
#include "tests/support/container.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

static struct test_daemon daemon_a, daemon_b;

/* ---- options ------------------------------------------------------------ */

static void expect_usage(const char *const *args, const char *text)
{
	cr_expect_eq(test_daemon_run(&daemon_a, args), 2);
	cr_expect(strstr(daemon_a.log, text), "\"%s\" is not in: %s", text, daemon_a.log);
}

Test(daemon_options, an_unknown_option_is_named)
{
	expect_usage((const char *[]){"--frobnicate", NULL}, "--frobnicate");
}

Test(daemon_options, an_option_without_its_value_is_named)
{
	expect_usage((const char *[]){"--ring-size", NULL}, "--ring-size needs a value");
}

Test(daemon_options, a_size_that_is_none_is_named_with_what_is_allowed)
{
	expect_usage((const char *[]){"--ring-size", "32Q", NULL},
		     "--ring-size '32Q': must be a size from 256K to 64G");
	expect_usage((const char *[]){"--buffer-size", "32Q", NULL},
		     "--buffer-size '32Q': must be a size such as");
}

Test(daemon_options, a_size_beyond_64_bits_is_refused)
{
	expect_usage((const char *[]){"--ring-size", "99999999T", NULL}, "--ring-size");
}

Test(daemon_options, a_ring_that_no_model_can_have_is_refused_at_the_start)
{
	expect_usage((const char *[]){"--ring-size", "1K", NULL}, "--ring-size '1K'");
	expect_usage((const char *[]){"--ring-size", "255K", NULL}, "--ring-size '255K'");
	expect_usage((const char *[]){"--ring-size", "99T", NULL}, "--ring-size '99T'");
}

Test(daemon_options, a_count_of_none_is_refused)
{
	expect_usage((const char *[]){"--max-channels", "0", NULL}, "--max-channels '0'");
}

Test(daemon_options, an_unknown_level_is_refused)
{
	expect_usage((const char *[]){"--log-level", "loud", NULL}, "error, warn, info or debug");
}

Test(daemon_options, a_word_that_is_no_option_is_refused)
{
	expect_usage((const char *[]){"now", NULL}, "unexpected argument 'now'");
}

Test(daemon_options, a_pattern_that_fits_no_name_is_refused)
{
	expect_usage((const char *[]){"--lossless-drop", "rl-*/0,[", NULL},
		     "--lossless-drop 'rl-*/0,[': must be patterns parted by commas, none empty, "
		     "with each '[' closed");
}

Test(daemon_options, help_goes_to_standard_output_and_is_no_error)
{
	cr_expect_eq(test_daemon_run(&daemon_a, (const char *[]){"--help", NULL}), 0);
	cr_expect(strstr(daemon_a.log, "--ring-size SIZE"));
}

static bool output_to_full(void *ctx)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)ctx;
	return dup2(fd, STDOUT_FILENO) == STDOUT_FILENO;
}

Test(daemon_options, help_that_cannot_be_written_is_an_error)
{
	daemon_a.prepare = output_to_full;
	cr_expect_eq(test_daemon_run(&daemon_a, (const char *[]){"--help", NULL}), 1);
}

Test(daemon_options, an_unknown_group_is_named)
{
	expect_usage((const char *[]){"--group", "no-such-group-here", NULL},
		     "--group no-such-group-here: there is no such group on this machine");
}

/* ---- configuration file ------------------------------------------------- */

static void write_config_bytes(char path[64], const char *text, size_t bytes)
{
	FILE *file;

	snprintf(path, 64, "/tmp/r3ring-test-config.%d", getpid());
	file = fopen(path, "we");
	cr_assert(file);
	cr_assert_eq(fwrite(text, 1, bytes, file), bytes);
	fclose(file);
}

static void write_config(char path[64], const char *text)
{
	write_config_bytes(path, text, strlen(text));
}

static void expect_bytes_error(const char *text, size_t bytes, const char *expected)
{
	char path[64];

	write_config_bytes(path, text, bytes);
	cr_expect_eq(test_daemon_run(&daemon_a, (const char *[]){"--config", path, NULL}), 2);
	cr_expect(strstr(daemon_a.log, expected), "\"%s\" is not in: %s", expected, daemon_a.log);
	for (const char *c = daemon_a.log; *c; c++)
		cr_expect(*c == '\n' || (*c >= ' ' && *c <= '~'), "byte %#x is shown", *c);
	unlink(path);
}

static void expect_config_error(const char *text, const char *expected)
{
	expect_bytes_error(text, strlen(text), expected);
}

Test(daemon_config, bytes_that_are_no_text_are_named_and_not_shown)
{
	static const char zero[] = "log-level = info\nring-size\0 = 32M\n";
	static const char only[] = "\0\0\0\0";

	expect_config_error("log-level = \033[31minfo\n", ":1: byte 0x1b in column 13 is no text");
	expect_config_error("log-level = info\nx\377\376 = 1\n", ":2: byte 0xff in column 2");
	expect_config_error("\177ELF\2\1\1", ":1: byte 0x7f in column 1 is no text");
	expect_bytes_error(zero, sizeof(zero) - 1, ":2: byte 0x00 in column 10 is no text");
	expect_bytes_error(only, sizeof(only) - 1, ":1: byte 0x00 in column 1 is no text");
}

Test(daemon_config, an_unknown_name_is_told_with_its_line)
{
	expect_config_error("# sizes\nring-size = 1M\nring-sise = 2M\n", ":3: no setting is "
									 "called 'ring-sise'");
}

Test(daemon_config, a_bad_value_is_told_with_its_line)
{
	expect_config_error("\nmax-readers = many\n", ":2: max-readers = 'many'");
	expect_config_error("lossless-policy = wait\n", ":1: lossless-policy = 'wait'");
	expect_config_error("stall-limit = 0\n", ":1: stall-limit = '0'");
	expect_config_error("release-gpu = maybe\n",
			    ":1: release-gpu = 'maybe': must be yes or no");
}

Test(daemon_config, a_setting_that_is_given_twice_is_told_with_both_lines)
{
	expect_config_error("ring-size = 1M\n\nring-size = 2M\n",
			    ":3: ring-size was given in line 1 already");
}

Test(daemon_config, a_line_without_equals_is_told)
{
	expect_config_error("log-level info\n", ":1: 'log-level info'");
}

Test(daemon_config, a_file_that_is_not_there_is_named)
{
	const char *const args[] = {"--config", "/nowhere/r3ringd.conf", NULL};

	cr_expect_eq(test_daemon_run(&daemon_a, args), 2);
	cr_expect(strstr(daemon_a.log, "/nowhere/r3ringd.conf: No such file"));
}

Test(daemon_config, a_directory_is_no_file_of_settings)
{
	expect_usage((const char *[]){"--config", "/tmp", NULL},
		     "--config /tmp: Is a directory: name a file of");
}

Test(daemon_config, a_switch_has_a_value_in_the_file_only)
{
	char path[64];

	write_config(path, "release-gpu = yes\nallow-mps = no\n");
	test_daemon_start(&daemon_a, (const char *[]){"--config", path, "--allow-mps", NULL});
	unlink(path);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	expect_usage((const char *[]){"--release-gpu", "yes", NULL}, "unexpected argument 'yes'");
}

/* Of the ring of channel "hangup/0". */
static void expect_ring_bytes(long bytes)
{
	char path[160];
	struct stat ring;

	snprintf(path, sizeof(path), "/dev/shm/r3ring.%u.%s.0.1", geteuid(),
		 engine_instance(daemon_a.dir, "hangup"));
	cr_assert_eq(stat(path, &ring), 0, "%s", path);
	cr_expect_eq(ring.st_size, bytes, "%ld", (long)ring.st_size);
}

Test(daemon_config, hangup_reads_the_file_again)
{
	struct r3ring_error err = {0};
	struct engine engine_a;
	char path[64];

	write_config(path, "log-level = warn # quiet\n");
	test_daemon_start(&daemon_a,
			  (const char *[]){"--config", path, "--log-level", "info", NULL});
	write_config(path, "max-readers = 7\nring-size = 256K\n");
	kill(daemon_a.pid, SIGHUP);
	cr_expect(test_daemon_said(&daemon_a, "configuration read again"));
	cr_expect_null(strstr(daemon_a.log, "started again"));
	cr_expect_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "hangup"),
				 4096, &err),
		     0, "%s", err.text);
	expect_ring_bytes(262144);
	engine_close(&engine_a);
	write_config(path, "max-readers = none\n");
	kill(daemon_a.pid, SIGHUP);
	cr_expect(test_daemon_said(&daemon_a, "the old one holds"));
	unlink(path);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_config, hangup_names_what_is_in_force_only_after_a_restart)
{
	char path[64];

	write_config(path, "max-readers = 7\n");
	test_daemon_start(&daemon_a, (const char *[]){"--config", path, NULL});
	write_config(path, "max-readers = 8\nlossless-policy = drop\nlossless-drop = a/*\n");
	kill(daemon_a.pid, SIGHUP);
	cr_expect(test_daemon_said(&daemon_a, "in force only once r3ringd is started again: "
					      "lossless-policy, lossless-drop\n"));
	unlink(path);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- its socket --------------------------------------------------------- */

Test(daemon_socket, one_that_was_removed_is_made_again_and_said)
{
	struct r3ring_error err = {0};
	struct engine engine_a;
	char path[160];

	test_daemon_start(&daemon_a, NULL);
	snprintf(path, sizeof(path), "%s/%s", daemon_a.dir, R3RING_SOCKET_NAME);
	cr_assert_eq(unlink(path), 0);
	cr_expect(test_daemon_said(&daemon_a, "was removed: made again"));
	cr_expect_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "socket"),
				 16, &err),
		     0, "%s", err.text);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- who it is ---------------------------------------------------------- */

Test(daemon_identity, failure_31_its_namespaces_are_told_before_a_buffer_is_made)
{
	const struct namespaces own = namespaces_of_this_process();
	struct r3ring_message whois = {.type = R3RING_MSG_WHOIS};
	const struct r3ring_identity_message *identity;
	struct r3ring_error err = {0};
	struct socket_inbox inbox;
	int fd;

	test_daemon_start(&daemon_a, (const char *[]){NULL});
	fd = socket_connect(daemon_a.dir, &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_assert_eq(socket_ask(fd, &whois, sizeof(whois), NULL, 0, NULL, 0, &inbox,
				R3RING_MSG_IDENTITY, sizeof(*identity), 20000, &err),
		     0, "%s", err.text);
	identity = (const void *)inbox.u.bytes;
	cr_expect_neq(own.pid, 0);
	cr_expect_eq(identity->pid_namespace, own.pid);
	cr_expect_neq(own.ipc, 0);
	cr_expect_eq(identity->ipc_namespace, own.ipc);
	close(fd);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- runtime directory -------------------------------------------------- */

Test(daemon_dir, one_daemon_a_directory_and_the_message_names_its_pid)
{
	char expected[64];

	test_daemon_start(&daemon_a, NULL);
	snprintf(daemon_b.dir, sizeof(daemon_b.dir), "%s", daemon_a.dir);
	cr_expect_eq(test_daemon_run(&daemon_b, NULL), 1);
	snprintf(expected, sizeof(expected), "another r3ringd (pid %d)", daemon_a.pid);
	cr_expect(strstr(daemon_b.log, expected), "%s", daemon_b.log);
	daemon_b.dir[0] = '\0';
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_dir, a_lock_that_a_dying_daemon_still_holds_is_waited_for)
{
	const int dying_ms = 300; /* what the end of a large process takes */
	char path[128];
	int status, fd;
	pid_t holder;

	test_daemon_start(&daemon_a, NULL);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	snprintf(path, sizeof(path), "%s/%s", daemon_a.dir, R3RING_LOCK_NAME);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	holder = fork();
	if (holder == 0) {
		poll(NULL, 0, dying_ms);
		_exit(0);
	}
	close(fd);
	test_daemon_restart(&daemon_a, NULL);
	waitpid(holder, &status, 0);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_dir, a_socket_that_a_dead_daemon_left_is_no_hindrance)
{
	test_daemon_start(&daemon_a, NULL);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

Test(daemon_dir, a_file_of_another_kind_in_the_sockets_place_is_left_alone)
{
	char path[128];
	struct stat status;

	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0);
	snprintf(path, sizeof(path), "%s/r3ringd.sock", daemon_a.dir);
	close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	cr_expect_eq(test_daemon_run(&daemon_a, NULL), 1);
	cr_expect(strstr(daemon_a.log, "r3ringd.sock is there and is no socket: move it away"),
		  "%s", daemon_a.log);
	cr_expect_eq(lstat(path, &status), 0);
	cr_expect(S_ISREG(status.st_mode));
}

Test(daemon_dir, one_whose_parent_is_missing_is_refused_with_the_remedy)
{
	const char *const args[] = {"--runtime-dir", "/tmp/r3ring-not-there/r3ring", NULL};

	cr_expect_eq(test_daemon_run(&daemon_a, args), 1);
	cr_expect(strstr(daemon_a.log,
			 "/tmp/r3ring-not-there/r3ring cannot be made: No such file or "
			 "directory: make the one above it first"),
		  "%s", daemon_a.log);
}

/* What its file system has room for: itself, the directory above, and so many files. */
static void expect_full(unsigned int files, const char *what)
{
	static const char *const args[] = {"--runtime-dir", "/dev/shm/r3ring", NULL};
	char size[48], why[128];
	struct container full = {.shm_size = size};

	snprintf(size, sizeof(size), "64k,nr_inodes=%u", files + 1);
	if (container_make(&full, why, sizeof(why)))
		cr_skip_test("%s", why);
	daemon_a.prepare = container_join;
	daemon_a.prepare_ctx = &full;
	cr_expect_eq(test_daemon_run(&daemon_a, args), 1);
	cr_expect(strstr(daemon_a.log, what), "\"%s\" is not in: %s", what, daemon_a.log);
	cr_expect(strstr(daemon_a.log,
			 ": No space left on device: its file system is full (see df -h and "
			 "df -i): make room there, or choose another directory with "
			 "--runtime-dir"),
		  "%s", daemon_a.log);
}

Test(daemon_dir, one_that_is_full_is_told_with_what_had_no_room)
{
	expect_full(0, "runtime directory /dev/shm/r3ring cannot be made");
	expect_full(1, "lock /dev/shm/r3ring/r3ringd.lock");
	expect_full(2, "directory /dev/shm/r3ring/segments");
	expect_full(3, "directory /dev/shm/r3ring/generations");
	expect_full(4, "socket /dev/shm/r3ring/r3ringd.sock");
}

Test(daemon_dir, a_path_too_long_for_a_socket_is_refused_with_the_limit)
{
	char dir[200] = "/tmp/";

	memset(dir + 5, 'x', 120);
	cr_expect_eq(test_daemon_run(&daemon_a, (const char *[]){"--runtime-dir", dir, NULL}), 1);
	cr_expect(strstr(daemon_a.log, "takes at most 107"), "%s", daemon_a.log);
}

Test(daemon_dir, a_directory_that_others_may_write_is_refused)
{
	test_daemon_start(&daemon_a, NULL);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	chmod(daemon_a.dir, 0777);
	cr_expect_eq(test_daemon_run(&daemon_a, NULL), 1);
	cr_expect(strstr(daemon_a.log, "may be written by others"));
}

Test(daemon_dir, failure_30_a_directory_of_another_user_is_refused)
{
	test_daemon_start(&daemon_a, NULL);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	if (chown(daemon_a.dir, 65534, (gid_t)-1) < 0)
		cr_skip_test("needs root");
	cr_expect_eq(test_daemon_run(&daemon_a, NULL), 1);
	cr_expect(strstr(daemon_a.log, "belongs to user 65534"), "%s", daemon_a.log);
}

/* ---- end ---------------------------------------------------------------- */

static void expect_clean_end(int signal_number)
{
	char socket_path[128];

	test_daemon_start(&daemon_a, NULL);
	snprintf(socket_path, sizeof(socket_path), "%s/%s", daemon_a.dir, R3RING_SOCKET_NAME);
	cr_expect_eq(access(socket_path, F_OK), 0);
	kill(daemon_a.pid, signal_number);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(access(socket_path, F_OK), -1);
	cr_expect(strstr(daemon_a.log, "ended in good order"));
}

Test(daemon_end, terminate_ends_it_in_good_order)
{
	expect_clean_end(SIGTERM);
}

Test(daemon_end, interrupt_ends_it_in_good_order)
{
	expect_clean_end(SIGINT);
}

/* ---- control loop ------------------------------------------------------- */

Test(daemon_loop, it_runs_on_epoll_where_io_uring_is_refused_and_says_so)
{
	static struct container without_io_uring = {.io_uring_error = EPERM};

	daemon_a.prepare = container_prepare;
	daemon_a.prepare_ctx = &without_io_uring;
	test_daemon_start(&daemon_a, NULL);
	cr_expect(strstr(daemon_a.log, "runs on epoll"), "%s", daemon_a.log);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}
