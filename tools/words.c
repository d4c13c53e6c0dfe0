/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for the numbers in records.
 */
#include <ctype.h>

#include <r3ring/record.h>

#include "tools/words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *word_of(const char *const *words, size_t count, uint32_t value)
{
	return value < count && words[value] ? words[value] : "?";
}

const char *word_lower(char word[WORD_MAX], const char *name)
{
	size_t i;

	for (i = 0; i < WORD_MAX - 1 && name[i]; i++)
		word[i] = (char)tolower((unsigned char)name[i]);
	word[i] = '\0';
	return word;
}

const char *word_request_event(uint32_t event)
{
	static const char *const words[] = {
		[R3RING_REQUEST_BEGIN] = "begin",
		[R3RING_REQUEST_END] = "end",
	};

	return word_of(words, COUNT(words), event);
}

const char *word_end_reason(uint32_t reason)
{
	static const char *const words[] = {
		[R3RING_END_FINISHED] = "finished",
		[R3RING_END_ABORTED] = "aborted",
		[R3RING_END_PREEMPTED] = "preempted",
		[R3RING_END_UNKNOWN] = "unknown",
	};

	return word_of(words, COUNT(words), reason);
}

const char *word_step_status(uint32_t status)
{
	static const char *const words[] = {
		[R3RING_STEP_COMPLETE] = "complete",
		[R3RING_STEP_PARTIAL] = "partial",
	};

	return word_of(words, COUNT(words), status);
}

const char *word_key_kind(uint32_t kind)
{
	static const char *const words[] = {
		[R3RING_KEYS_NONE] = "none",
		[R3RING_KEYS_BLOCK_HASH] = "block_hash",
		[R3RING_KEYS_SLOT] = "slot",
	};

	return word_of(words, COUNT(words), kind);
}

const char *word_closed_reason(uint32_t reason)
{
	static const char *const words[] = {
		[R3RING_CLOSED_NEXT] = "next",
		[R3RING_CLOSED_SHUTDOWN] = "shutdown",
		[R3RING_CLOSED_CRASHED] = "crashed",
	};

	return word_of(words, COUNT(words), reason);
}

const char *word_step_flag(uint32_t flags)
{
	if (flags & R3RING_STEP_WARMUP)
		return "warmup";
	if (flags & R3RING_STEP_GRAPH)
		return "graph";
	if (flags & R3RING_STEP_SPANS_FOLLOW)
		return "spans_follow";
	if (flags & R3RING_STEP_DROPPED)
		return "dropped";
	return NULL;
}
