/* SPDX-License-Identifier: Apache-2.0 */
/* What readers tell the daemon when they register, what it refuses of that, and what status then
 * tells of them. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/reader_page.h>

#include "channel/socket.h"
#include "tests/support/reader_worker.h"
#include "tests/system/registered_stage.h"

TestSuite(registered_told, .init = registered_start, .fini = registered_stop, .timeout = 120);

/* ---- messages ------------------------------------------------------------------ */

/* Sends a hello of @bytes; returns the type of the answer, its descriptors in @inbox. */
static uint16_t ask(struct r3ring_hello_reader_message *hello, size_t bytes, int fd_sent, int fds,
		    struct socket_inbox *inbox)
{
	int fd = socket_connect(registered.daemon.dir, NULL);

	cr_assert_geq(fd, 0);
	hello->head.type = R3RING_MSG_HELLO_READER;
	cr_assert_eq(channel_name_parse(&hello->channel, registered.channel, NULL), 0);
	cr_assert_eq(socket_send(fd, &hello->head, bytes, NULL, 0, &fd_sent, (unsigned int)fds), 0);
	cr_assert_eq(socket_receive(fd, inbox, 5000), 0);
	return inbox->u.head.type;
}

Test(registered_told, the_hello_of_minor_version_0_is_still_taken)
{
	struct r3ring_hello_reader_message hello = {0};
	struct socket_inbox inbox;

	cr_expect_eq(ask(&hello, R3RING_HELLO_READER_MINOR0, -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(inbox.fd_count, 1);
	cr_expect_eq(channel_readers(registered.daemon.dir, registered.channel), 0);
}

Test(registered_told, the_page_is_sealed)
{
	struct r3ring_hello_reader_message hello = {0};
	struct socket_inbox inbox;
	struct stat st;

	cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_assert_eq(inbox.fd_count, 2);
	cr_expect_eq(fcntl(inbox.fds[1], F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	cr_assert_eq(fstat(inbox.fds[1], &st), 0);
	cr_expect_eq(st.st_size, R3RING_READER_PAGE_BYTES);
	cr_expect_lt(ftruncate(inbox.fds[1], 0), 0);
}

Test(registered_told, a_descriptor_that_is_no_pidfd_is_refused)
{
	struct r3ring_hello_reader_message hello = {.has_pidfd = 1};
	struct socket_inbox inbox;

	cr_expect_eq(ask(&hello, sizeof(hello), STDIN_FILENO, 1, &inbox), R3RING_MSG_REFUSED);
	hello.has_pidfd = 0;
	cr_expect_eq(ask(&hello, sizeof(hello), STDIN_FILENO, 1, &inbox), R3RING_MSG_REFUSED);
	hello.has_pidfd = 1;
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_REFUSED);
	cr_expect_eq(ask(&hello, sizeof(hello) - 8, -1, 0, &inbox), R3RING_MSG_REFUSED);
	cr_expect_eq(channel_readers(registered.daemon.dir, registered.channel), 0);
}

Test(registered_told, the_65th_reader_is_not_registered_and_the_65th_lossless_one_refused)
{
	struct r3ring_hello_reader_message hello = {0};
	struct r3ring_refused_message refused;
	struct socket_inbox inbox;

	for (int i = 0; i < 64; i++)
		cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_expect_eq(inbox.fd_count, 1);
	hello.lossless = 1;
	cr_expect_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_REFUSED);
	memcpy(&refused, inbox.u.bytes, sizeof(refused));
	cr_expect_eq(refused.code, -ENOSPC);
	cr_expect_eq(channel_readers(registered.daemon.dir, registered.channel), 64);
}

/* ---- status ------------------------------------------------------------------ */

/* What status tells of the one reader there is: free it. */
static char *told_label(void)
{
	json_t *object = channel_status(registered.daemon.dir, registered.channel);
	const json_t *reader = json_array_get(json_object_get(object, "readers"), 0);
	const char *label = json_string_value(json_object_get(reader, "label"));
	char *copy = label ? strdup(label) : NULL;

	json_decref(object);
	return copy;
}

static void expect_label(const char *label)
{
	char *told = told_label();

	cr_expect_str_eq(told, label);
	free(told);
}

Test(registered_told, status_tells_what_a_reader_reads_for)
{
	struct r3ring_reader_options given = registered_options();
	struct r3ring_reader *reader;
	struct r3ring_error err = {0};

	given.label = "collector:7";
	cr_assert_eq(r3ring_reader_open(&reader, &given, &err), 0, "%s", err.text);
	expect_label("collector:7");
	r3ring_reader_close(reader);
	cr_assert(reader_worker_wait(registered_nobody, NULL, 5000));
	given.label = "two words";
	cr_expect_eq(r3ring_reader_open(&reader, &given, &err), -EINVAL);
	cr_expect(strstr(err.text, "label"), "%s", err.text);
}

Test(registered_told, an_older_callers_reader_has_no_label)
{
	struct r3ring_reader_options given = registered_options();
	struct r3ring_reader *reader;

	given.size = offsetof(struct r3ring_reader_options, label);
	given.label = (const char *)1; /* behind what it knows of */
	cr_assert_eq(r3ring_reader_open(&reader, &given, NULL), 0);
	expect_label("");
	r3ring_reader_close(reader);
}

Test(registered_told, a_page_with_a_label_that_is_none_has_none_in_status)
{
	static const char lie[R3RING_READER_LABEL_BYTES] = "\x1b]0;\xff\"<b>";
	struct r3ring_hello_reader_message hello = {0};
	struct r3ring_reader_page *page;
	struct socket_inbox inbox;

	cr_assert_eq(ask(&hello, sizeof(hello), -1, 0, &inbox), R3RING_MSG_SEGMENT);
	cr_assert_eq(inbox.fd_count, 2);
	expect_label("");
	page = mmap(NULL, R3RING_READER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    inbox.fds[1], 0);
	cr_assert_neq(page, MAP_FAILED);
	memcpy(page->label, "older", 6);
	expect_label("older");
	memcpy(page->label, lie, sizeof(lie));
	expect_label("");
	memset(page->label, 'a', sizeof(lie));
	expect_label("");
	munmap(page, R3RING_READER_PAGE_BYTES);
}

Test(registered_told, status_tells_each_readers_place)
{
	struct r3ring_reader *reader = registered_open();
	json_t *object, *told;

	registered_read_all(reader);
	for (int i = 0; i < 10; i++)
		engine_step(&registered.engine, 0, REGISTERED_ROWS);
	cr_assert_eq(r3ring_reader_wait(reader, 5000), 1);
	object = channel_status(registered.daemon.dir, registered.channel);
	told = json_array_get(json_object_get(object, "readers"), 0);
	cr_expect_eq(json_integer_value(json_object_get(told, "pid")), getpid());
	cr_expect_str_eq(json_string_value(json_object_get(told, "mode")), "lossy");
	cr_expect_gt(json_integer_value(json_object_get(told, "lag_records")), 0);
	cr_expect_gt(json_integer_value(json_object_get(told, "lag_bytes")), 0);
	cr_expect_gt(json_integer_value(json_object_get(told, "got")), 0);
	json_decref(object);
	r3ring_reader_close(reader);
	cr_expect(reader_worker_wait(registered_nobody, NULL, 5000));
}
