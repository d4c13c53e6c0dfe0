/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include <r3ring/atomic.h>

#include "tools/top_rescue.h"

#define ROW_LAST 998L      /* or the last that there is */
#define STACK_BYTES 65536u /* also where the stack itself was too small */

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};

#define FATAL (sizeof(fatal) / sizeof(*fatal))

static struct rescue {
	int fd;
	uint32_t armed;
	bool modes_known;
	struct termios modes;
	size_t used;
	char text[256];
	struct sigaction before[FATAL];
	char stack[STACK_BYTES];
} rescue;

/* ---- when it happens: nothing here that a handler may not call ---------------- */

static void give_back(void)
{
	if (!r3ring_load_relaxed_u32(&rescue.armed))
		return;
	r3ring_store_relaxed_u32(&rescue.armed, 0);
	if (write(rescue.fd, rescue.text, rescue.used) < 0)
		errno = 0; /* the terminal is gone, and its modes with it */
	if (rescue.modes_known)
		tcsetattr(rescue.fd, TCSANOW, &rescue.modes);
}

static void restore_actions(void)
{
	for (size_t i = 0; i < FATAL; i++)
		sigaction(fatal[i], &rescue.before[i], NULL);
}

/* What the program itself did it does again on return, now without this handler; what
 * somebody sent is sent once more, and waits until then, as the signal is blocked here. */
static void on_fatal(int number, siginfo_t *info, void *context)
{
	(void)context;
	give_back();
	restore_actions();
	if (info->si_code <= 0)
		raise(number);
}

/* ---- before ------------------------------------------------------------------ */

static int keep(int byte)
{
	if (rescue.used < sizeof(rescue.text))
		rescue.text[rescue.used++] = (char)byte;
	return byte;
}

static void keep_string(const char *text)
{
	if (text && text != (const char *)-1)
		tputs(text, 1, keep);
}

/* Colours and attributes off, the cursor and the keypad as they were, the first screen.
 * Where there is but one the frame stays, and what follows begins below it. */
static void keep_strings(void)
{
	static const char *const names[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};

	rescue.used = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		keep_string(tigetstr(names[i]));
	if (tigetstr("rmcup"))
		return;
	keep_string(tparm(tigetstr("cup"), ROW_LAST, 0));
	keep('\n');
}

static void take_signals(void)
{
	const stack_t stack = {.ss_sp = rescue.stack, .ss_size = sizeof(rescue.stack)};
	struct sigaction action = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < FATAL; i++)
		sigaction(fatal[i], &action, &rescue.before[i]);
}

void rescue_prepare(int fd)
{
	rescue.fd = fd;
	rescue.armed = 0;
	rescue.modes_known = tcgetattr(fd, &rescue.modes) == 0;
	take_signals();
}

void rescue_arm(void)
{
	keep_strings();
	r3ring_store_relaxed_u32(&rescue.armed, 1);
}

void rescue_disarm(void)
{
	r3ring_store_relaxed_u32(&rescue.armed, 0);
}

void rescue_end(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	rescue_disarm();
	restore_actions();
	sigaltstack(&none, NULL);
}
