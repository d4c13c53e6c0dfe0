/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring top in a real terminal: keys, sizes, signals, and what it leaves behind. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/terminal.h"
#include "tests/support/tool_stage.h"

static struct tool_stage stage;
static bool has_alternate;
static char pid_file[128], before_file[128], after_file[128];

static void start(void)
{
	if (!terminal_possible())
		cr_skip_test("no tmux here: there is no terminal to look at");
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "seen");
	tool_stage_run(&stage, "seen", 40);
	snprintf(pid_file, sizeof(pid_file), "%s/top.pid", stage.daemon.dir);
	snprintf(before_file, sizeof(before_file), "%s/before", stage.daemon.dir);
	snprintf(after_file, sizeof(after_file), "%s/after", stage.daemon.dir);
}

static void stop(void)
{
	terminal_close();
	unlink(pid_file);
	unlink(before_file);
	unlink(after_file);
	if (stage.daemon.pid)
		tool_stage_close(&stage);
}

TestSuite(top_terminal, .init = start, .fini = stop);

/* Starts it in the terminal as a shell does, with the terminal's modes noted before and
 * after, and its process. */
static void run_top(int rows, int columns, const char *setting, const char *options)
{
	char line[1024];

	terminal_open(rows, columns, setting);
	snprintf(line, sizeof(line), "echo mark-; R3RING_RUNTIME_DIR=%s; export R3RING_RUNTIME_DIR",
		 stage.daemon.dir);
	terminal_line(line);
	cr_assert(terminal_shows("mark-\n"));
	snprintf(line, sizeof(line), "stty -g > %s; sh -c 'echo $$ > %s; exec %s top %s'",
		 before_file, pid_file, test_program("r3ring"), options);
	snprintf(line + strlen(line), sizeof(line) - strlen(line),
		 "; echo ended with $?; stty -g > %s", after_file);
	terminal_line(line);
	cr_assert(terminal_shows("nothing lost"), "%s", terminal_screen());
	/* A vt100 has no second screen. */
	has_alternate = !strstr(setting, "vt100");
	cr_assert_eq(terminal_is_taken(), has_alternate);
}

static void read_file(const char *path, char text[256])
{
	FILE *in = fopen(path, "r");
	size_t length = in ? fread(text, 1, 255, in) : 0;

	text[length] = '\0';
	if (in)
		fclose(in);
}

/* The shell is back, and everything as it was. */
static void expect_restored(int code)
{
	char ended[32], before[256], after[256] = "";

	snprintf(ended, sizeof(ended), "ended with %d\n", code);
	cr_expect(terminal_shows(ended), "%s", terminal_screen());
	cr_expect_not(terminal_is_taken());
	cr_expect(!has_alternate || strstr(terminal_screen(), "mark-\n"),
		  "what stood there is there: %s", terminal_screen());
	read_file(before_file, before);
	for (int looks = 0; looks < 2000 && strlen(after) < strlen(before); looks++) {
		read_file(after_file, after);
		poll(NULL, 0, 5);
	}
	cr_expect(before[0]);
	cr_expect_str_eq(after, before);
}

static void send_signal(int number)
{
	char text[256];

	read_file(pid_file, text);
	cr_assert_gt(atoi(text), 1);
	kill((pid_t)atoi(text), number);
}

/* ---- what it shows --------------------------------------------------------- */

Test(top_terminal, a_frame_of_80_by_24_says_what_is_lost_and_what_is_uneven)
{
	run_top(24, 80, "TERM=screen-256color", "--window 3600");
	cr_expect(terminal_shows("nothing lost"));
	cr_expect(terminal_shows("x e"), "%s", terminal_screen());
	cr_expect(terminal_shows("layers by max of "), "%s", terminal_screen());
	cr_expect(terminal_shows("? help"));
	cr_expect(terminal_shows("5/5"), "its layers come by call");
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, keys_change_what_is_shown)
{
	run_top(24, 80, "TERM=screen-256color", "--window 3600");
	cr_expect(terminal_shows("; linear to"));
	terminal_key("l");
	cr_expect(terminal_shows("; log to"));
	terminal_key("p");
	cr_expect(terminal_shows("PAUSED"));
	terminal_key("w");
	cr_expect(terminal_hides("PAUSED"), "another window ends a pause");
	cr_expect(terminal_shows("last 256 steps"));
	terminal_key("?");
	cr_expect(terminal_shows("the next instance"));
	terminal_key("?");
	cr_expect(terminal_hides("the next instance"));
	terminal_key("t");
	cr_expect(terminal_shows("t load"));
	terminal_key("t");
	cr_expect(terminal_shows("t table"));
	terminal_key("C-c");
	expect_restored(0);
}

