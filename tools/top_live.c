/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a terminal: frames, keys and signals. Signals are taken from a descriptor, so that the
 * terminal is given back by the same code whatever ends it; but for those of a crash
 * (top_rescue.h).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "channel/clock.h"
#include "tools/commands.h"
#include "tools/top.h"
#include "tools/top_screen.h"

enum { KEYS, SIGNALS };

static void taken_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTSTP);
	sigaddset(set, SIGCONT);
	sigaddset(set, SIGWINCH);
}

/* ---- drawing --------------------------------------------------------------- */

static void draw(struct top *top)
{
	struct top_frame frame;
	uint32_t rows, columns;
	struct grid grid;

	screen_size(&rows, &columns);
	if (grid_make(&grid, rows, columns))
		return; /* the former frame stays */
	top_frame_of(top, &frame);
	frame.keys = true;
	frame.part = &top->part;
	top_frame_draw(&frame, &grid);
	screen_show(&grid);
	grid_free(&grid);
}

/* ---- signals --------------------------------------------------------------- */

/* As if the signal had come to a program that knows nothing of it. */
static void stop(void)
{
	sigset_t set;

	screen_leave();
	signal(SIGTSTP, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* stands still here */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Returns false when that is to end. */
static bool take_signal(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return true;
	switch (info.ssi_signo) {
	case SIGTSTP:
		stop();
		return screen_return();
	case SIGCONT:
		/* Whoever went on after another stop may find the terminal changed. */
		screen_leave();
		return screen_return();
	case SIGWINCH:
		screen_resize();
		return true;
	default:
		return false;
	}
}

static bool take_keys(struct top *top)
{
	int key;

	while ((key = screen_key()) != -1) {
		if (!top_key(top, key))
			return false;
	}
	return true;
}

/* ---- the loop -------------------------------------------------------------- */

static int left_ms(uint64_t due_ns)
{
	uint64_t now = clock_now_ns();

	return due_ns > now ? (int)((due_ns - now + 999999) / 1000000) : 0;
}

/* Until a key, a signal or the next frame. Returns false when that is to end. */
static bool wait_for_news(struct top *top, struct pollfd *polled, uint64_t due_ns)
{
	if (poll(polled, 2, left_ms(due_ns)) <= 0)
		return true;
	if (polled[SIGNALS].revents && !take_signal(polled[SIGNALS].fd))
		return false;
	if (polled[KEYS].revents & POLLIN && !take_keys(top))
		return false;
	/* The terminal is gone. */
	return !(polled[KEYS].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void show(struct top *top, int signals)
{
	struct pollfd polled[] = {
		[KEYS] = {.fd = STDIN_FILENO, .events = POLLIN},
		[SIGNALS] = {.fd = signals, .events = POLLIN},
	};
	uint64_t due = clock_now_ns();

	do {
		if (clock_now_ns() >= due) {
			due = clock_now_ns() + top->options->interval_ns;
			top_look(top);
		}
		draw(top);
	} while (wait_for_news(top, polled, due));
}

int top_live(struct top *top)
{
	struct r3ring_error err = {0};
	sigset_t set;
	int signals, r;

	taken_signals(&set);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		fprintf(stderr, "r3ring top: signals cannot be taken: %s\n", strerror(errno));
		return TOOL_FAILED;
	}
	r = screen_open(&err);
	if (r == 0) {
		show(top, signals);
		screen_close();
	} else {
		fprintf(stderr, "r3ring top: %s\n", err.text);
	}
	close(signals);
	return r ? TOOL_FAILED : TOOL_DONE;
}
