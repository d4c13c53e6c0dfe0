/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server: JSON in, JSON out, bounded in everything that a client could make
 * large or slow. Who may talk to it is guard.h's business, what it says its routes'.
 */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdint.h>

#include <jansson.h>

#include <r3ring/error.h>

#include "serve/guard.h"

struct MHD_Connection;
struct MHD_Response;

#define HTTP_BODY_MAX (256u << 10)
#define HTTP_ARGUMENT_MAX 1024u
#define HTTP_CONNECTIONS_MAX 256u
#define HTTP_QUIET_SECONDS 10u  /* a connection on which nothing moves is closed */
#define HTTP_PATIENCE_MS 30000u /* and one on which an exchange takes longer */

struct http_request {
	const char *method;
	const char *argument; /* what stands in place of the route's `*`, decoded; or NULL */
	const json_t *body;   /* of a POST; NULL when there was none */
	struct MHD_Connection *connection;
};

/* The value of ?name=...; NULL when it is not there. Valid while the request is. */
const char *http_query(const struct http_request *request, const char *name);

/* The process at the other end of a Unix socket; 0 where that is not known. */
pid_t http_peer(const struct http_request *request);

/* What a handler says: one of both, taken over. */
struct http_answer {
	unsigned int status;
	json_t *json;
	struct MHD_Response *response; /* where the answer is no JSON; it may take its time */
};

/* Answers with {"error": {"status", "message"}}. */
__attribute__((format(printf, 3, 4))) void http_refuse(struct http_answer *answer,
						       unsigned int status, const char *format,
						       ...);

/* Called by any of the server's threads. */
typedef void (*http_handler)(void *context, const struct http_request *request,
			     struct http_answer *answer);

struct http_route {
	const char *method;
	const char *path; /* "/v1/channels"; a star in it stands for anything but nothing */
	http_handler handle;
	const char *query; /* names of its parameters, blanks between them; NULL: it has none */
};

struct http_server;

struct http_options {
	int listener;              /* a listening socket; taken over, also on failure */
	const struct guard *guard; /* copied by reference: lives as long as the server */
	const struct http_route *routes;
	size_t route_count;
	const char *open_path; /* answered without the token: tells nothing of anybody; or NULL */
	void *context;         /* for the handlers */
	unsigned int threads;
	uint32_t patience_ms; /* 0: HTTP_PATIENCE_MS */
};

/*
 * Starts serving. Returns 0, -ENOMEM, or -EIO with a message. Pairs with http_server_stop().
 */
int http_server_start(struct http_server **server, const struct http_options *options,
		      struct r3ring_error *err);

/* Ends all connections and returns when no handler runs any more. */
void http_server_stop(struct http_server *server);

#endif
