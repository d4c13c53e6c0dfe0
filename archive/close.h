/* SPDX-License-Identifier: Apache-2.0 */
/* Giving an archive the end that a killed recorder did not. */
#ifndef ARCHIVE_CLOSE_H
#define ARCHIVE_CLOSE_H

#include <stdint.h>

#include <r3ring/error.h>

/*
 * Cuts what is not whole at the archive's end and closes it, as a recorder that went on
 * and ended at once would. One that was closed is left alone.
 *
 * @cut: receives the bytes that were cut.
 *
 * Returns 1 (closed now), 0 (it was), -ENOENT, or as archive_writer_open() and _close().
 */
int archive_close(const char *dir, uint64_t *cut, struct r3ring_error *err);

#endif
