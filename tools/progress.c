/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tools/progress.h"
#include "tools/quantity.h"

void progress_show(void *ctx, uint64_t bytes, uint64_t of)
{
	bool *shown = ctx;
	char done[QUANTITY_TEXT], all[QUANTITY_TEXT];

	*shown = true;
	fprintf(stderr, "\r%s of %s read (%u %%) ", quantity_bytes(done, bytes),
		quantity_bytes(all, of), of ? (unsigned int)(bytes * 100 / of) : 100);
}

void progress_hide(bool shown)
{
	if (shown)
		fputs("\r\033[K", stderr);
}
