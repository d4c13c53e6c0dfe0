/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing the daemon's connections: a daemon in this process, without its main loop, is
 * sent messages with descriptors of every kind (session_input.h) over several connections.
 * When all have hung up nothing may stay behind: no connection, no channel that is still
 * drained, no descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/peers.h"
#include "tests/fuzz/session_input.h"
#include "tests/support/raw_message.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TURNS 3 /* until a message is answered */
#define DRAIN_TURNS 2000
#define DRAIN_TURN_MS 10
#define CLEAN_EVERY 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct daemon daemon;
	char dir[64];
	struct pages pages;
	struct device *device;
	struct device_buffer buffer;
	int fds[SESSION_FD_KINDS];
	int fds_open; /* of this process, while nobody is connected */
	unsigned int inputs;
} rig;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("%s\n", what);
	fflush(stdout);
	abort();
}

/* ---- the daemon ---------------------------------------------------------- */

static void open_daemon(void)
{
	char *argv[] = {
		"r3ringd", "--runtime-dir",  rig.dir, "--ring-size",  "400K",  "--buffer-size",
		"1M",      "--max-channels", "3",     "--max-memory", "8M",    "--max-readers",
		"3",       "--stall-limit",  "1",     "--log-level",  "error", NULL};
	struct r3ring_error err;
	sigset_t set;

	must(options_parse(&rig.daemon.options, sizeof(argv) / sizeof(argv[0]) - 1, argv, &err) ==
		     OPTIONS_RUN,
	     err.text);
	rig.daemon.gid = PEERS_NO_GROUP;
	must(daemon_open(&rig.daemon, &err) == 0, err.text);
	/* Those that end the daemon end the fuzzer. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void turn(int times, int timeout_ms)
{
	for (int i = 0; i < times; i++)
		must(loop_turn(rig.daemon.loop, timeout_ms) == 0, "the control loop failed");
}

/* A channel is opened by a thread. */
static void answer(void)
{
	turn(TURNS, 0);
	for (int turns = 0; rig.daemon.openings; turns++) {
		must(turns < DRAIN_TURNS, "a channel is opened for ever");
		turn(1, DRAIN_TURN_MS);
	}
}

static bool busy(void)
{
	const struct channel *channel;

	for (channel = rig.daemon.channels; channel; channel = channel->next) {
		if (channel_draining(channel))
			return true;
	}
	return rig.daemon.sessions || rig.daemon.openings;
}

static void come_to_rest(void)
{
	int turns = 0;

	while (busy() && turns++ < DRAIN_TURNS)
		turn(1, DRAIN_TURN_MS);
	must(!busy(), "somebody who hung up is still served");
	while (rig.daemon.channels)
		channel_retire(rig.daemon.channels, R3RING_CLOSED_SHUTDOWN);
}

/* ---- descriptors --------------------------------------------------------- */

/* The sanitizers talk to a process of theirs through pipes. */
static bool is_theirs(int dir, const char *name)
{
	struct stat status, ours;

	if (fstatat(dir, name, &status, 0) < 0 || !S_ISFIFO(status.st_mode))
		return false;
	return fstat(rig.fds[SESSION_FD_PIPE], &ours) < 0 || status.st_ino != ours.st_ino;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	must(dir != NULL, "no /proc");
	while ((entry = readdir(dir)))
		count += !is_theirs(dirfd(dir), entry->d_name);
	closedir(dir);
	return count;
}

static int make_memfd(off_t bytes, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && ftruncate(fd, bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0, "memfd");
	return fd;
}

static int make_dead_pidfd(void)
{
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		_exit(0);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	waitpid(pid, NULL, 0);
	return fd;
}

static void make_fds(void)
{
	const struct device_ops *ops = &device_host_ops;
	struct r3ring_error err;
	int ends[2];

	must(pages_create(&rig.pages, SESSION_INPUT_LAYERS, SESSION_INPUT_LANE_BYTES,
			  SESSION_INPUT_LANE_BYTES, &err) == 0 &&
		     ops->open(&rig.device, &(struct device_options){0}, &err) == 0 &&
		     ops->buffer_alloc(rig.device, R3RING_BUFFER_HOST, SESSION_INPUT_BUFFER_BYTES,
				       &rig.buffer, &err) == 0,
	     "pages and buffer");
	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	rig.fds[SESSION_FD_PAGES] = rig.pages.fd;
	rig.fds[SESSION_FD_BUFFER] = rig.buffer.fd;
	rig.fds[SESSION_FD_PIDFD] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	rig.fds[SESSION_FD_DEAD_PIDFD] = make_dead_pidfd();
	rig.fds[SESSION_FD_PIPE] = ends[0];
	rig.fds[SESSION_FD_DIRECTORY] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig.fds[SESSION_FD_UNSEALED] = make_memfd((off_t)rig.pages.bytes, 0);
	rig.fds[SESSION_FD_SMALL] = make_memfd(1, SEALS);
	rig.fds[SESSION_FD_SOCKET] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	rig.fds[SESSION_FD_DEVICE] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

/* As a producer has them that has not begun. */
static void clear_pages(void)
{
	memset(rig.pages.words, 0, sizeof(*rig.pages.words));
	memset(rig.pages.step_lane, 0, sizeof(struct lane_entry));
	memset(rig.pages.side_lane, 0, sizeof(struct lane_entry));
}

/* ---- messages ------------------------------------------------------------ */

static unsigned int choose_fds(const struct session_input_message *head,
			       int fds[RAW_MESSAGE_FDS_MAX])
{
	unsigned int count = head->fds & SESSION_INPUT_FD_COUNT;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int kind = i < SESSION_INPUT_FDS ? i : SESSION_INPUT_FDS - 1;

		fds[i] = rig.fds[head->kinds[kind] % SESSION_FD_KINDS];
	}
	return count;
}

/* A daemon that has hung up, or reads too slowly, is no fault. */
static void send_message(int connection, const struct session_input_message *head, uint8_t *bytes,
			 size_t len)
{
	int fds[RAW_MESSAGE_FDS_MAX];
	unsigned int count = choose_fds(head, fds);

	if (!(head->fds & SESSION_INPUT_KEEP_HEAD))
		raw_message_make_right(bytes, len, count);
	(void)raw_message_send(connection, bytes, len, fds, count);
}

static void drop_answers(int connection)
{
	static struct socket_inbox inbox;

	while (socket_receive(connection, &inbox, 0) == 0)
		socket_inbox_close_fds(&inbox);
}

/* One message to one of the connections, which is opened when it is not there. */
static void deliver(int connections[SESSION_INPUT_CONNECTIONS],
		    const struct session_input_message *head, const uint8_t *bytes, size_t len)
{
	static uint8_t copy[R3RING_MESSAGE_MAX];
	int *connection = &connections[head->connection % SESSION_INPUT_CONNECTIONS];
	struct r3ring_error err;

	if (*connection < 0)
		*connection = socket_connect(rig.dir, &err);
	must(*connection >= 0, "the daemon does not accept");
	memcpy(copy, bytes, len);
	send_message(*connection, head, copy, len);
	if (head->fds & SESSION_INPUT_AT_ONCE)
		return;
	answer();
	drop_answers(*connection);
	if (!(head->fds & SESSION_INPUT_HANG_UP))
		return;
	close(*connection);
	*connection = -1;
	turn(TURNS, 0);
}

static void deliver_all(int connections[SESSION_INPUT_CONNECTIONS], const uint8_t *data,
			size_t size)
{
	struct session_input_message head;

	while (size >= sizeof(head)) {
		size_t len;

		memcpy(&head, data, sizeof(head));
		data += sizeof(head);
		size -= sizeof(head);
		len = head.bytes < size ? head.bytes : size;
		deliver(connections, &head, data, len);
		data += len;
		size -= len;
	}
}

/* ---- one input ----------------------------------------------------------- */

/* Each channel's name leaves a file. */
static void clean_dir(const char *name)
{
	char path[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static void remove_dir(void)
{
	daemon_close(&rig.daemon);
	clean_dir("segments");
	clean_dir("generations");
	clean_dir(".");
	rmdir(rig.dir);
}

static void begin(void)
{
	if (!rig.dir[0]) {
		snprintf(rig.dir, sizeof(rig.dir), "/tmp/r3ring-fuzz-XXXXXX");
		must(mkdtemp(rig.dir) != NULL, "mkdtemp");
		make_fds();
		open_daemon();
		atexit(remove_dir);
		rig.fds_open = count_fds();
	}
	if (rig.inputs++ % CLEAN_EVERY == 0)
		clean_dir("generations");
	clear_pages();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int connections[SESSION_INPUT_CONNECTIONS];

	begin();
	for (unsigned int i = 0; i < SESSION_INPUT_CONNECTIONS; i++)
		connections[i] = -1;
	deliver_all(connections, data, size);
	for (unsigned int i = 0; i < SESSION_INPUT_CONNECTIONS; i++) {
		if (connections[i] >= 0)
			close(connections[i]);
	}
	come_to_rest();
	must(count_fds() == rig.fds_open, "a descriptor stays behind");
	return 0;
}
