/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of other releases: refused in words on either end. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <r3ring/abi.h>
#include <r3ring/proto.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/worker.h"

#define BASE "faults-version"
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct listener listener_a;
static struct worker impostor;
static char dir[64], text[96];

static void expect(const char *const *args, const char *version, const char *remedy)
{
	struct command tool;

	cr_expect_eq(command_run(&tool, dir, args), 1, "%s: %d", args[0], tool.code);
	cr_expect(strstr(tool.err, version), "%s: %s", args[0], tool.err);
	cr_expect(strstr(tool.err, remedy), "%s: %s", args[0], tool.err);
	command_free(&tool);
}

/* ---- a segment of another layout ---------------------------------------- */

static struct r3ring_segment_header *map_header(const char *name)
{
	int fd = shm_open(name, O_RDWR, 0);
	void *header = mmap(NULL, sizeof(struct r3ring_segment_header), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	cr_assert_neq(header, MAP_FAILED);
	close(fd);
	return header;
}

Test(faults_version, a_segment_of_another_major_is_refused_and_its_readers_read_on, .timeout = 120)
{
	const char *channel;
	struct r3ring_segment_header *header;

	test_daemon_start(&daemon_a, NULL);
	snprintf(dir, sizeof(dir), "%s", daemon_a.dir);
	cr_assert_eq(engine_open(&engine_a, dir, engine_instance(dir, BASE), 16, NULL), 0);
	channel = engine_channel(dir, BASE);
	listener_open(&listener_a, dir, channel);
	header = map_header(r3ring_reader_segment(listener_a.reader));
	header->abi_major = R3RING_ABI_MAJOR + 1;
	expect(ARGS("dump", channel), "ABI 2.0, this library reads 1.x", "install");
	expect(ARGS("dump", channel, "--count"), "ABI 2.0, this library reads 1.x", "install");
	engine_step(&engine_a, 0, 4);
	cr_expect(listener_read_until(&listener_a, listener_has_step, 1));
	cr_expect_eq(listener_a.wrong, 0);
	header->abi_major = R3RING_ABI_MAJOR;
	listener_close(&listener_a);
	engine_close(&engine_a);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}

/* ---- a daemon of another protocol --------------------------------------- */

/* Answers whatever is said in the words of another release. */
static int answer_all(struct worker_page *page, const void *ctx)
{
	const struct r3ring_message answer = {
		.magic = R3RING_PROTO_MAGIC,
		.major = R3RING_PROTO_MAJOR + 1,
		.type = R3RING_MSG_STATUS_DONE,
		.len = sizeof(answer),
	};
	int listener = *(const int *)ctx;
	uint8_t question[4096];

	(void)page;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (recv(fd, question, sizeof(question), 0) > 0)
			send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
		close(fd);
	}
	return 0;
}

static int listen_in(const char *where)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", where, R3RING_SOCKET_NAME);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 16), 0);
	return fd;
}

static void remove_dir(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, R3RING_SOCKET_NAME);
	unlink(path);
	unlink(text);
	rmdir(dir);
}

Test(faults_version, a_daemon_of_another_protocol_is_refused_by_each_command, .fini = remove_dir,
     .timeout = 120)
{
	FILE *file;
	int listener;

	snprintf(dir, sizeof(dir), "/tmp/r3ring-test.%d.XXXXXX", getpid());
	cr_assert(mkdtemp(dir));
	snprintf(text, sizeof(text), "%s/text", dir);
	file = fopen(text, "we");
	cr_assert(file);
	fputs("some words\n", file);
	fclose(file);
	listener = listen_in(dir);
	worker_start(&impostor, answer_all, &listener);
	expect(ARGS("status"), "version", "release");
	expect(ARGS("dump", "x/0"), "version", "release");
	expect(ARGS("produce", "--instance", "x", "--model", "gpt-oss-20b", "--text", text),
	       "version", "release");
	worker_kill(&impostor);
}
