/* SPDX-License-Identifier: Apache-2.0 */
/* The tool `r3ring` as a process of its own. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/container.h"
#include "tests/support/daemon.h"

#define ARGS_MAX 48
#define DEADLINE_MS 100000
#define LOOK_MS 5

static void die(const char *what)
{
	fprintf(stderr, "test command: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void become(const struct command *command, const char *program, const char *runtime_dir,
		   const char *const *args)
{
	char *argv[ARGS_MAX] = {(char *)(uintptr_t)program};
	int argc = 1;

	for (; *args && argc < ARGS_MAX - 1; args++)
		argv[argc++] = (char *)(uintptr_t)*args;
	setenv("R3RING_RUNTIME_DIR", runtime_dir, 1);
	dup2(command->out_fd, STDOUT_FILENO);
	dup2(command->err_fd, STDERR_FILENO);
	execv(program[0] == '/' ? program : test_program(program), argv);
}

void command_start_prepared(struct command *command, bool (*prepare)(void *ctx), void *ctx,
			    const char *program, const char *runtime_dir, const char *const *args)
{
	*command = (struct command){
		.out_fd = memfd_create("stdout", MFD_CLOEXEC),
		.err_fd = memfd_create("stderr", MFD_CLOEXEC),
	};
	if (command->out_fd < 0 || command->err_fd < 0)
		die("memfd_create");
	command->pid = fork();
	if (command->pid < 0)
		die("fork");
	if (command->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!prepare || prepare(ctx))
		become(command, program, runtime_dir, args);
	_exit(125);
}

void command_start_in(struct command *command, const struct container *container,
		      const char *program, const char *runtime_dir, const char *const *args)
{
	command_start_prepared(command, container ? container_join : NULL,
			       (void *)(uintptr_t)container, program, runtime_dir, args);
}

void command_start(struct command *command, const char *runtime_dir, const char *const *args)
{
	command_start_in(command, NULL, "r3ring", runtime_dir, args);
}

/* What lies in the file. */
static char *contents(int fd)
{
	struct stat status;
	char *text;

	if (fstat(fd, &status))
		die("fstat");
	text = calloc(1, (size_t)status.st_size + 1);
	if (!text || pread(fd, text, (size_t)status.st_size, 0) != status.st_size)
		die("reading the output");
	return text;
}

/* The same, and takes the descriptor over. */
static char *read_back(int *fd)
{
	char *text = contents(*fd);

	close(*fd);
	*fd = -1;
	return text;
}

static unsigned int occurrences(const char *text, const char *part)
{
	unsigned int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static bool has(int fd, const char *part, unsigned int count)
{
	char *text = contents(fd);
	bool there = occurrences(text, part) >= count;

	free(text);
	return there;
}

static bool comes_to_have(int fd, const char *part, unsigned int count)
{
	for (int looks = 0; looks < DEADLINE_MS / LOOK_MS; looks++) {
		if (has(fd, part, count))
			return true;
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

bool command_prints(const struct command *command, const char *part, unsigned int count)
{
	return comes_to_have(command->out_fd, part, count);
}

bool command_tells(const struct command *command, const char *part)
{
	return comes_to_have(command->err_fd, part, 1);
}

bool command_has_told(const struct command *command, const char *part)
{
	return has(command->err_fd, part, 1);
}

int command_interrupt(struct command *command)
{
	kill(command->pid, SIGINT);
	return command_wait(command);
}

static void note_end(struct command *command, int status)
{
	command->pid = 0;
	command->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	command->out = read_back(&command->out_fd);
	command->err = read_back(&command->err_fd);
}

bool command_ended(struct command *command)
{
	int status;

	if (command->pid && waitpid(command->pid, &status, WNOHANG) == command->pid)
		note_end(command, status);
	return !command->pid;
}

/* Waits until it ends or the time is over. */
static void await_end(const struct command *command)
{
	struct pollfd end = {
		.fd = (int)syscall(SYS_pidfd_open, command->pid, 0),
		.events = POLLIN,
	};

	if (end.fd < 0)
		die("pidfd_open");
	while (poll(&end, 1, DEADLINE_MS) < 0 && errno == EINTR)
		;
	close(end.fd);
}

int command_wait(struct command *command)
{
	int status;

	if (command->pid)
		await_end(command);
	if (!command_ended(command)) {
		kill(command->pid, SIGKILL);
		waitpid(command->pid, &status, 0);
		note_end(command, status);
	}
	return command->code;
}

int command_run(struct command *command, const char *runtime_dir, const char *const *args)
{
	command_start(command, runtime_dir, args);
	return command_wait(command);
}

void command_free(struct command *command)
{
	if (command->pid) {
		kill(command->pid, SIGKILL);
		command_wait(command);
	}
	free(command->out);
	free(command->err);
	*command = (struct command){0};
}
