/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <microhttpd.h>

#include "serve/route.h"

/* Where in @path the route's argument begins, its end if it has none, or NULL: another path.
 * (The server has decoded the path already, but for what it keeps.) */
static const char *match(const char *pattern, const char *path)
{
	size_t fixed = strcspn(pattern, "*");

	if (strncmp(pattern, path, fixed) != 0)
		return NULL;
	path += fixed;
	if (!pattern[fixed])
		return *path ? NULL : path;
	return *path ? path : NULL;
}

static void add_method(char allowed[64], const char *method)
{
	size_t used = strlen(allowed);

	snprintf(allowed + used, 64 - used, "%s%s", used ? ", " : "", method);
}

static bool takes(const struct http_route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(route->method, MHD_HTTP_METHOD_GET) == 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) == 0);
}

const struct http_route *route_find(const struct http_route *routes, size_t count,
				    const char *method, const char *path,
				    char argument[HTTP_ARGUMENT_MAX + 1], char allowed[64],
				    unsigned int *status)
{
	*status = MHD_HTTP_NOT_FOUND;
	allowed[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *rest = match(routes[i].path, path);

		if (!rest)
			continue;
		if (strlen(rest) > HTTP_ARGUMENT_MAX) {
			*status = MHD_HTTP_BAD_REQUEST;
			return NULL;
		}
		if (takes(&routes[i], method)) {
			snprintf(argument, HTTP_ARGUMENT_MAX + 1, "%s", rest);
			return &routes[i];
		}
		*status = MHD_HTTP_METHOD_NOT_ALLOWED;
		add_method(allowed, routes[i].method);
	}
	return NULL;
}
