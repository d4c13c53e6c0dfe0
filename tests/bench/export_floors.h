/* SPDX-License-Identifier: Apache-2.0 */
/* What an export cannot do without, done by one thread and nothing else. */
#ifndef TESTS_BENCH_EXPORT_FLOORS_H
#define TESTS_BENCH_EXPORT_FLOORS_H

#include <stdint.h>

/*
 * Reads the blocks of an archive's first segment, hashes what is stored, decompresses it where
 * it is compressed, and writes @routes bytes of it to the file @out, if any: in ns, without
 * anything before the first block. Returns 0 or a negative errno.
 */
int export_floor_pass(const char *archive, const char *out, uint64_t routes, uint64_t *ns);

/* Decompresses its blocks, which lie in memory: in ns for all, of @raw bytes of entries. */
int export_floor_decompress(const char *archive, uint64_t *raw, uint64_t *ns);

/* Writes @bytes to the file @out, which is not there yet, out of one warm buffer: in ns. */
int export_floor_write(const char *out, uint64_t bytes, uint64_t *ns);

#endif
