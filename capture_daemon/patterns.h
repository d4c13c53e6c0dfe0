/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of channel names, as of glob(7), parted by commas: rl-?/?,eval/0. */
#ifndef DAEMON_PATTERNS_H
#define DAEMON_PATTERNS_H

#include <stdbool.h>

#define PATTERNS_TEXT 512 /* bytes, with the NUL */

/* Whether each can fit a name: none is empty, brackets are closed, something follows each
 * backslash. @patterns: shorter than PATTERNS_TEXT. */
bool patterns_valid(const char *patterns);

/* Whether one of them fits all of @name. "": none does. */
bool patterns_fit(const char *patterns, const char *name);

#endif
