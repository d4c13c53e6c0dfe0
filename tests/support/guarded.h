/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that end where memory ends: a read beyond them is a fault. A child that
 * is forked later shares them. */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <stddef.h>
#include <stdint.h>

struct guarded {
	void *base;
	size_t mapped;
	uint8_t *end; /* the first byte that faults */
};

/* Room for @capacity bytes before the guard page; aborts when memory is out. */
struct guarded guarded_create(size_t capacity);
void guarded_destroy(struct guarded *guarded);

/* Copies @len bytes so that they end at the guard page; returns where they begin. */
uint8_t *guarded_put(const struct guarded *guarded, const void *bytes, size_t len);

#endif
