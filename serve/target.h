/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks for: "/v1", as clients send it, or "http://host:port/v1", as they do to a
 * proxy and every server has to accept (RFC 9112, 3.2.2). The host that is named there is the one
 * that counts, whatever the Host header says.
 */
#ifndef SERVE_TARGET_H
#define SERVE_TARGET_H

#include <stdbool.h>

#define TARGET_AUTHORITY_MAX 300 /* a name of DNS, and a port */

struct target {
	const char *path; /* in the text that was taken apart; at least "/" where a host is named */
	char authority[TARGET_AUTHORITY_MAX + 1]; /* "": the Host header names it */
};

/* Takes @text, without its query, apart. False: it names a host, and that is empty or too long. */
bool target_read(struct target *target, const char *text);

#endif
