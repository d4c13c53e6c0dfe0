/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange: guarded before its body is read, answered once that is whole. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "serve/headers.h"
#include "serve/http.h"
#include "serve/patience.h"
#include "serve/query.h"
#include "serve/route.h"
#include "serve/target.h"

#define MEMORY_PER_CONNECTION (32u << 10)  /* headers: more is refused by the library */
#define BODY_READ_MAX (16 * HTTP_BODY_MAX) /* of one that is too long: then it is cut off */

struct http_server {
	struct http_options options;
	struct MHD_Daemon *daemon;
	struct patience *patience;
};

struct exchange {
	bool begun;              /* its headers were looked at */
	bool has_zero;           /* in its address: it would end there for whoever reads it */
	const char *address_end; /* as the library has it: at its first zero byte */
	const struct http_route *route;
	char argument[HTTP_ARGUMENT_MAX + 1];
	char *body;
	size_t length; /* of what has come: nothing of a longer one than HTTP_BODY_MAX is kept */
	bool refused;  /* answered already; the rest of its body is not wanted */
};

/* ---- what handlers use ---------------------------------------------------- */

const char *http_query(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

pid_t http_peer(const struct http_request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return 0;
	return peer.pid;
}

/* What clients sent may be in it, cut anywhere: JSON is UTF-8 and nothing else. */
static void make_ascii(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void http_refuse(struct http_answer *answer, unsigned int status, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	make_ascii(text);
	json_decref(answer->json);
	answer->status = status;
	answer->json = json_pack("{s:{s:i, s:s}}", "error", "status", (int)status, "message", text);
}

/* ---- answering ------------------------------------------------------------ */

/* What every answer says of itself; the page's own headers come on top of it. */
static void add_headers(struct MHD_Response *response)
{
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

/* One line, so that answers that are printed one after the other stand apart. */
static char *json_line(const json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT), *line;
	size_t length = text ? strlen(text) : 0;

	line = text ? realloc(text, length + sizeof("\n")) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + length, "\n", sizeof("\n"));
	return line;
}

static struct MHD_Response *json_response(const json_t *json)
{
	char *text = json ? json_line(json) : NULL;
	struct MHD_Response *response;

	if (!text)
		return NULL;
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return NULL;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	return response;
}

/* Without memory for an answer the connection is closed: MHD_NO does that. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, struct http_answer *answer,
				   const char *header, const char *value)
{
	struct MHD_Response *response = answer->response ? answer->response
							 : json_response(answer->json);
	enum MHD_Result sent;

	json_decref(answer->json);
	if (!response)
		return MHD_NO;
	add_headers(response);
	if (header)
		MHD_add_response_header(response, header, value);
	sent = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return sent;
}

/* ---- before the body ------------------------------------------------------ */

/* Who has begun to send one would not hear why the connection is closed under it: a little more is
 * read, and dropped, from all but those who ask first. */
static bool body_too_long(struct MHD_Connection *connection)
{
	const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const bool asks = header_of(connection, MHD_HTTP_HEADER_EXPECT) != NULL;

	return length && strtoull(length, NULL, 10) > (asks ? HTTP_BODY_MAX : BODY_READ_MAX);
}

static bool is_open(const struct http_options *options, const char *path)
{
	return options->open_path && strcmp(options->open_path, path) == 0;
}

static void refuse_body(struct http_answer *answer)
{
	http_refuse(answer, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most %u bytes",
		    HTTP_BODY_MAX);
}

/* How long it has been waited for. */
static struct waited *waited_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Refuses what is not to be read; false when it was refused and answered. */
static bool begin_exchange(const struct http_server *server, struct MHD_Connection *connection,
			   const char *url, const char *method, struct exchange *exchange,
			   enum MHD_Result *sent)
{
	const struct http_options *options = &server->options;
	struct target target;
	const bool named = target_read(&target, url);
	const char *host = target.authority[0] ? target.authority
					       : header_of(connection, MHD_HTTP_HEADER_HOST);
	const char *header = NULL, *value = NULL;
	struct http_answer answer = {0};
	unsigned int status;
	char allowed[64];

	exchange->route = route_find(options->routes, options->route_count, method, target.path,
				     exchange->argument, allowed, &status);
	if (headers_have_many(connection, MHD_HTTP_HEADER_HOST)) {
		http_refuse(&answer, MHD_HTTP_BAD_REQUEST, "more than one Host header");
	} else if (!headers_tell_length(connection, &answer)) {
		header = MHD_HTTP_HEADER_CONNECTION;
		value = "close";
	} else if (!named) {
		http_refuse(&answer, MHD_HTTP_BAD_REQUEST,
			    "the address names no host, or one that is too long");
	} else if (!guard_knows_host(options->guard, host)) {
		http_refuse(&answer, MHD_HTTP_MISDIRECTED_REQUEST,
			    "the %s names none of this server's: see --allow-host",
			    target.authority[0] ? "address" : "Host header");
	} else if (!guard_knows_origin(options->guard,
				       header_of(connection, MHD_HTTP_HEADER_ORIGIN), host)) {
		http_refuse(&answer, MHD_HTTP_FORBIDDEN,
			    "the Origin header names another site or port than the Host header: "
			    "its pages may not ask; a proxy in front has to pass on Host");
	} else if (!is_open(options, target.path) &&
		   !guard_admits(options->guard,
				 header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION))) {
		http_refuse(&answer, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed");
		header = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
		value = "Bearer";
	} else if (exchange->has_zero) {
		http_refuse(&answer, MHD_HTTP_BAD_REQUEST, "no address has a zero byte in it");
	} else if (!exchange->route) {
		http_refuse(&answer, status, "%s %s: %s%s", method, url,
			    allowed[0] ? "what may be asked there is " : "there is no such thing",
			    allowed);
		if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
			header = MHD_HTTP_HEADER_ALLOW;
			value = allowed;
		}
	} else if (body_too_long(connection)) {
		refuse_body(&answer);
	} else if (query_is_known(connection, exchange->route, &answer)) {
		return true;
	}
	exchange->refused = true;
	*sent = send_answer(connection, &answer, header, value);
	return false;
}

