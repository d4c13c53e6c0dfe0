/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: what subcommands have in common. */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Refuses a command line; the reason was told, unless it is @surplus, an argument
 * more than @command ("r3ring NAME") takes. Returns TOOL_USAGE.
 */
int arguments_refuse(const char *command, const char *surplus);

/* Refuses the value of an option, "--NAME", for it is not @wanted; says so in the name of
 * @command. Returns -EINVAL. */
int arguments_refuse_value(const char *command, const char *option, const char *value,
			   const char *wanted);

/* A number of digits only, from @least to @most. Returns 0, or -EINVAL: it is none, told. */
int arguments_number(const char *command, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *number);

/* Appends the value of an option that can be given again to a list, NULL at first. Returns 0, or
 * -ENOMEM, told. Pairs with arguments_free(). */
int arguments_append(const char *command, const char *const **list, uint32_t *count,
		     const char *value);
void arguments_free(const char *const *list);

/* Seconds above 0, with or without a fraction. False: it is none. */
bool arguments_seconds(const char *text, uint64_t *ns);

/* A point in time, "@SECONDS" or "YYYY-MM-DDThh:mm:ss[Z]", since 1970; what is wrong is said
 * in the name of @command. Returns 0 or -EINVAL. */
int arguments_time(const char *command, const char *option, const char *value, uint64_t *ns);

/* The value of --until, before which something must be: above 0. Returns 0 or -EINVAL. */
int arguments_until(const char *command, const char *value, uint64_t *ns);

/* Runs a subcommand that takes --json and --help and nothing else. Returns the exit
 * code, that of @run where it comes to it. */
int arguments_json_only(int argc, char **argv, const char *usage, int (*run)(bool json));

#endif
