/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "channel/reader_label.h"

#define LONGEST (R3RING_READER_LABEL_BYTES - 1)
#define WORDS (R3RING_READER_LABEL_BYTES / 8)

static bool may_stand(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr(":._-", c));
}

int reader_label_check(const char *label, struct r3ring_error *err)
{
	size_t i = 0;

	while (i <= LONGEST && may_stand(label[i]))
		i++;
	if (i > LONGEST)
		return r3ring_error_set(err, -EINVAL,
					"a reader's label has more than %u letters: shorten it",
					LONGEST);
	if (label[i])
		return r3ring_error_set(err, -EINVAL,
					"a reader's label: byte %zu (0x%02x) is not allowed; use "
					"letters, digits, ':', '.', '_', '-'",
					i + 1, (unsigned char)label[i]);
	return 0;
}

void reader_label_store(struct r3ring_reader_page *page, const char *label)
{
	uint64_t words[WORDS] = {0};

	memcpy(words, label, strlen(label));
	for (unsigned int i = 0; i < WORDS; i++)
		r3ring_store_relaxed_u64(&page->label[i], words[i]);
}

void reader_label_load(const struct r3ring_reader_page *page, char label[R3RING_READER_LABEL_BYTES])
{
	uint64_t words[WORDS];

	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = r3ring_load_relaxed_u64(&page->label[i]);
	memcpy(label, words, R3RING_READER_LABEL_BYTES);
	if (reader_label_check(label, NULL) < 0)
		label[0] = '\0';
}
