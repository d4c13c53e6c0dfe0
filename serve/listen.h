/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server listens. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include <stdbool.h>

#include <r3ring/error.h>

struct listen_place {
	char host[256]; /* as was asked for; "" for a Unix socket */
	char name[320]; /* where it is, for people: "127.0.0.1:9300" with the port it got */
	bool loopback;  /* nobody from another machine gets there */
};

/* Whether @text is of one of the forms that listen_on_address() takes. */
bool listen_is_address(const char *text);

/*
 * Listens on "ADDR:PORT", "[V6]:PORT" or ":PORT" (127.0.0.1); port 0 takes any that is free.
 * Returns a socket, -EINVAL (no such form), -EADDRNOTAVAIL (none of this machine), or the errno of what failed, with a message.
 */
int listen_on_address(const char *text, struct listen_place *place, struct r3ring_error *err);

/*
 * Listens on a Unix socket that only this user may connect to. A socket that nobody listens on
 * any more is replaced; anything else at @path is not.
 * Returns a socket, -EADDRINUSE (something is there), -ENAMETOOLONG, or an errno.
 */
int listen_on_path(const char *path, struct listen_place *place, struct r3ring_error *err);

#endif
