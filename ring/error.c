/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in words. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <r3ring/error.h>

int r3ring_error_set(struct r3ring_error *err, int code, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (err) {
		err->code = code;
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	errno = saved;
	return code;
}