Test(top_terminal, the_key_of_channels_shows_one_and_then_all_again)
{
	char one[160], all[160];

	snprintf(one, sizeof(one), "  %s %ux%u top-", tool_stage_channel(&stage, "seen"),
		 ENGINE_LAYERS, ENGINE_EXPERTS);
	snprintf(all, sizeof(all), "  %s %ux%u top-", engine_instance(stage.daemon.dir, "seen"),
		 ENGINE_LAYERS, ENGINE_EXPERTS);
	run_top(24, 100, "TERM=screen-256color", "--window 3600");
	cr_expect(terminal_shows(all), "%s", terminal_screen());
	terminal_key("c");
	cr_expect(terminal_shows(one), "%s", terminal_screen());
	terminal_key("c");
	cr_expect(terminal_shows(all), "%s", terminal_screen());
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, a_reset_counts_losses_and_load_from_then_on)
{
	run_top(24, 80, "TERM=screen-256color", "--window 3600 --interval 0.1");
	cr_expect(terminal_shows("x e"), "%s", terminal_screen());
	/* More rows than its schema allows. */
	cr_assert_lt(engine_begin(&stage.engine, 0, stage.engine.max_rows + 1), 0);
	cr_expect(terminal_shows("LOSING"), "%s", terminal_screen());
	terminal_key("r");
	cr_expect(terminal_shows("all since reset"));
	cr_expect(terminal_shows("nothing lost since the reset"), "%s", terminal_screen());
	cr_expect(terminal_shows("no load in this window"), "%s", terminal_screen());
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, losses_are_looked_at_and_left_by_escape_or_q)
{
	run_top(24, 80, "TERM=screen-256color", "--interval 0.1");
	terminal_key("d");
	cr_expect(terminal_shows("no losses since the channels began"), "%s", terminal_screen());
	cr_expect(terminal_shows("q back"));
	terminal_key("Escape");
	cr_expect(terminal_hides("no losses since"), "%s", terminal_screen());
	cr_assert_lt(engine_begin(&stage.engine, 0, stage.engine.max_rows + 1), 0);
	terminal_key("d");
	cr_expect(terminal_shows("too_big: 1 step"), "%s", terminal_screen());
	terminal_key("q");
	cr_expect(terminal_shows("q quit"), "%s", terminal_screen());
	cr_expect(terminal_is_taken(), "it goes on");
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, arrows_scroll_a_page_that_is_longer_than_the_screen)
{
	run_top(12, 100, "TERM=screen-256color", "--window 3600");
	terminal_key("?");
	cr_expect(terminal_shows("rows 1-9 of 20"), "%s", terminal_screen());
	terminal_key("Down");
	cr_expect(terminal_shows("rows 2-10 of"), "%s", terminal_screen());
	terminal_key("NPage");
	cr_expect(terminal_shows("rows 11-19 of"), "%s", terminal_screen());
	terminal_key("PPage");
	cr_expect(terminal_shows("rows 2-10 of"), "%s", terminal_screen());
	terminal_key("End");
	cr_expect(terminal_shows("rows 12-20 of"), "%s", terminal_screen());
	cr_expect(terminal_shows("Nothing that is done here"));
	terminal_key("Down");
	terminal_key("Up");
	cr_expect(terminal_shows("rows 11-19 of"), "it stood at its end: %s", terminal_screen());
	terminal_key("Home");
	cr_expect(terminal_shows("rows 1-9 of"), "%s", terminal_screen());
	terminal_key("Down");
	cr_expect(terminal_shows("rows 2-10 of"), "%s", terminal_screen());
	terminal_key("?");
	cr_expect(terminal_hides("rows 2-10 of"));
	terminal_key("?");
	cr_expect(terminal_shows("rows 1-9 of"), "another page begins at its top");
	terminal_key("q");
	cr_expect(terminal_hides("rows 1-9 of"), "q leaves it first");
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, another_size_is_another_frame)
{
	run_top(24, 80, "TERM=screen-256color", "--window 3600");
	cr_expect(terminal_shows("layers by max of "));
	terminal_resize(40, 300);
	cr_expect(terminal_shows("layers by experts;"), "%s", terminal_screen());
	terminal_resize(6, 30);
	cr_expect(terminal_hides("layers by experts;"));
	cr_expect(terminal_shows("nothing lost"), "%s", terminal_screen());
	terminal_resize(24, 80);
	cr_expect(terminal_shows("layers by max of "), "%s", terminal_screen());
	terminal_key("q");
	expect_restored(0);
}

