/* SPDX-License-Identifier: Apache-2.0 */
/* What a registered reader says that it reads for, in the page that it shares with the daemon. */
#ifndef CHANNEL_READER_LABEL_H
#define CHANNEL_READER_LABEL_H

#include <r3ring/error.h>
#include <r3ring/reader_page.h>

/* Checks a label: 0 to 15 letters, digits, ':', '.', '_', '-'. Returns 0 or -EINVAL, with words. */
int reader_label_check(const char *label, struct r3ring_error *err);

/* Stores a label that was checked. */
void reader_label_store(struct r3ring_reader_page *page, const char *label);

/* Loads the label, with its NUL; "" where the page has none, or bytes that are none. */
void reader_label_load(const struct r3ring_reader_page *page,
		       char label[R3RING_READER_LABEL_BYTES]);

#endif
