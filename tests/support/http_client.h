/* SPDX-License-Identifier: Apache-2.0 */
/* Talks HTTP to a server under test, one exchange a connection. */
#ifndef TESTS_SUPPORT_HTTP_CLIENT_H
#define TESTS_SUPPORT_HTTP_CLIENT_H

#include <jansson.h>

/* Both end the process when they cannot. */
int http_dial_port(int port);
int http_dial_path(const char *path);

/* Sends what was made up by hand; returns all that comes until the server closes. Closes @fd.
 * Static. */
const char *http_exchange(int fd, const char *request);

struct http_reply {
	int status;   /* 0: no answer */
	json_t *json; /* NULL where the body is none */
};

/*
 * Asks, and takes the answer. Closes @fd.
 *
 * @body: JSON, or NULL.
 * @token: or NULL.
 */
struct http_reply http_ask(int fd, const char *method, const char *path, const char *body,
			   const char *token);

#endif
