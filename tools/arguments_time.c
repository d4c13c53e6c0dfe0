/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time on command lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/arguments.h"

#define NS 1000000000ull
#define SECONDS_MAX (INT64_MAX / (int64_t)NS)

/* Both forms return 0, -EINVAL (no time at all) or -ERANGE (before 1970, after 2262). */

/* "@1700000000" and "@1700000000.5". */
static int seconds_since_1970(const char *text, uint64_t *ns)
{
	uint64_t seconds, part = 0, unit = NS / 10;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	seconds = strtoull(text, &end, 10); /* beyond 64 bits: the highest */
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			part += (uint64_t)(*end - '0') * unit;
	if (*end)
		return -EINVAL;
	if (seconds >= SECONDS_MAX)
		return -ERANGE;
	*ns = seconds * NS + part;
	return 0;
}

/* What the C library would make another time of: 30 February, or an hour that is skipped. */
static bool is_same(const struct tm *said, const struct tm *made)
{
	return said->tm_year == made->tm_year && said->tm_mon == made->tm_mon &&
	       said->tm_mday == made->tm_mday && said->tm_hour == made->tm_hour &&
	       said->tm_min == made->tm_min && said->tm_sec == made->tm_sec;
}

static int calendar(const char *text, uint64_t *ns)
{
	struct tm when = {.tm_isdst = -1}, made;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
	bool utc = end && !strcmp(end, "Z");
	time_t seconds;

	if (!end || (!utc && *end))
		return -EINVAL;
	made = when;
	seconds = utc ? timegm(&made) : mktime(&made);
	if (!is_same(&when, &made))
		return -EINVAL;
	if (seconds < 0 || seconds >= SECONDS_MAX)
		return -ERANGE;
	*ns = (uint64_t)seconds * NS;
	return 0;
}

int arguments_time(const char *command, const char *option, const char *value, uint64_t *ns)
{
	int rc = value[0] == '@' ? seconds_since_1970(value + 1, ns) : calendar(value, ns);

	if (rc == -ERANGE)
		fprintf(stderr,
			"%s: %s: '%s' is out of range: times are from 1970 to 2262-04-11 "
			"(@9223372035)\n",
			command, option, value);
	else if (rc)
		fprintf(stderr,
			"%s: %s: '%s' is not a time, such as 2026-11-30T12:00:00, the same with "
			"Z for UTC, or @1700000000\n",
			command, option, value);
	return rc ? -EINVAL : 0;
}

int arguments_until(const char *command, const char *value, uint64_t *ns)
{
	int rc = arguments_time(command, "--until", value, ns);

	if (rc || *ns)
		return rc;
	fprintf(stderr, "%s: --until: '%s' is when 1970 begins, and no time is before it\n",
		command, value);
	return -EINVAL;
}
