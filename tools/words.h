/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for the numbers in records, in lower case, as the tools print them.
 */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define WORD_MAX 24

/* Copies @name in lower case into @word, cut to its size; returns @word. */
const char *word_lower(char word[WORD_MAX], const char *name);

/* Never NULL; "?" for a value that this version does not know. */
const char *word_request_event(uint32_t event);
const char *word_end_reason(uint32_t reason);
const char *word_step_status(uint32_t status);
const char *word_key_kind(uint32_t kind);
const char *word_closed_reason(uint32_t reason);

/* Name of the lowest bit of a step's flags, NULL when it has none. */
const char *word_step_flag(uint32_t flags);

#endif
