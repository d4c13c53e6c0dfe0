/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may ask behind the question mark. */
#ifndef SERVE_QUERY_H
#define SERVE_QUERY_H

#include "serve/http.h"

/* Refuses, and returns false, a parameter that the route does not know, and one that is there
 * twice: a slip of the pen is no default. */
bool query_is_known(struct MHD_Connection *connection, const struct http_route *route,
		    struct http_answer *answer);

#endif