/* 256 colours, eight, and none. */
static void expect_colours(const char *setting, const char *some, const char *none)
{
	run_top(24, 80, setting, "--window 3600");
	cr_expect(terminal_shows("nothing lost"));
	cr_expect(terminal_shows("x e"));
	cr_expect(!some || strstr(terminal_coloured(), some), "%s", terminal_coloured());
	cr_expect(!none || !strstr(terminal_coloured(), none), "%s", terminal_coloured());
	terminal_key("q");
	expect_restored(0);
}

Test(top_terminal, a_terminal_of_256_colours_is_given_them)
{
	expect_colours("TERM=screen-256color", "48;5;", NULL);
}

Test(top_terminal, a_terminal_of_eight_colours_is_given_those)
{
	expect_colours("TERM=screen", "[32m", "48;5;");
}

Test(top_terminal, a_terminal_without_colours_is_given_none)
{
	expect_colours("TERM=vt100", "[7m", "[32m"); /* what stands out is reversed */
}

Test(top_terminal, who_wants_no_colours_gets_none)
{
	expect_colours("TERM=screen-256color NO_COLOR=1", NULL, "[32m");
}

Test(top_terminal, a_plain_locale_gets_plain_characters)
{
	run_top(24, 80, "TERM=vt100 LC_ALL=C", "--window 3600");
	cr_expect(terminal_shows("x e"));
	for (const char *c = terminal_screen(); *c; c++)
		cr_assert_lt((unsigned char)*c, 128);
	terminal_key("q");
	expect_restored(0);
}

/* ---- how it ends ----------------------------------------------------------- */

static void expect_restored_after(int number)
{
	run_top(24, 80, "TERM=screen-256color", "");
	send_signal(number);
	expect_restored(0);
}

Test(top_terminal, a_sigterm_leaves_the_terminal_as_it_was)
{
	expect_restored_after(SIGTERM);
}

Test(top_terminal, a_sighup_leaves_the_terminal_as_it_was)
{
	expect_restored_after(SIGHUP);
}

Test(top_terminal, a_sigint_leaves_the_terminal_as_it_was)
{
	expect_restored_after(SIGINT);
}

Test(top_terminal, a_sigquit_leaves_the_terminal_as_it_was)
{
	expect_restored_after(SIGQUIT);
}

/* Exit codes are a shell's, of what a signal ended. */
static void expect_restored_after_crash(int number)
{
	run_top(24, 80, "TERM=screen-256color", "");
	send_signal(number);
	expect_restored(128 + number);
}

Test(top_terminal, a_crash_leaves_the_terminal_as_it_was)
{
	static const int numbers[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		expect_restored_after_crash(numbers[i]);
		terminal_close();
		unlink(after_file);
	}
}

Test(top_terminal, a_crash_in_a_terminal_of_one_screen_leaves_it_usable)
{
	run_top(24, 80, "TERM=vt100", "");
	send_signal(SIGSEGV);
	expect_restored(128 + SIGSEGV);
	cr_expect(strstr(terminal_screen(), " r reset\nSegmentation fault"),
		  "the frame stays, and what the shell says stands below it: %s",
		  terminal_screen());
}

