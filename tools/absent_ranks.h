/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of an engine of which there is no channel, as people and programs are told of them. */
#ifndef TOOLS_ABSENT_RANKS_H
#define TOOLS_ABSENT_RANKS_H

#include <stdio.h>

#include <jansson.h>

#include "archive/ranks.h"

/* A line each, behind @what ("not recorded"); nothing where none is absent. */
void absent_ranks_print(FILE *out, const char *what, const struct archive_absent_ranks *absent);

/* {"ranks": how many, "told": [{"instance", "level", "dp": [index, size], "pp", "sp", "cp"}]}:
 * what is a part of `level` has no place, and is null. NULL: no memory. */
json_t *absent_ranks_json(const struct archive_absent_ranks *absent);

#endif
