/* SPDX-License-Identifier: Apache-2.0 */
/* An archive's own files, which no output may replace. */
#ifndef ARCHIVE_EXPORT_OWN_H
#define ARCHIVE_EXPORT_OWN_H

#include <r3ring/error.h>

/* Returns 0, or -EINVAL: @out is a segment, the index or the lock of the archive @dir. */
int export_refuse_own(const char *dir, const char *out, struct r3ring_error *err);

#endif
