/* SPDX-License-Identifier: Apache-2.0 */
/* A real r3ringd for system tests. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon.h"

#define DEADLINE_MS 10000
#define ARGS_MAX 32
#define PIPE_BYTES (1 << 20) /* it must never wait for the test to read its log */

static struct test_daemon *all;

static void die(const char *what)
{
	fprintf(stderr, "test daemon: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *test_program(const char *name)
{
	static char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len < 0)
		die("readlink /proc/self/exe");
	path[len] = '\0';
	slash = strrchr(path, '/'); /* BUILD/tests/run-system, BUILD/tests/stress/x */
	while (slash && slash > path) {
		snprintf(slash, sizeof(path) - (size_t)(slash - path), "/%s", name);
		if (access(path, X_OK) == 0)
			return path;
		*slash = '\0';
		slash = strrchr(path, '/');
	}
	errno = ENOENT;
	die(name);
	return NULL;
}

bool test_shm_takes(uint64_t bytes)
{
	struct statvfs fs;

	if (statvfs("/dev/shm", &fs))
		die("/dev/shm");
	return (uint64_t)fs.f_bavail * fs.f_frsize >= bytes;
}

unsigned int test_shm_names(const char *part)
{
	unsigned int count = 0;
	struct dirent *entry;
	DIR *dir = opendir("/dev/shm");

	if (!dir)
		die("/dev/shm");
	while ((entry = readdir(dir)))
		count += strstr(entry->d_name, part) != NULL;
	closedir(dir);
	return count;
}

bool test_shm_names_gone(const char *part)
{
	for (int tries = 0; tries < 10000; tries++) {
		if (!test_shm_names(part))
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* ---- cleaning up -------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	const char *name = path + where->base;
	char shm[300];

	(void)status;
	(void)type;
	if (strncmp(name, "r3ring.", 7) == 0 && strstr(path, "/segments/")) {
		snprintf(shm, sizeof(shm), "/%s", name);
		shm_unlink(shm);
	}
	return remove(path);
}

static void end_process(struct test_daemon *daemon)
{
	if (daemon->pid > 0) {
		kill(daemon->pid, SIGKILL);
		waitpid(daemon->pid, NULL, 0);
	}
	daemon->pid = 0;
	if (daemon->log_fd >= 0)
		close(daemon->log_fd);
	daemon->log_fd = -1;
}

void test_daemon_close(struct test_daemon *daemon)
{
	end_process(daemon);
	if (daemon->dir[0])
		nftw(daemon->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	daemon->dir[0] = '\0';
	for (struct test_daemon **at = &all; *at; at = &(*at)->next) {
		if (*at == daemon) {
			*at = daemon->next;
			break;
		}
	}
}

static void close_all(void)
{
	while (all)
		test_daemon_close(all);
}

static void adopt(struct test_daemon *daemon)
{
	static pid_t registered;

	/* A forked child that exits must not end its parent's daemons. */
	if (registered != getpid()) {
		all = NULL;
		atexit(close_all);
		registered = getpid();
	}
	daemon->next = all;
	all = daemon;
}

/* ---- starting ----------------------------------------------------------- */

static void make_dir(struct test_daemon *daemon)
{
	daemon->pid = 0;
	daemon->log_fd = -1;
	snprintf(daemon->dir, sizeof(daemon->dir), "/tmp/r3ring-test.%d.XXXXXX", getpid());
	if (!mkdtemp(daemon->dir))
		die("mkdtemp");
	adopt(daemon);
}

static void run_program(const struct test_daemon *daemon, const char *const *args, int log_fd)
{
	char *argv[ARGS_MAX] = {(char *)"r3ringd", (char *)"--runtime-dir",
				(char *)(uintptr_t)daemon->dir};
	int argc = 3;

	for (; args && *args && argc < ARGS_MAX - 1; args++)
		argv[argc++] = (char *)(uintptr_t)*args;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log_fd, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	if (!daemon->prepare || daemon->prepare(daemon->prepare_ctx))
		execv(test_program("r3ringd"), argv);
	_exit(125);
}

static void launch(struct test_daemon *daemon, const char *const *args)
{
	int pipe_fds[2];

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		die("pipe");
	fcntl(pipe_fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	daemon->log_len = 0;
	daemon->log[0] = '\0';
	daemon->pid = fork();
	if (daemon->pid < 0)
		die("fork");
	if (daemon->pid == 0)
		run_program(daemon, args, pipe_fds[1]);
	close(pipe_fds[1]);
	daemon->log_fd = pipe_fds[0];
}

/* Reads what it says; false at the end of its output or at the deadline. */
static bool read_log(struct test_daemon *daemon, long long deadline_ms)
{
	struct pollfd poll_fd = {.fd = daemon->log_fd, .events = POLLIN};
	long long left = deadline_ms - now_ms();
	size_t room = sizeof(daemon->log) - 1 - daemon->log_len;
	ssize_t got;

	if (left < 0 || room == 0 || poll(&poll_fd, 1, (int)left) <= 0)
		return false;
	got = read(daemon->log_fd, daemon->log + daemon->log_len, room);
	if (got <= 0)
		return false;
	daemon->log_len += (size_t)got;
	daemon->log[daemon->log_len] = '\0';
	return true;
}

bool test_daemon_said(struct test_daemon *daemon, const char *text)
{
	long long deadline = now_ms() + DEADLINE_MS;

	while (!strstr(daemon->log, text)) {
		if (!read_log(daemon, deadline))
			return false;
	}
	return true;
}

void test_daemon_restart(struct test_daemon *daemon, const char *const *args)
{
	end_process(daemon);
	launch(daemon, args);
	if (test_daemon_said(daemon, "ready: "))
		return;
	fprintf(stderr, "test daemon: not ready; it said:\n%s\n", daemon->log);
	exit(1);
}

void test_daemon_start(struct test_daemon *daemon, const char *const *args)
{
	make_dir(daemon);
	test_daemon_restart(daemon, args);
}

/* ---- ending ------------------------------------------------------------- */

static int wait_exit(struct test_daemon *daemon)
{
	long long deadline = now_ms() + DEADLINE_MS;
	int status;

	/* Its output ends when it does. */
	while (read_log(daemon, deadline))
		;
	if (now_ms() >= deadline)
		kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, &status, 0);
	daemon->pid = 0;
	end_process(daemon);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int test_daemon_run(struct test_daemon *daemon, const char *const *args)
{
	if (!daemon->dir[0])
		make_dir(daemon);
	launch(daemon, args);
	return wait_exit(daemon);
}

int test_daemon_stop(struct test_daemon *daemon)
{
	kill(daemon->pid, SIGTERM);
	return wait_exit(daemon);
}

void test_daemon_kill(struct test_daemon *daemon)
{
	end_process(daemon);
}
