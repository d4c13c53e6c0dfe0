/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token ids. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "producer/reference/tokens.h"

#define WORD_BYTES 12
#define BYTE_IDS 256u

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static bool is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c >= 0x80;
}

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 sequence that @lead begins, 0 if none can begin so. */
static size_t sequence_length(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

static bool is_text_at(const unsigned char *text, size_t len, size_t at)
{
	size_t bytes = sequence_length(text[at]);

	if (!bytes || bytes > len - at || text[at] == 0x7f)
		return false;
	if (text[at] < 0x20 && text[at] != '\n' && !is_blank(text[at]))
		return false;
	for (size_t i = 1; i < bytes; i++) {
		if (!is_continuation(text[at + i]))
			return false;
	}
	return true;
}

static int check_text(const unsigned char *text, size_t len, const char *name,
		      struct r3ring_error *err)
{
	for (size_t at = 0; at < len; at += sequence_length(text[at])) {
		if (!is_text_at(text, len, at))
			return r3ring_error_set(err, -EILSEQ,
						"%s: not text (byte 0x%02x at offset %zu): --text "
						"takes a text file in UTF-8",
						name, text[at], at);
	}
	return 0;
}

/* The token at @text; sets how many bytes it has. */
static int32_t next_token(const unsigned char *text, size_t len, uint32_t vocabulary, size_t *bytes)
{
	size_t n = 0;

	while (n < len && n < WORD_BYTES && is_word(text[n]))
		n++;
	*bytes = n ? n : 1;
	if (!n)
		return text[0];
	return (int32_t)(BYTE_IDS + XXH3_64bits(text, n) % (vocabulary - BYTE_IDS));
}

int tokens_split(struct tokens *tokens, const char *text, size_t len, const char *name,
		 uint32_t vocabulary, struct r3ring_error *err)
{
	const unsigned char *bytes = (const unsigned char *)text;
	struct tokens made = {0};
	bool any = false; /* line ends alone are no text */
	size_t used;
	int rc = check_text(bytes, len, name, err);

	if (rc)
		return rc;
	made.ids = calloc(len ? len : 1, sizeof(*made.ids));
	if (!made.ids)
		return r3ring_error_set(err, -ENOMEM, "%s: no memory for its tokens", name);
	for (size_t at = 0; at < len; at += used) {
		used = 1;
		any |= !is_blank(bytes[at]) && bytes[at] != '\n';
		if (!is_blank(bytes[at]))
			made.ids[made.count++] =
				next_token(bytes + at, len - at, vocabulary, &used);
	}
	if (!any) {
		free(made.ids);
		return r3ring_error_set(err, -ENODATA,
					"%s: no words in it: --text takes a file with text", name);
	}
	*tokens = made;
	return 0;
}

/* Reads to the end, at most one byte more than is allowed. */
static int read_all(FILE *file, char **text, size_t *len)
{
	size_t room = 1u << 16;
	char *bytes = NULL;

	*len = 0;
	for (;;) {
		char *more = realloc(bytes, room);

		if (!more) {
			free(bytes);
			return -ENOMEM;
		}
		bytes = more;
		*len += fread(bytes + *len, 1, room - *len, file);
		if (*len < room || *len > TOKENS_TEXT_MAX)
			break;
		room *= 2;
	}
	*text = bytes;
	return 0;
}

int tokens_read(struct tokens *tokens, const char *path, uint32_t vocabulary,
		struct r3ring_error *err)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (!file) {
		rc = -errno;
		return r3ring_error_set(err, rc, "%s: %s: --text takes a readable text file", path,
					strerror(-rc));
	}
	errno = 0;
	rc = read_all(file, &text, &len);
	if (!rc && ferror(file))
		rc = errno ? -errno : -EIO;
	if (rc)
		r3ring_error_set(err, rc, "%s: %s: --text takes a readable text file", path,
				 strerror(-rc));
	else if (len > TOKENS_TEXT_MAX)
		rc = r3ring_error_set(err, -EFBIG, "%s: longer than %u bytes: take a part of it",
				      path, TOKENS_TEXT_MAX);
	else
		rc = tokens_split(tokens, text, len, path, vocabulary, err);
	free(text);
	fclose(file);
	return rc;
}

void tokens_free(struct tokens *tokens)
{
	free(tokens->ids);
	*tokens = (struct tokens){0};
}
