/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one descriptor from shared memory: copied once, then checked. */
#include <string.h>

#include "ring/descriptor.h"

uint32_t desc_checksum(const struct r3ring_desc *desc)
{
	uint64_t words[DESC_WORDS];

	memcpy(words, desc, sizeof(words));
	return desc_words_checksum(words);
}

enum desc_state desc_copy(const struct r3ring_segment *segment, uint64_t seq,
			  struct r3ring_desc *copy)
{
	uint64_t words[DESC_WORDS];
	enum desc_state state = desc_load(segment, seq, words);

	if (state != DESC_INTACT)
		return state;
	copy->seq = seq;
	desc_store_fields(copy, words);
	return DESC_INTACT;
}
