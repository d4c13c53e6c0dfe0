/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that send nonsense, or lie: refused in words, and nobody else notices. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_daemon/refusals.h"
#include "channel/socket.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/raw_producer.h"
#include "tests/support/stand_still.h"

static struct test_daemon daemon_a;
static struct raw_producer raw_a;
static struct engine engine_a;
static struct listener listener_a;

/* An honest channel beside the hostile peer: it must notice nothing. */
static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, (const char *[]){"--log-level", "debug", NULL});
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "honest"),
				 16, &err),
		     0, "%s", err.text);
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "honest"));
}

static void finish(void)
{
	engine_step(&engine_a, 0, 4);
	cr_expect(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.complete, 1);
	cr_expect_eq(listener_a.wrong, 0);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

TestSuite(daemon_hostile, .init = start, .fini = finish);

static int connect_raw(void)
{
	struct r3ring_error err;
	int fd = socket_connect(daemon_a.dir, &err);

	cr_assert_geq(fd, 0, "%s", err.text);
	return fd;
}

/* ---- messages ----------------------------------------------------------- */

static void expect_refused(int fd, int code)
{
	struct socket_inbox inbox;

	cr_assert_eq(socket_receive(fd, &inbox, 5000), 0);
	cr_expect_eq(inbox.u.head.type, R3RING_MSG_REFUSED);
	cr_expect_eq(((struct r3ring_refused_message *)(void *)inbox.u.bytes)->code, code);
	cr_expect_eq(socket_receive(fd, &inbox, 5000), -EPIPE);
	close(fd);
}

Test(daemon_hostile, noise_is_refused)
{
	uint8_t noise[1000];
	int fd = connect_raw();

	memset(noise, 0xA5, sizeof(noise));
	cr_assert_eq(send(fd, noise, sizeof(noise), 0), sizeof(noise));
	expect_refused(fd, -EBADMSG);
}

static unsigned int refusals_said(void)
{
	unsigned int said = 0;

	for (const char *at = daemon_a.log; (at = strstr(at, " refused: ")); at++)
		said++;
	return said;
}

/* Twice: what it waits for may take as long as it waits. */
Test(daemon_hostile, of_noise_without_end_some_is_listed_and_the_rest_counted, .timeout = 60)
{
	const unsigned int more = 7;
	char rest[64];

	for (unsigned int i = 0; i < REFUSALS_LISTED + more; i++) {
		int fd = connect_raw();

		cr_assert_eq(send(fd, "noise", 5, 0), 5);
		expect_refused(fd, -EBADMSG);
	}
	snprintf(rest, sizeof(rest), "%u more refusals in %u s are not listed", more,
		 REFUSALS_SECONDS);
	cr_expect(test_daemon_said(&daemon_a, rest) || test_daemon_said(&daemon_a, rest), "%s",
		  daemon_a.log);
	cr_expect_eq(refusals_said(), REFUSALS_LISTED);
}

/* As one that was killed while the daemon was stopped. */
Test(daemon_hostile, one_that_did_not_wait_for_its_answer_is_no_warning)
{
	struct r3ring_message message = {.type = R3RING_MSG_GET_STATUS};
	int fd = connect_raw();

	stand_still(daemon_a.pid);
	cr_assert_eq(socket_send(fd, &message, sizeof(message), NULL, 0, NULL, 0), 0);
	close(fd);
	kill(daemon_a.pid, SIGCONT);
	cr_expect(test_daemon_said(&daemon_a, "hung up: status cannot be sent"), "%s",
		  daemon_a.log);
	cr_expect_null(strstr(daemon_a.log, "refused"));
}

Test(daemon_hostile, an_empty_message_is_taken_for_a_hang_up)
{
	struct socket_inbox inbox;
	int fd = connect_raw();

	cr_assert_eq(send(fd, "", 0, 0), 0);
	cr_expect_eq(socket_receive(fd, &inbox, 5000), -EPIPE);
	close(fd);
}

Test(daemon_hostile, another_protocol_version_is_refused_as_such)
{
	struct r3ring_message message = {
		.magic = R3RING_PROTO_MAGIC,
		.major = R3RING_PROTO_MAJOR + 1,
		.type = R3RING_MSG_GET_STATUS,
		.len = sizeof(message),
	};
	int fd = connect_raw();

	cr_assert_eq(send(fd, &message, sizeof(message), 0), sizeof(message));
	expect_refused(fd, -EPROTO);
}

Test(daemon_hostile, a_length_that_is_not_the_messages_is_refused)
{
	struct r3ring_message message = {
		.magic = R3RING_PROTO_MAGIC,
		.major = R3RING_PROTO_MAJOR,
		.type = R3RING_MSG_HELLO_PRODUCER,
		.len = 4000,
	};
	int fd = connect_raw();

	cr_assert_eq(send(fd, &message, sizeof(message), 0), sizeof(message));
	expect_refused(fd, -EBADMSG);
}

static void expect_type_refused(uint16_t type)
{
	struct r3ring_message message = {.type = type};
	int fd = connect_raw();

	cr_assert_eq(socket_send(fd, &message, sizeof(message), NULL, 0, NULL, 0), 0);
	expect_refused(fd, -EBADMSG);
}

Test(daemon_hostile, messages_that_are_too_short_or_none_for_a_daemon_are_refused)
{
	expect_type_refused(0);
	expect_type_refused(R3RING_MSG_WELCOME_PRODUCER);
	expect_type_refused(R3RING_MSG_HELLO_PRODUCER);
	expect_type_refused(R3RING_MSG_HELLO_READER);
	expect_type_refused(R3RING_MSG_BYE);
	expect_type_refused(999);
}

Test(daemon_hostile, descriptors_that_nobody_asked_for_are_closed)
{
	struct r3ring_message message = {.type = R3RING_MSG_GET_STATUS};
	struct socket_inbox inbox;
	int fds[2], to_send[2];
	int fd = connect_raw();
	char byte;

	cr_assert_eq(pipe(fds), 0);
	to_send[0] = to_send[1] = fds[1];
	cr_assert_eq(socket_send(fd, &message, sizeof(message), NULL, 0, to_send, 2), 0);
	close(fds[1]);
	cr_expect_eq(socket_receive(fd, &inbox, 5000), 0);
	/* The pipe ends only when the daemon's copies are closed too. */
	cr_expect_eq(read(fds[0], &byte, 1), 0);
	close(fd);
}

/* ---- hellos ------------------------------------------------------------- */

static void expect_hello(int code, const char *text)
{
	cr_expect_eq(raw_producer_hello(&raw_a), code, "%d", raw_a.err.code);
	cr_expect(strstr(raw_a.err.text, text), "\"%s\" is not in: %s", text, raw_a.err.text);
	raw_producer_close(&raw_a);
}

Test(daemon_hostile, a_hello_as_it_should_be_is_welcome)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	cr_expect_eq(raw_producer_hello(&raw_a), 0, "%s", raw_a.err.text);
	cr_expect_eq(raw_a.welcome.generation, 1);
	raw_producer_close(&raw_a);
}

