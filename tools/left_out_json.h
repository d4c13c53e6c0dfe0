/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of another model than the one whose load is told, as JSON. */
#ifndef TOOLS_LEFT_OUT_JSON_H
#define TOOLS_LEFT_OUT_JSON_H

#include <jansson.h>

#include "monitor/follower.h"

/* [{"channel", "model"}]: a new reference, or NULL without memory. */
json_t *left_out_json(const struct follower_left_out *list, uint32_t count);
json_t *left_out_json_of(struct follower *follower);

#endif
