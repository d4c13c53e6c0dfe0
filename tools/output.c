/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's standard output. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/output.h"

static struct output {
	uint64_t written; /* bytes */
	int error;        /* of the first write that failed */
} output;

/* For stdio, which does not keep the errno. A signal ends a write that waits, so that
 * Ctrl-C does. */
static ssize_t write_all(void *cookie, const char *bytes, size_t size)
{
	struct output *to = cookie;
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(STDOUT_FILENO, bytes + done, size - done);

		if (n < 0) {
			to->error = to->error ? to->error : errno;
			break;
		}
		done += (size_t)n;
	}
	to->written += done;
	return (ssize_t)done;
}

int output_open(void)
{
	const cookie_io_functions_t functions = {.write = write_all};
	FILE *stream = fopencookie(&output, "w", functions);

	if (!stream)
		return -1;
	if (isatty(STDOUT_FILENO))
		setvbuf(stream, NULL, _IOLBF, 0);
	stdout = stream;
	return 0;
}

int output_json(const char *command, json_t *object)
{
	int code = object ? json_dumpf(object, stdout, JSON_INDENT(2)) : -1;

	json_decref(object);
	if (!code)
		putchar('\n');
	else if (!ferror(stdout))
		fprintf(stderr, "%s: no memory for the report\n", command);
	return code ? TOOL_FAILED : TOOL_DONE;
}

int output_finish(int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (output.error == EPIPE)
		return code;
	fprintf(stderr, "r3ring: cannot write to standard output, after %" PRIu64 " bytes: %s\n",
		output.written, strerror(output.error));
	return TOOL_FAILED;
}
