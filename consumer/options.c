/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "consumer/options.h"

#define SIZE_MOST 4096u /* no structure of options will be larger: a size beyond it is none */

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

int options_copy_known(void *to, size_t known, size_t least, const void *from,
		       struct r3ring_error *err)
{
	size_t size;

	memcpy(&size, from, sizeof(size));
	if (size < least || size > SIZE_MOST)
		return r3ring_error_set(
			err, -EINVAL,
			"size: %zu is none that the options can have, %zu here: set "
			"it to sizeof of their structure",
			size, known);
	if (size > known && !is_zero((const uint8_t *)from + known, size - known))
		return r3ring_error_set(err, -EINVAL,
					"an option behind the %zu bytes that this library knows is "
					"set: it is older than the headers",
					known);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

int options_copy(void *to, const void *from, size_t bytes, struct r3ring_error *err)
{
	return from ? options_copy_known(to, bytes, bytes, from, err) : 0;
}

int options_check_switch(const char *name, uint32_t value, struct r3ring_error *err)
{
	return value <= 1
		       ? 0
		       : r3ring_error_set(err, -EINVAL, "%s: %u is neither 0 nor 1", name, value);
}

int options_check_start(enum r3ring_cursor_mode mode, enum r3ring_cursor_start from,
			struct r3ring_error *err)
{
	if ((unsigned int)mode > R3RING_LOSSLESS)
		return r3ring_error_set(err, -EINVAL, "mode: %d is none", (int)mode);
	if ((unsigned int)from > R3RING_FROM_FIRST)
		return r3ring_error_set(err, -EINVAL, "from: %d is no start", (int)from);
	return 0;
}
