/* SPDX-License-Identifier: Apache-2.0 */
/* An archive's own directory, which no output goes to. */
#ifndef ARCHIVE_EXPORT_OWN_H
#define ARCHIVE_EXPORT_OWN_H

#include <r3ring/error.h>

/* Returns 0, or -EINVAL: @out is in the directory of the archive @dir, or is one of its files. */
int export_refuse_own(const char *dir, const char *out, struct r3ring_error *err);

#endif