/* ---- the body, and then ---------------------------------------------------- */

/* A body that says nothing of its length may turn out to be too long as well: what it has more is
 * read, and dropped, so that who sends it can be told. */
static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *size)
{
	size_t length = exchange->length + *size;
	char *body = exchange->body;

	if (!exchange->refused && length <= HTTP_BODY_MAX) {
		body = realloc(body, length);
		if (!body)
			return MHD_NO;
		memcpy(body + exchange->length, data, *size);
		exchange->body = body;
	}
	exchange->length = length;
	*size = 0;
	return length <= BODY_READ_MAX ? MHD_YES : MHD_NO;
}

static bool parse_body(const struct exchange *exchange, json_t **body, struct http_answer *answer)
{
	json_error_t error;

	*body = NULL;
	if (!exchange->length)
		return true;
	if (exchange->length > HTTP_BODY_MAX) {
		refuse_body(answer);
		return false;
	}
	*body = json_loadb(exchange->body, exchange->length, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(*body))
		return true;
	if (*body)
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "the body is no JSON object");
	else if (json_error_code(&error) == json_error_null_character)
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "line %d: a text has a zero character in it, \\u0000: leave it out",
			    error.line);
	else
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "the body is no JSON: line %d: %s",
			    error.line, error.text);
	json_decref(*body);
	*body = NULL;
	return false;
}

static enum MHD_Result finish_exchange(const struct http_server *server,
				       struct MHD_Connection *connection, const char *method,
				       struct exchange *exchange)
{
	const struct http_route *route = exchange->route;
	struct http_answer answer = {.status = MHD_HTTP_OK};
	struct http_request request = {
		.method = method,
		.argument = exchange->argument,
		.connection = connection,
	};
	json_t *body;

