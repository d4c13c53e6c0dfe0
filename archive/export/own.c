/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/export/export.h"
#include "archive/export/own.h"
#include "archive/format.h"
#include "archive/index.h"
#include "archive/listing.h"

static bool is_same(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* SQLite has files beside its own, called like it and a bit more. */
static bool is_own_name(const char *name)
{
	return archive_segment_number(name) || !strcmp(name, ARCHIVE_LOCK) ||
	       !strncmp(name, ARCHIVE_INDEX, strlen(ARCHIVE_INDEX));
}

/* Whether it is the archive's directory, or in it. */
static bool is_inside(const char *path, const char *dir)
{
	char at[PATH_MAX], *slash;

	if (!realpath(path, at))
		return false;
	while (!is_same(at, dir)) {
		slash = strrchr(at, '/');
		if (!slash || slash == at)
			return false;
		*slash = '\0';
	}
	return true;
}

int export_refuse_own(const char *dir, const char *out, struct r3ring_error *err)
{
	char path[PATH_MAX], name[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", out) >= (int)sizeof(path))
		return 0; /* the output's own refusal */
	snprintf(name, sizeof(name), "%s", out);
	if (export_to_stdout(out) || !is_inside(dirname(path), dir))
		return 0;
	return r3ring_error_set(err, -EINVAL, "%s is %s: name an output elsewhere", out,
				is_own_name(basename(name)) ? "a file of the archive itself"
							    : "in the archive's own directory");
}
