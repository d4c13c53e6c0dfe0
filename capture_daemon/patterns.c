/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of channel names. */
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "capture_daemon/patterns.h"

/* Behind a class within brackets, such as [:digit:]; NULL: it does not end. */
static const char *class_end(const char *at)
{
	const char mark[] = {at[1], ']', '\0'};
	const char *end = strstr(at + 2, mark);

	return end ? end + 2 : NULL;
}

/* Behind the bracket that closes; NULL: none does. */
static const char *bracket_end(const char *at)
{
	if (*at == '!' || *at == '^')
		at++;
	if (*at == ']') /* as the first it is one of the letters */
		at++;
	while (at && *at && *at != ']') {
		if (*at == '[' && at[1] && strchr(":.=", at[1]))
			at = class_end(at);
		else
			at += *at == '\\' && at[1] ? 2 : 1;
	}
	return at && *at ? at + 1 : NULL;
}

static bool is_valid(const char *pattern)
{
	const char *at = pattern;

	while (at && *at) {
		if (*at == '[')
			at = bracket_end(at + 1);
		else if (*at == '\\')
			at = at[1] ? at + 2 : NULL;
		else
			at++;
	}
	return at && *pattern;
}

static bool fits(const char *pattern, const void *name)
{
	return fnmatch(pattern, name, 0) == 0;
}

static bool any(const char *patterns, bool (*holds)(const char *pattern, const void *ctx),
		const void *ctx)
{
	char all[PATTERNS_TEXT];
	char *rest = all, *pattern;

	memcpy(all, patterns, strlen(patterns) + 1);
	while ((pattern = strsep(&rest, ","))) {
		if (holds(pattern, ctx))
			return true;
	}
	return false;
}

static bool is_invalid(const char *pattern, const void *unused)
{
	(void)unused;
	return !is_valid(pattern);
}

bool patterns_valid(const char *patterns)
{
	return !any(patterns, is_invalid, NULL);
}

bool patterns_fit(const char *patterns, const char *name)
{
	return any(patterns, fits, name);
}
