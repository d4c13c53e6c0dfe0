/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "consumer/options.h"

int options_copy(void *to, const void *from, size_t bytes, struct r3ring_error *err)
{
	size_t size;

	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < bytes)
		return r3ring_error_set(err, -EINVAL, "size: %zu is less than that of the options",
					size);
	memcpy(to, from, bytes);
	return 0;
}
