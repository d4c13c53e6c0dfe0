/* SPDX-License-Identifier: Apache-2.0 */
/* A program that a peer needs beside its processes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/peers/broker.h"

#define START_MS 10000
#define STOP_MS 2000
#define LOG_MAX 65536

static int log_open(const struct peer_channel *channel)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/broker.log", channel->directory);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static _Noreturn void become(const char *const *argv, int log, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static int said(int log, const char *ready)
{
	static char text[LOG_MAX];
	ssize_t got = pread(log, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return strstr(text, ready) != NULL;
}

static int ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid;
}

static pid_t await(pid_t pid, int log, const char *ready)
{
	for (int i = 0; i < START_MS; i++) {
		if (said(log, ready))
			return pid;
		if (ended(pid))
			return -ENOTSUP;
		poll(NULL, 0, 1);
	}
	broker_stop(pid);
	return -ETIMEDOUT;
}

pid_t broker_start(const struct peer_channel *channel, const char *const *argv, const char *ready)
{
	pid_t parent = getpid(), pid;
	int log = log_open(channel);

	if (log < 0)
		return log;
	pid = fork();
	if (!pid)
		become(argv, log, parent);
	pid = pid < 0 ? -errno : await(pid, log, ready);
	close(log);
	return pid;
}

void broker_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	for (int i = 0; i < STOP_MS; i++) {
		if (ended(pid))
			return;
		poll(NULL, 0, 1);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
