/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "serve/target.h"

#define SCHEME "http://"

bool target_read(struct target *target, const char *text)
{
	size_t length;

	target->path = text;
	target->authority[0] = '\0';
	if (strncasecmp(text, SCHEME, strlen(SCHEME)) != 0)
		return true;
	text += strlen(SCHEME);
	length = strcspn(text, "/");
	target->path = text[length] ? text + length : "/";
	if (length == 0 || length > TARGET_AUTHORITY_MAX)
		return false;
	memcpy(target->authority, text, length);
	target->authority[length] = '\0';
	return true;
}