Test(daemon_hostile, a_channel_name_with_a_slash_is_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, "../etc");
	expect_hello(-EINVAL, "instance");
}

Test(daemon_hostile, a_channel_name_without_its_end_is_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	memset(raw_a.hello.channel.instance, 'a', sizeof(raw_a.hello.channel.instance));
	expect_hello(-EINVAL, "");
}

Test(daemon_hostile, missing_descriptors_are_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	raw_a.fd_count = 1;
	expect_hello(-EBADMSG, "descriptors");
}

Test(daemon_hostile, pages_that_may_shrink_are_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	raw_a.fds[0] = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_eq(ftruncate(raw_a.fds[0], (off_t)raw_a.pages.bytes), 0);
	expect_hello(-EBADMSG, "seals");
}

Test(daemon_hostile, a_buffer_of_another_size_than_it_says_is_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	raw_a.hello.buffer_bytes *= 2;
	expect_hello(-EBADMSG, "capture buffer");
}

Test(daemon_hostile, a_file_is_no_pidfd)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	raw_a.fds[2] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	expect_hello(-EBADMSG, "no pidfd");
}

Test(daemon_hostile, a_schema_cut_short_is_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	raw_a.hello.schema_len -= 8;
	expect_hello(-EBADMSG, "");
}

Test(daemon_hostile, a_schema_with_other_layers_than_the_pages_is_refused)
{
	struct r3ring_schema_record *schema = (void *)raw_a.schema;

	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	schema->layers = RAW_LAYERS - 1;
	raw_a.hello.schema_len -= (uint32_t)sizeof(struct r3ring_layer_entry);
	expect_hello(-EBADMSG, "layers");
}

Test(daemon_hostile, a_second_hello_on_one_connection_is_refused)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	cr_expect_eq(raw_producer_hello(&raw_a), 0, "%s", raw_a.err.text);
	expect_hello(-EBADMSG, "has a channel already");
}

