/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring verify: what is shown of an archive. */
#ifndef TOOLS_VERIFY_H
#define TOOLS_VERIFY_H

#include <stdio.h>

#include <jansson.h>

#include "archive/verify.h"

/* For people, on a few lines. */
void verify_print(FILE *out, const char *dir, const struct archive_verified *verified);

/* @problems: an array of texts, taken over. NULL: no memory. */
json_t *verify_json(const char *dir, const struct archive_verified *verified, json_t *problems);

#endif
