/* SPDX-License-Identifier: Apache-2.0 */
/* Option structures of callers, which begin with their size. */
#ifndef CONSUMER_OPTIONS_H
#define CONSUMER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/ring.h>

/*
 * Copies a caller's options, of which he may know more than this library.
 *
 * @to:   @bytes long; untouched where there are none or they are refused.
 * @from: begins with a size_t, its size; NULL: none.
 *
 * Returns 0, or -EINVAL: they are smaller, larger than any, or one is set that this library
 * does not know.
 */
int options_copy(void *to, const void *from, size_t bytes, struct r3ring_error *err);

/* The same of options that may be those of an older caller, of @least bytes: the rest of the
 * @known ones at @to stays as it is. @from: not NULL. */
int options_copy_known(void *to, size_t known, size_t least, const void *from,
		       struct r3ring_error *err);

/* Whether it is 0 or 1. Returns 0 or -EINVAL. */
int options_check_switch(const char *name, uint32_t value, struct r3ring_error *err);

/* Whether a reader can read so. Returns 0 or -EINVAL. */
int options_check_start(enum r3ring_cursor_mode mode, enum r3ring_cursor_start from,
			struct r3ring_error *err);

#endif
