/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include <microhttpd.h>

#include "serve/query.h"

#define PARAMETERS_MAX 32u

struct looking {
	const char *known; /* the route's; "": none */
	struct http_answer *answer;
	const char *seen[PARAMETERS_MAX];
	unsigned int count;
};

/* Whether @name is one of @names, which blanks stand between. */
static bool is_among(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names; len && (at = strstr(at, name)); at += len) {
		if ((at == names || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	}
	return false;
}

static bool was_seen(const struct looking *looking, const char *name)
{
	for (unsigned int i = 0; i < looking->count; i++) {
		if (strcmp(looking->seen[i], name) == 0)
			return true;
	}
	return false;
}

static enum MHD_Result look(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct looking *looking = cls;

	(void)kind;
	(void)value;
	if (strchr(name, ' ') || !is_among(looking->known, name))
		http_refuse(looking->answer, MHD_HTTP_BAD_REQUEST, "there is no parameter %.64s",
			    name);
	else if (was_seen(looking, name) || looking->count == PARAMETERS_MAX)
		http_refuse(looking->answer, MHD_HTTP_BAD_REQUEST, "%.64s is there twice", name);
	else
		looking->seen[looking->count++] = name;
	return looking->answer->json ? MHD_NO : MHD_YES;
}

bool query_is_known(struct MHD_Connection *connection, const struct http_route *route,
		    struct http_answer *answer)
{
	struct looking looking = {.known = route->query ? route->query : "", .answer = answer};

	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, look, &looking);
	return !answer->json;
}
