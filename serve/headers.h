/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's headers, where a proxy in front and this server might understand them differently:
 * what the one takes for a body may then be the next request to the other.
 */
#ifndef SERVE_HEADERS_H
#define SERVE_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>

#include "serve/http.h"

/* NULL: there is none. */
const char *header_of(struct MHD_Connection *connection, const char *name);

/* Which of two is looked at here, a proxy in front may see otherwise. */
bool headers_have_many(struct MHD_Connection *connection, const char *name);

/* False where it is not clear how long the body is; @answer then refuses, and the connection is to
 * end with it. */
bool headers_tell_length(struct MHD_Connection *connection, struct http_answer *answer);

#endif
