/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a size that is known only when it is there, on its way into a file. */
#ifndef ARCHIVE_EXPORT_TEXT_H
#define ARCHIVE_EXPORT_TEXT_H

#include <stdio.h>

#include "archive/export/file.h"

struct export_text {
	char *text;
	size_t bytes;
	FILE *stream; /* NULL: no memory, as export_text_append() will say */
};

void export_text_open(struct export_text *text);

/* Appends it, and frees it whatever comes of that. Returns as export_file_append(). */
int export_text_append(struct export_text *text, struct export_file *file,
		       struct r3ring_error *err);

#endif
