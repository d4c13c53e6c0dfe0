/* SPDX-License-Identifier: Apache-2.0 */
/* What channels lost, in words and as JSON. */
#ifndef TOOLS_LOST_TEXT_H
#define TOOLS_LOST_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "consumer/channel_losses.h"

/* A line of losses by cause, and one of those that are known by totals only; @indent in front
 * of both. Nothing where there is nothing to say. Returns whether there was. */
bool lost_text_print(FILE *out, const char *indent, const struct lost_account *lost);

/* As json_lost(): those of them that are known by totals only. */
json_t *lost_text_unheard_json(const struct lost_account *lost);

#endif
