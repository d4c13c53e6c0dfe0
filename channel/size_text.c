/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel/size_text.h"

int size_text_parse(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	uint64_t number;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	if (*end) {
		const char *unit = strchr(units, *end);

		if (!unit || end[1])
			return -EINVAL;
		if (number >> (64 - 10 * (unit - units + 1)))
			return -ERANGE;
		number <<= 10 * (unit - units + 1);
	}
	if (!number)
		return -EINVAL;
	*bytes = number;
	return 0;
}
