/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/terminal.h"

#define LOOKS 6000 /* of 10 ms */
#define ARGS_MAX 16

static struct terminal {
	char socket[64];
	pid_t server;
	char screen[1 << 18];
} terminal;

static void die(const char *what)
{
	fprintf(stderr, "test terminal: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- tmux ------------------------------------------------------------------ */

static pid_t start(const char *const *args, int out)
{
	const char *argv[ARGS_MAX] = {"tmux", "-f", "/dev/null", "-S", terminal.socket};
	int argc = 5;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	for (; *args && argc < ARGS_MAX - 1; args++)
		argv[argc++] = *args;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("TMUX");
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	execvp("tmux", (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Runs a command of tmux; what it prints is left in terminal.screen. Returns its code. */
static int tmux(const char *first, ...)
{
	const char *args[ARGS_MAX] = {first};
	size_t length = 0;
	int out[2], status, argc = 1;
	ssize_t got;
	va_list rest;
	pid_t pid;

	va_start(rest, first);
	while (argc < ARGS_MAX - 1 && (args[argc] = va_arg(rest, const char *)))
		argc++;
	va_end(rest);
	if (pipe(out))
		die("pipe");
	pid = start(args, out[1]);
	close(out[1]);
	while (length < sizeof(terminal.screen) - 1 &&
	       (got = read(out[0], terminal.screen + length,
			   sizeof(terminal.screen) - 1 - length)) > 0)
		length += (size_t)got;
	terminal.screen[length] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool terminal_possible(void)
{
	return system("command -v tmux > /dev/null 2>&1") == 0;
}

/* ---- opening and closing --------------------------------------------------- */

void terminal_close(void)
{
	if (!terminal.server)
		return;
	kill(terminal.server, SIGKILL);
	waitpid(terminal.server, NULL, 0);
	terminal.server = 0;
	unlink(terminal.socket);
}

static void await_server(void)
{
	for (int looks = 0; access(terminal.socket, F_OK); looks++) {
		if (looks == LOOKS)
			die("tmux does not start");
		poll(NULL, 0, 10);
	}
}

void terminal_open(int rows, int columns, const char *setting)
{
	char height[16], width[16], shell[512];

	snprintf(terminal.socket, sizeof(terminal.socket), "/tmp/r3ring-tmux-%d", getpid());
	snprintf(height, sizeof(height), "%d", rows);
	snprintf(width, sizeof(width), "%d", columns);
	snprintf(shell, sizeof(shell), "exec env PS1='ready$ ' ENV= LC_ALL=C.UTF-8 %s sh -i",
		 setting);
	/* In the foreground, so that it ends with this process. */
	terminal.server = start((const char *const[]){"-D", NULL}, -1);
	atexit(terminal_close);
	await_server();
	if (tmux("new-session", "-d", "-x", width, "-y", height, shell, NULL))
		die("tmux has no session");
	if (!terminal_shows("ready$"))
		die("no shell in tmux");
}

/* ---- typing and looking ---------------------------------------------------- */

void terminal_line(const char *text)
{
	tmux("send-keys", "-l", text, NULL);
	tmux("send-keys", "Enter", NULL);
}

void terminal_key(const char *key)
{
	tmux("send-keys", key, NULL);
}

void terminal_resize(int rows, int columns)
{
	char height[16], width[16];

	snprintf(height, sizeof(height), "%d", rows);
	snprintf(width, sizeof(width), "%d", columns);
	tmux("resize-window", "-x", width, "-y", height, NULL);
}

const char *terminal_screen(void)
{
	tmux("capture-pane", "-p", NULL);
	return terminal.screen;
}

const char *terminal_coloured(void)
{
	tmux("capture-pane", "-p", "-e", NULL);
	return terminal.screen;
}

static bool comes_to(bool shown, const char *part)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		if ((strstr(terminal_screen(), part) != NULL) == shown)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

bool terminal_shows(const char *part)
{
	return comes_to(true, part);
}

bool terminal_hides(const char *part)
{
	return comes_to(false, part);
}

bool terminal_is_taken(void)
{
	tmux("display-message", "-p", "#{alternate_on}", NULL);
	return terminal.screen[0] == '1';
}
