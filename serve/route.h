/* SPDX-License-Identifier: Apache-2.0 */
/* From a method and a path to the one that answers. */
#ifndef SERVE_ROUTE_H
#define SERVE_ROUTE_H

#include "serve/http.h"

/*
 * Finds the route of a request.
 *
 * @argument: receives what stands for the `*`, percent-decoded, or "".
 * Returns the route; or NULL, and *@status is 404 (no such path), 405 (the path is there, and
 * @allowed lists the methods), or 400 (the argument is too long, or no text).
 */
const struct http_route *route_find(const struct http_route *routes, size_t count,
				    const char *method, const char *path,
				    char argument[HTTP_ARGUMENT_MAX + 1], char allowed[64],
				    unsigned int *status);

#endif
