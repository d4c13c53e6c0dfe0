/* SPDX-License-Identifier: Apache-2.0 */
/* Option structures of callers, which begin with their size. */
#ifndef CONSUMER_OPTIONS_H
#define CONSUMER_OPTIONS_H

#include <stddef.h>

#include <r3ring/error.h>

/*
 * Copies a caller's options, of which he may know more than this library.
 *
 * @to:   @bytes long; untouched where there are none or they are refused.
 * @from: begins with a size_t, its size; NULL: none.
 *
 * Returns 0, or -EINVAL: they are smaller.
 */
int options_copy(void *to, const void *from, size_t bytes, struct r3ring_error *err);

#endif