/* ---- pages and entries -------------------------------------------------- */

static void welcome(void)
{
	raw_producer_prepare(&raw_a, daemon_a.dir, engine_instance(daemon_a.dir, "raw"));
	cr_assert_eq(raw_producer_hello(&raw_a), 0, "%s", raw_a.err.text);
}

static void expect_cut_off(const char *text)
{
	cr_expect_eq(raw_producer_await_refusal(&raw_a), -EBADMSG);
	cr_expect(strstr(raw_a.err.text, text), "\"%s\" is not in: %s", text, raw_a.err.text);
	raw_producer_close(&raw_a);
}

Test(daemon_hostile, a_queue_position_beyond_the_queue_cuts_the_producer_off)
{
	welcome();
	raw_a.pages.words->step_head.position = 1ull << 40;
	raw_a.pages.words->wake++;
	raw_producer_submit_record(&raw_a, R3RING_REQUEST, "", 0);
	expect_cut_off("corrupt");
}

Test(daemon_hostile, an_extent_beyond_the_buffer_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_step(&raw_a, 1, 8, RAW_BUFFER_BYTES - 64, 0);
	expect_cut_off("extent");
}

Test(daemon_hostile, an_extent_whose_end_wraps_around_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_step(&raw_a, 1, 8, UINT64_MAX - 127, 0);
	expect_cut_off("extent");
}

Test(daemon_hostile, a_slot_that_is_none_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_step(&raw_a, 1, 8, 0, 1u << 30);
	expect_cut_off("slot");
}

Test(daemon_hostile, more_rows_than_the_schema_allows_cut_the_producer_off)
{
	welcome();
	raw_producer_submit_step(&raw_a, 1, RAW_MAX_ROWS + 1, 0, 0);
	expect_cut_off("rows");
}

Test(daemon_hostile, a_step_number_that_goes_back_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_step(&raw_a, 5, 0, EXTENT_NONE, 0);
	raw_producer_submit_step(&raw_a, 5, 0, EXTENT_NONE, 0);
	expect_cut_off("step 5 after step 5");
}

Test(daemon_hostile, a_record_that_is_not_the_producers_to_say_cuts_it_off)
{
	const struct r3ring_closed_record closed = {.reason = R3RING_CLOSED_SHUTDOWN};

	welcome();
	raw_producer_submit_record(&raw_a, R3RING_CLOSED, &closed, sizeof(closed));
	expect_cut_off("may not submit CLOSED");
}

Test(daemon_hostile, a_record_that_does_not_decode_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_record(&raw_a, R3RING_REQUEST, "short", 5);
	expect_cut_off("");
}

Test(daemon_hostile, an_entry_of_no_bytes_cuts_the_producer_off)
{
	welcome();
	raw_producer_submit_record(&raw_a, R3RING_REQUEST, "", 0);
	expect_cut_off("REQUEST");
}

/* ---- users -------------------------------------------------------------- */

Test(daemon_hostile, failure_30_a_peer_of_another_user_is_refused_in_words)
{
	char socket_path[128];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	/* Even where the directory's mode would let it in. */
	snprintf(socket_path, sizeof(socket_path), "%s/%s", daemon_a.dir, R3RING_SOCKET_NAME);
	cr_assert_eq(chmod(daemon_a.dir, 0755), 0);
	cr_assert_eq(chmod(socket_path, 0777), 0);
	pid = fork();
	if (pid == 0) {
		struct socket_inbox inbox;
		struct r3ring_error err;
		const struct r3ring_refused_message *refused = (const void *)inbox.u.bytes;
		int fd;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(10);
		fd = socket_connect(daemon_a.dir, &err);
		if (fd < 0 || socket_receive(fd, &inbox, 5000) != 0)
			_exit(11);
		if (inbox.u.head.type != R3RING_MSG_REFUSED || refused->code != -EACCES)
			_exit(12);
		_exit(strstr(refused->text, "user 65534 may not connect") ? 0 : 13);
	}
	waitpid(pid, &status, 0);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0);
}

Test(daemon_hostile, failure_30_the_socket_is_closed_to_other_users)
{
	char socket_path[128];
	struct stat status;

	snprintf(socket_path, sizeof(socket_path), "%s/%s", daemon_a.dir, R3RING_SOCKET_NAME);
	cr_assert_eq(stat(socket_path, &status), 0);
	cr_expect_eq(status.st_mode & 0777, 0660);
}
