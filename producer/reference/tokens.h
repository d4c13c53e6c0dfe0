/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text as token ids: a small deterministic tokenizer that fits any vocabulary.
 *
 * A word (letters, digits, '_' and bytes of other scripts) becomes one token for
 * each 12 bytes of it, with id 256 + XXH3(bytes) % (vocabulary - 256); a mark or
 * line end becomes a token of its own, with the byte's value as id; blanks only
 * separate.
 */
#ifndef PRODUCER_REFERENCE_TOKENS_H
#define PRODUCER_REFERENCE_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>

#define TOKENS_TEXT_MAX (64u << 20) /* bytes of a text */

struct tokens {
	int32_t *ids;
	size_t count; /* at least 1 */
};

/*
 * Tokens of a file or of @len bytes. @vocabulary is above 256. Returns 0 or the
 * reason, with the file's name and the remedy in @err: an errno (cannot be
 * read), -EFBIG, -ENODATA (no token in it), -EILSEQ (not text: a control byte or
 * no UTF-8; says where). Free with tokens_free().
 */
int tokens_read(struct tokens *tokens, const char *path, uint32_t vocabulary,
		struct r3ring_error *err);
int tokens_split(struct tokens *tokens, const char *text, size_t len, const char *name,
		 uint32_t vocabulary, struct r3ring_error *err);
void tokens_free(struct tokens *tokens);

#endif
