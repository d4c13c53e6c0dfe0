/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "archive/export/text.h"

void export_text_open(struct export_text *text)
{
	*text = (struct export_text){0};
	text->stream = open_memstream(&text->text, &text->bytes);
}

int export_text_append(struct export_text *text, struct export_file *file, struct r3ring_error *err)
{
	int rc = -ENOMEM;

	if (text->stream && !fclose(text->stream))
		rc = export_file_append(file, text->text, text->bytes, err);
	else
		r3ring_error_set(err, rc, "no memory");
	free(text->text);
	return rc;
}
