/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is words: its number, its stamp, a fixed pattern, and the number again
 * as the last word of each KiB and of all.
 */
#include <string.h>

#include "tests/bench/peers/message.h"

#define KIB_WORDS 128u
#define LOOKED_AT_WHOLE 256u /* one in so many */

enum { NUMBER_WORD = 0, STAMP_WORD = 1 };

static uint64_t pattern(size_t word)
{
	return (word + 1) * 0x9e3779b97f4a7c15ull;
}

static size_t words_of(size_t size)
{
	return size / sizeof(uint64_t);
}

static bool is_number(size_t word, size_t words)
{
	return word == NUMBER_WORD || word % KIB_WORDS == KIB_WORDS - 1 || word == words - 1;
}

void message_make(void *message, size_t size)
{
	uint64_t *words = message;

	for (size_t i = 0; i < words_of(size); i++)
		words[i] = pattern(i);
}

void message_mark(void *message, size_t size, uint64_t number, uint64_t stamp_ns)
{
	uint64_t *words = message;
	size_t count = words_of(size);

	words[NUMBER_WORD] = number;
	words[STAMP_WORD] = stamp_ns;
	for (size_t i = KIB_WORDS - 1; i < count; i += KIB_WORDS)
		words[i] = number;
	words[count - 1] = number;
}

uint64_t message_number(const void *message)
{
	return ((const uint64_t *)message)[NUMBER_WORD];
}

uint64_t message_stamp(const void *message)
{
	return ((const uint64_t *)message)[STAMP_WORD];
}

static bool pattern_holds(const uint64_t *words, size_t count)
{
	for (size_t i = STAMP_WORD + 1; i < count; i++)
		if (!is_number(i, count) && words[i] != pattern(i))
			return false;
	return true;
}

bool message_holds(const void *message, size_t size)
{
	const uint64_t *words = message;
	size_t count = words_of(size);
	uint64_t number = words[NUMBER_WORD];

	for (size_t i = KIB_WORDS - 1; i < count; i += KIB_WORDS)
		if (words[i] != number)
			return false;
	if (words[count - 1] != number)
		return false;
	return number % LOOKED_AT_WHOLE || pattern_holds(words, count);
}
