/* SPDX-License-Identifier: Apache-2.0 */
/* What a crash leaves of a terminal; as a whole it is tested in tests/system/top_terminal.c. */
#include <criterion/criterion.h>

#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "tools/top_rescue.h"

static void take_and_crash(void)
{
	const struct rlimit no_core = {0, 0};
	struct termios modes;

	setrlimit(RLIMIT_CORE, &no_core);
	if (setupterm("xterm", STDOUT_FILENO, NULL) != OK)
		_exit(1);
	rescue_prepare(STDOUT_FILENO);
	tcgetattr(STDOUT_FILENO, &modes);
	modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
	rescue_arm();
	memset(mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1);
	_exit(2);
}

Test(top_rescue, an_access_to_nothing_leaves_terminal_and_status_as_they_should_be)
{
	char text[512] = "";
	struct termios modes;
	size_t used = 0;
	int terminal, status;
	ssize_t got;
	pid_t pid;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("the sanitizer ends a crash by itself");
#endif
	pid = forkpty(&terminal, NULL, NULL, NULL);
	cr_assert_geq(pid, 0);
	if (!pid)
		take_and_crash();
	/* Ends with the last that has the terminal open. */
	while (used < sizeof(text) - 1 &&
	       (got = read(terminal, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	cr_expect_eq(tcgetattr(terminal, &modes), 0);
	cr_expect(modes.c_lflag & ICANON);
	cr_expect(modes.c_lflag & ECHO);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%#x", status);
	cr_expect(strstr(text, "\033[?1049l"), "not the first screen");
	cr_expect(strstr(text, "\033[?25h"), "no cursor");
	close(terminal);
}