	if (parse_body(exchange, &body, &answer)) {
		request.body = body;
		route->handle(server->options.context, &request, &answer);
	}
	json_decref(body);
	if (answer.response)
		patience_forgo(waited_of(connection));
	return send_answer(connection, &answer, NULL, NULL);
}

/* Of an address as it was sent. NULL without memory. */
static void *open_exchange(void *cls, const char *address, struct MHD_Connection *connection)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	(void)cls;
	(void)connection;
	if (exchange) {
		exchange->has_zero = strstr(address, "%00") != NULL;
		exchange->address_end = strchr(address, '\0');
	}
	return exchange;
}

/* Between them the library has one byte, the blank, unless the address went on behind a zero. */
static bool ends_early(const char *address_end, const char *version)
{
	const uintptr_t between = (uintptr_t)version - (uintptr_t)address_end;

	return between > 1 && between < MEMORY_PER_CONNECTION;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **state)
{
	const struct http_server *server = cls;
	struct exchange *exchange = *state;
	enum MHD_Result sent;

	if (!exchange)
		return MHD_NO;
	if (!exchange->begun) {
		exchange->begun = true;
		exchange->has_zero |= ends_early(exchange->address_end, version);
		return begin_exchange(server, connection, url, method, exchange, &sent) ? MHD_YES
											: sent;
	}
	if (*size)
		return take_body(exchange, data, size);
	return exchange->refused ? MHD_YES : finish_exchange(server, connection, method, exchange);
}

static void end_exchange(void *cls, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct exchange *exchange = *state;

	(void)cls;
	(void)how;
	patience_renew(waited_of(connection));
	if (!exchange)
		return;
	free(exchange->body);
	free(exchange);
	*state = NULL;
}

/* ---- connections ---------------------------------------------------------- */

static void notice_connection(void *cls, struct MHD_Connection *connection, void **context,
			      enum MHD_ConnectionNotificationCode what)
{
	struct http_server *server = cls;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		patience_closed(*context);
	else if (info)
		*context = patience_opened(server->patience, info->connect_fd);
}

/* ---- starting and stopping ------------------------------------------------ */

/* By poll(): the library's epoll, which is told of edges, keeps a connection that its client left in
 * the middle of a request until it has been quiet for long. */
static struct MHD_Daemon *start_daemon(struct http_server *server)
{
	const struct http_options *options = &server->options;

	return MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
				NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, options->listener,
				MHD_OPTION_THREAD_POOL_SIZE, options->threads,
				MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, HTTP_QUIET_SECONDS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION,
				MHD_OPTION_URI_LOG_CALLBACK, open_exchange, NULL,
				MHD_OPTION_NOTIFY_CONNECTION, notice_connection, server,
				MHD_OPTION_NOTIFY_COMPLETED, end_exchange, NULL, MHD_OPTION_END);
}

int http_server_start(struct http_server **server, const struct http_options *options,
		      struct r3ring_error *err)
{
	struct http_server *made = calloc(1, sizeof(*made));
	int r = made ? 0 : r3ring_error_set(err, -ENOMEM, "no memory for a server");

	if (r == 0) {
		made->options = *options;
		r = patience_start(&made->patience,
				   options->patience_ms ? options->patience_ms : HTTP_PATIENCE_MS,
				   err);
	}
	if (r == 0) {
		made->daemon = start_daemon(made);
		if (!made->daemon)
			r = r3ring_error_set(err, -EIO, "the HTTP server cannot be started: %s",
					     strerror(errno));
	}
	if (r < 0) {
		close(options->listener);
		if (made)
			patience_stop(made->patience);
		free(made);
		return r;
	}
	*server = made;
	return 0;
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon);
	patience_stop(server->patience);
	free(server);
}
