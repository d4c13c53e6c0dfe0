/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <microhttpd.h>

#include "serve/route.h"

/* Whether @path is of the pattern; then what stands for its `*`, which is not empty, begins at
 * *@argument and has *@len bytes. (The server has decoded the path already: an argument may have any
 * bytes, a slash too, so what is behind the `*` is looked for from the end.) */
static bool match(const char *pattern, const char *path, const char **argument, size_t *len)
{
	const size_t fixed = strcspn(pattern, "*");
	const char *rest = pattern[fixed] ? pattern + fixed + 1 : "";
	const size_t behind = strlen(rest);
	size_t whole;

	if (strncmp(pattern, path, fixed) != 0)
		return false;
	path += fixed;
	whole = strlen(path);
	*argument = path;
	*len = whole > behind ? whole - behind : 0;
	if (!pattern[fixed])
		return !whole;
	return *len && strcmp(path + *len, rest) == 0;
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
		const char *found;
		size_t len;

		if (!match(routes[i].path, path, &found, &len))
			continue;
		if (len > HTTP_ARGUMENT_MAX) {
			*status = MHD_HTTP_BAD_REQUEST;
			return NULL;
		}
		if (takes(&routes[i], method)) {
			memcpy(argument, found, len);
			argument[len] = '\0';
			return &routes[i];
		}
		*status = MHD_HTTP_METHOD_NOT_ALLOWED;
		add_method(allowed, routes[i].method);
	}
	return NULL;
}
