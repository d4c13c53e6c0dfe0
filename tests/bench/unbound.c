/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture hook costs a model that is not bound: instructions, counted by
 * callgrind over the program bench-unbound. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define CALLS 200000
#define NOT_FOUND 127 /* the shell's status for a command that is not there */

/* The program lies beside this one. */
static int program_path(char *path, size_t capacity)
{
	ssize_t len = readlink("/proc/self/exe", path, capacity);
	size_t directory;

	if (len < 0)
		return -errno;
	for (directory = (size_t)len; directory > 0 && path[directory - 1] != '/';)
		directory--;
	if (directory + sizeof("bench-unbound") > capacity)
		return -ENAMETOOLONG;
	memcpy(path + directory, "bench-unbound", sizeof("bench-unbound"));
	return 0;
}

/* Reads callgrind's report; its line "Collected : N" has the instructions. */
static int run_counted(const char *command, double *instructions)
{
	FILE *report = popen(command, "re");
	int status, found = 0;
	char line[256];

	if (!report)
		return -errno;
	while (fgets(line, sizeof(line), report)) {
		const char *number = strstr(line, "Collected : ");

		if (number) {
			*instructions = strtod(number + strlen("Collected : "), NULL);
			found = 1;
		}
	}
	status = pclose(report);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		return -ENOTSUP;
	return status == 0 && found ? 0 : -EIO;
}

static int count_instructions(const char *forward, double *value)
{
	char path[PATH_MAX], command[PATH_MAX + 160];
	int rc = program_path(path, sizeof(path));

	if (rc)
		return rc;
	/* Both names have six letters: the start of the program costs the same. */
	snprintf(command, sizeof(command),
		 "valgrind --tool=callgrind --callgrind-out-file=/dev/null '%s' %.6s %d 2>&1", path,
		 forward, CALLS);
	rc = run_counted(command, value);
	*value /= CALLS;
	return rc;
}

static int without_hook(const struct bench_row *row, double *value)
{
	(void)row;
	return count_instructions("nohook", value);
}

static int with_hook(const struct bench_row *row, double *value)
{
	(void)row;
	return count_instructions("hooked", value);
}

static const struct bench_row rows[] = {
	{.name = "a layer's call with an unbound hook, beside none",
	 .unit = "instr",
	 .floor = without_hook,
	 .measured = with_hook,
	 .kind = BENCH_EXCESS_AT_MOST,
	 .target = 3},
};

const struct bench_group bench_unbound = {"unbound", rows, sizeof(rows) / sizeof(rows[0])};
