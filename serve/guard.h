/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may talk to the server. A browser on the same machine will send any page's requests
 * to loopback: such a page cannot set the Host header, so a foreign one is refused
 * (DNS rebinding). Everything else is the bearer token's business.
 */
#ifndef SERVE_GUARD_H
#define SERVE_GUARD_H

#include <stdbool.h>

#include <r3ring/error.h>

#define GUARD_HOSTS_MAX 16
#define GUARD_TOKEN_MAX 256

struct guard {
	bool any_host;                      /* a Unix socket: no browser comes that way */
	const char *hosts[GUARD_HOSTS_MAX]; /* names that are ours, without a port */
	unsigned int host_count;
	char token[GUARD_TOKEN_MAX + 1]; /* "": none is asked for */
};

/* Whether @host, the header's value, or NULL, is a name of ours or an
 * address in numbers, with any port. */
bool guard_knows_host(const struct guard *guard, const char *host);

/* Whether @origin, the header's value, or NULL, is a page of ours, or no page at all: ours have the
 * name and the port that the Host header, @host, which is known, asks for. What else serves pages
 * on this machine, under another port, is another site. */
bool guard_knows_origin(const struct guard *guard, const char *origin, const char *host);

/* Whether @authorization, the header's value, or NULL, bears the token. Takes as long for a
 * token that is nearly right as for any other of its length. */
bool guard_admits(const struct guard *guard, const char *authorization);

/*
 * Reads the token, one line, from a file that nobody else may read.
 * Returns 0, -EACCES (others may read it), -EINVAL (empty, too long or with blanks), or the
 * errno of opening it; with a message.
 */
int guard_read_token(struct guard *guard, const char *path, struct r3ring_error *err);

#endif
