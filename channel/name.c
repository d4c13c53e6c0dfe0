/* SPDX-License-Identifier: Apache-2.0 */
/* Channel names: INSTANCE/RANK[.draft], and the segment names made from them. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "channel/socket.h"

#define DRAFT_SUFFIX ".draft"

static bool instance_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/* Checks @len bytes, which need not be terminated. */
static int check_instance(const char *text, size_t len, struct r3ring_error *err)
{
	if (len < 1 || len > R3RING_INSTANCE_MAX)
		return r3ring_error_set(err, -EINVAL,
					"instance name \"%.*s\" has %zu bytes; 1 to %d are allowed",
					(int)(len > 60 ? 60 : len), text, len, R3RING_INSTANCE_MAX);

	if (len <= 2 && !memcmp(text, "..", len))
		return r3ring_error_set(err, -EINVAL,
					"instance name \"%.*s\" is a directory's, not a channel's",
					(int)len, text);
	for (size_t i = 0; i < len; i++) {
		if (!instance_letter(text[i]))
			return r3ring_error_set(
				err, -EINVAL,
				"instance name \"%.*s\": byte %zu (0x%02x) is not allowed; use "
				"letters, digits, '.', '_', '-'",
				(int)len, text, i + 1, (unsigned char)text[i]);
	}
	return 0;
}

int channel_instance_check(const char *instance, struct r3ring_error *err)
{
	if (!instance)
		return r3ring_error_set(
			err, -EINVAL,
			"instance name is missing; give letters, digits, '.', '_', '-', 1 to %d",
			R3RING_INSTANCE_MAX);
	return check_instance(instance, strlen(instance), err);
}

/*
 * Reads a rank as it is written: digits alone, no leading zero.
 * Returns where it ends, NULL when it is none.
 */
static const char *parse_rank(const char *text, uint32_t *rank)
{
	uint64_t value = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		if (value > UINT32_MAX)
			return NULL;
	}
	if (p == text || (text[0] == '0' && p > text + 1))
		return NULL;
	*rank = (uint32_t)value;
	return p;
}

int channel_name_parse(struct r3ring_channel_name *name, const char *text, struct r3ring_error *err)
{
	struct r3ring_channel_name parsed = {0};
	const char *slash = text ? strchr(text, '/') : NULL;
	const char *rest;
	int ret;

	if (!slash)
		return r3ring_error_set(err, -EINVAL,
					"channel \"%.80s\" has no rank; write INSTANCE/RANK or "
					"INSTANCE/RANK.draft, for example demo/0",
					text ? text : "");

	ret = check_instance(text, (size_t)(slash - text), err);
	if (ret)
		return ret;

	rest = parse_rank(slash + 1, &parsed.rank);
	if (rest && !strcmp(rest, DRAFT_SUFFIX))
		parsed.draft = 1;
	else if (!rest || *rest)
		return r3ring_error_set(err, -EINVAL,
					"channel \"%.120s\": rank \"%.40s\" is not a number from 0 "
					"to %" PRIu32 " (with .draft behind it for a draft model)",
					text, slash + 1, UINT32_MAX);

	memcpy(parsed.instance, text, (size_t)(slash - text));
	*name = parsed;
	return 0;
}

int channel_name_check(const struct r3ring_channel_name *name, struct r3ring_error *err)
{
	size_t len = strnlen(name->instance, sizeof(name->instance));

	if (len == sizeof(name->instance))
		return r3ring_error_set(err, -EINVAL, "instance name does not end within %d bytes",
					R3RING_INSTANCE_MAX);
	if (name->draft > 1)
		return r3ring_error_set(err, -EINVAL,
					"channel name's draft mark is %u; 0 and 1 are allowed",
					name->draft);
	return check_instance(name->instance, len, err);
}

bool channel_names_equal(const struct r3ring_channel_name *a, const struct r3ring_channel_name *b)
{
	return a->rank == b->rank && a->draft == b->draft && strcmp(a->instance, b->instance) == 0;
}

const char *channel_name_format(const struct r3ring_channel_name *name,
				char text[CHANNEL_NAME_TEXT])
{
	snprintf(text, CHANNEL_NAME_TEXT, "%s/%" PRIu32 "%s", name->instance, name->rank,
		 name->draft ? DRAFT_SUFFIX : "");
	return text;
}

void channel_segment_name(const struct r3ring_channel_name *name, uid_t uid, uint64_t generation,
			  char text[128])
{
	snprintf(text, 128, "/r3ring.%u.%s.%" PRIu32 "%s.%" PRIu64, uid, name->instance, name->rank,
		 name->draft ? DRAFT_SUFFIX : "", generation);
}