/* The terminal is gone with the session, and so is it. */
Test(top_terminal, without_its_terminal_it_ends)
{
	char text[256];

	run_top(24, 80, "TERM=screen-256color", "");
	read_file(pid_file, text);
	terminal_close();
	for (int looks = 0; kill((pid_t)atoi(text), 0) == 0; looks++) {
		cr_assert_lt(looks, 2000, "process %s runs on", text);
		poll(NULL, 0, 5);
	}
}

/* Asks the shell again until the job, which takes a while to get there, has stopped. */
static bool shell_says_stopped(void)
{
	for (int looks = 0; looks < 600; looks++) {
		terminal_line("jobs");
		poll(NULL, 0, 100);
		if (strstr(terminal_screen(), "Stopped"))
			return true;
	}
	return false;
}

Test(top_terminal, in_the_background_it_waits_to_be_brought_to_the_front)
{
	char line[1024];

	run_top(24, 80, "TERM=screen-256color", "");
	terminal_key("q");
	expect_restored(0);
	snprintf(line, sizeof(line), "clear; %s top &", test_program("r3ring"));
	terminal_line(line);
	terminal_line("jobs");
	cr_expect(shell_says_stopped(), "%s", terminal_screen());
	cr_expect_not(terminal_is_taken());
	terminal_line("fg");
	cr_expect(terminal_shows("nothing lost"), "%s", terminal_screen());
	cr_expect(terminal_is_taken());
	terminal_key("C-z");
	terminal_line("bg; echo in-between");
	cr_expect(terminal_shows("in-between\n"), "%s", terminal_screen());
	cr_expect_not(terminal_is_taken(), "the shell has it");
	terminal_line("fg");
	cr_expect(terminal_shows("nothing lost"), "%s", terminal_screen());
	terminal_key("q");
	cr_expect(terminal_shows("in-between\n"));
}

Test(top_terminal, a_stop_gives_the_terminal_back_for_as_long)
{
	run_top(24, 80, "TERM=screen-256color", "");
	terminal_key("C-z");
	cr_expect(terminal_shows("Stopped"), "%s", terminal_screen());
	cr_expect_not(terminal_is_taken());
	terminal_line("echo in-between; fg");
	cr_expect(terminal_shows("nothing lost"));
	cr_expect(terminal_is_taken());
	terminal_key("q");
	cr_expect(terminal_shows("in-between\n"));
	cr_expect_not(terminal_is_taken());
}

Test(top_terminal, a_daemon_that_dies_is_waited_for_and_seen_again)
{
	run_top(24, 120, "TERM=screen-256color", "--interval 0.1");
	cr_expect(terminal_shows("nothing lost"));
	test_daemon_kill(&stage.daemon);
	cr_expect(terminal_shows("waiting: no daemon"), "%s", terminal_screen());
	test_daemon_restart(&stage.daemon, NULL);
	cr_expect(terminal_hides("waiting: no daemon"), "%s", terminal_screen());
	cr_expect(terminal_shows("live"));
	terminal_key("q");
	expect_restored(0);
}

static void expect_refused(const char *setting)
{
	char line[512];

	terminal_open(24, 80, setting);
	snprintf(line, sizeof(line), "%s top; echo ended with $?", test_program("r3ring"));
	terminal_line(line);
	cr_expect(terminal_shows("ended with 1\n"), "%s", terminal_screen());
	cr_expect(strstr(terminal_screen(), "need no terminal"), "%s", terminal_screen());
	terminal_close();
}

Test(top_terminal, terminals_that_nothing_is_known_of_are_refused)
{
	expect_refused("TERM=nonsense");
	expect_refused("TERM=dumb");
}

Test(top_terminal, without_a_terminal_it_says_what_works_there)
{
	cr_expect_eq(tool_stage_tool(&stage, ARGS("top")), 1);
	cr_expect(strstr(stage.tool.err, "--once"), "%s", stage.tool.err);
}
