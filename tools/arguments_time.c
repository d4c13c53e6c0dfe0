/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time on command lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/arguments.h"

#define NS 1000000000ull

/* "@1700000000" and "@1700000000.5". */
static bool seconds_since_1970(const char *text, uint64_t *ns)
{
	uint64_t seconds, part = 0, unit = NS / 10;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	seconds = strtoull(text, &end, 10);
	if (errno || seconds > INT64_MAX / NS)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			part += (uint64_t)(*end - '0') * unit;
	*ns = seconds * NS + part;
	return !*end;
}

static bool calendar(const char *text, uint64_t *ns)
{
	struct tm when = {.tm_isdst = -1};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
	bool utc = end && !strcmp(end, "Z");
	time_t seconds;

	if (!end || (!utc && *end))
		return false;
	seconds = utc ? timegm(&when) : mktime(&when);
	if (seconds < 0)
		return false;
	*ns = (uint64_t)seconds * NS;
	return true;
}

int arguments_time(const char *command, const char *option, const char *value, uint64_t *ns)
{
	if (value[0] == '@' ? seconds_since_1970(value + 1, ns) : calendar(value, ns))
		return 0;
	fprintf(stderr,
		"%s: %s: '%s' is not a time, such as 2026-11-30T12:00:00, the same with "
		"Z for UTC, or @1700000000\n",
		command, option, value);
	return -EINVAL;
}
