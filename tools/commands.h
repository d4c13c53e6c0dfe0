/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommands of the tool `r3ring` and what their exit codes mean.
 *
 * A subcommand gets "r3ring NAME" as argv[0], prints what was asked for on
 * stdout and everything else on stderr, and returns the exit code. Its output
 * is flushed, and checked for having arrived, by main().
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

enum tool_exit {
	TOOL_DONE = 0,
	TOOL_FAILED = 1,    /* something failed, or was found to be wrong */
	TOOL_USAGE = 2,     /* the command line */
	TOOL_NO_DAEMON = 3, /* nothing to connect to: no daemon, or no such channel */
};

int cmd_status(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_gc(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_produce(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_report(int argc, char **argv);

#endif
