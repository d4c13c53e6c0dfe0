/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of a request, as JSON (docs/API.md, "Routes"). */
#ifndef TOOLS_SERVE_ROUTES_H
#define TOOLS_SERVE_ROUTES_H

#include <jansson.h>

#include "serve/routes.h"

/* Of a request that is there. A new object, or NULL without memory. */
json_t *routes_json(const char *id, const struct routes_excerpt *excerpt);

/*
 * Where the routes of a request are asked for: any byte of its id that has another meaning in an
 * address, or none, is escaped.
 */
#define ROUTES_PATH_MAX (3 * R3RING_TEXT_ID_MAX + 32)
void routes_path(const char *id, char path[ROUTES_PATH_MAX]);

/* "A:B", from A up to B, which is not in it; either may be left out. Returns whether it is one. */
bool routes_parse_range(const char *text, uint32_t *from, uint32_t *to);

#endif
