/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server, over a real socket. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http.h"
#include "serve/listen.h"
#include "tests/support/http_client.h"

static struct guard guard = {.hosts = {"127.0.0.1"}, .host_count = 1};
static struct http_server *server;
static int port;

static void echo(void *context, const struct http_request *request, struct http_answer *to)
{
	const char *name = http_query(request, "name");

	(void)context;
	to->json = json_pack("{s:s, s:s, s:s?, s:O?}", "method", request->method, "argument",
			     request->argument, "name", name, "body", request->body);
}

static void fail(void *context, const struct http_request *request, struct http_answer *to)
{
	(void)context;
	http_refuse(to, 409, "no %s", request->argument);
}

static const struct http_route routes[] = {
	{"GET", "/echo", echo, NULL},           {"POST", "/echo", echo, NULL},
	{"GET", "/echo/*", echo, "other name"}, {"GET", "/fail/*", fail, NULL},
	{"GET", "/of/*/parts", echo, NULL},
};

static void start(void)
{
	struct r3ring_error err = {0};
	struct listen_place place;
	const struct http_options options = {
		.listener = listen_on_address("127.0.0.1:0", &place, &err),
		.guard = &guard,
		.routes = routes,
		.route_count = sizeof(routes) / sizeof(*routes),
		.threads = 2,
	};

	cr_assert_geq(options.listener, 0, "%s", err.text);
	cr_assert_eq(http_server_start(&server, &options, &err), 0, "%s", err.text);
	port = atoi(strrchr(place.name, ':') + 1);
}

static void stop(void)
{
	http_server_stop(server);
}

TestSuite(serve_http, .init = start, .fini = stop);

static const char *ask(const char *request)
{
	return http_exchange(http_dial_port(port), request);
}

#define ENDS "Host: 127.0.0.1\r\nConnection: close\r\n"

static void expect(const char *request, const char *status, const char *part)
{
	const char *answer = ask(request);

	cr_expect(strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, 3) == 0,
		  "not %s: %s", status, answer);
	cr_expect(strstr(answer, part), "\"%s\" is not in: %s", part, answer);
}

Test(serve_http, what_a_route_says_comes_as_json)
{
	expect("GET /echo/a%2Fb%20c?name=x%26y HTTP/1.1\r\n" ENDS "\r\n", "200",
	       "{\"method\":\"GET\",\"argument\":\"a/b c\",\"name\":\"x&y\",\"body\":null}");
	expect("GET /echo HTTP/1.1\r\n" ENDS "\r\n", "200", "Content-Type: application/json");
	expect("GET /echo HTTP/1.1\r\n" ENDS "\r\n", "200", "X-Content-Type-Options: nosniff");
}

Test(serve_http, every_json_answer_ends_with_the_end_of_its_line)
{
	const char *answer = ask("GET /echo/x HTTP/1.1\r\n" ENDS "\r\n");

	cr_expect_str_eq(strstr(answer, "\r\n\r\n"),
			 "\r\n\r\n{\"method\":\"GET\",\"argument\":\"x\","
			 "\"name\":null,\"body\":null}\n");
	answer = ask("GET /fail/x HTTP/1.1\r\n" ENDS "\r\n");
	cr_expect_str_eq(strstr(answer, "\r\n\r\n"),
			 "\r\n\r\n{\"error\":{\"status\":409,\"message\":\"no x\"}}\n");
}

Test(serve_http, an_argument_within_a_path_may_have_any_bytes_in_it)
{
	expect("GET /of/a%2Fparts%2fb%3Fc%20%25/parts HTTP/1.1\r\n" ENDS "\r\n", "200",
	       "\"argument\":\"a/parts/b?c %\"");
	expect("GET /of/x/parts/parts HTTP/1.1\r\n" ENDS "\r\n", "200", "\"argument\":\"x/parts\"");
	expect("GET /of//parts HTTP/1.1\r\n" ENDS "\r\n", "404", "\"status\":404");
	expect("GET /of/parts HTTP/1.1\r\n" ENDS "\r\n", "404", "\"status\":404");
	expect("GET /of/x/partsy HTTP/1.1\r\n" ENDS "\r\n", "404", "\"status\":404");
}

Test(serve_http, a_body_is_one_json_object)
{
	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 7\r\n\r\n{\"a\":1}", "200",
	       "\"body\":{\"a\":1}");
	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 3\r\n\r\n[1]", "400",
	       "no JSON object");
	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 14\r\n\r\n{\"a\":\"\\u0000\"}",
	       "400", "zero character in it, \\\\u0000: leave it out");
	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 6\r\n\r\n{\"a\":1", "400", "line 1");
	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 13\r\n\r\n{\"a\":1,\"a\":2}", "400",
	       "duplicate");
	expect("POST /echo HTTP/1.1\r\n" ENDS
	       "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n",
	       "200", "\"body\":{\"a\":1}");
}

Test(serve_http, an_error_says_what_it_is)
{
	expect("GET /fail/room HTTP/1.1\r\n" ENDS "\r\n", "409",
	       "{\"error\":{\"status\":409,\"message\":\"no room\"}}");
	expect("GET /nothing HTTP/1.1\r\n" ENDS "\r\n", "404", "\"status\":404");
	expect("DELETE /echo HTTP/1.1\r\n" ENDS "\r\n", "405", "Allow: GET, POST");
	expect("DELETE /echo HTTP/1.1\r\n" ENDS "\r\n", "405",
	       "DELETE /echo: what may be asked there is GET, POST");
}

Test(serve_http, an_error_that_names_what_was_sent_is_json_all_the_same)
{
	expect("GET /fail/%ff%0a%22 HTTP/1.1\r\n" ENDS "\r\n", "409", "\"no ??\\\"\"");
	expect("GET /%c3%28 HTTP/1.1\r\n" ENDS "\r\n", "404", "GET /?(");
}

Test(serve_http, a_foreign_host_is_refused_before_anything_else)
{
	expect("GET /echo HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "421",
	       "--allow-host");
	expect("GET /nothing HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "421",
	       "--allow-host");
	expect("GET /echo HTTP/1.0\r\nConnection: close\r\n\r\n", "421", "Host");
}

Test(serve_http, an_address_may_name_the_host_and_then_is_what_counts)
{
	static const char route[] = "\"argument\":\"a/b\",\"name\":\"x\"";
	char long_name[600];

	expect("GET http://127.0.0.1/echo/a%2Fb?name=x HTTP/1.1\r\n" ENDS "\r\n", "200", route);
	expect("GET HTTP://127.0.0.1:80/echo/a%2Fb?name=x HTTP/1.1\r\nHost: evil.example\r\n"
	       "Connection: close\r\n\r\n",
	       "200", route);
	expect("GET http://127.0.0.1?name=x HTTP/1.1\r\n" ENDS "\r\n", "404", "GET http://127");
	expect("GET http://evil.example/echo HTTP/1.1\r\n" ENDS "\r\n", "421", "the address");
	expect("GET http://127.0.0.1@evil.example/echo HTTP/1.1\r\n" ENDS "\r\n", "421",
	       "the address");
	expect("GET http:///echo HTTP/1.1\r\n" ENDS "\r\n", "400", "names no host");
	snprintf(long_name, sizeof(long_name), "GET http://%0301d/echo HTTP/1.1\r\n" ENDS "\r\n",
		 1);
	expect(long_name, "400", "too long");
	expect("GET http://127.0.0.1/echo HTTP/1.1\r\n" ENDS "Host: evil.example\r\n\r\n", "400",
	       "Host");
}

Test(serve_http, a_page_is_ours_where_its_origin_is_the_host_that_the_address_names)
{
	expect("GET http://127.0.0.1:8/echo HTTP/1.1\r\n" ENDS "Origin: http://127.0.0.1:8\r\n\r\n",
	       "200", "\"method\"");
	expect("GET http://127.0.0.1:8/echo HTTP/1.1\r\n" ENDS "Origin: http://127.0.0.1\r\n\r\n",
	       "403", "Origin");
}

Test(serve_http, two_hosts_are_refused_whichever_comes_first)
{
	expect("GET /echo HTTP/1.1\r\n" ENDS "Host: evil.example\r\n\r\n", "400", "Host");
	expect("GET /echo HTTP/1.1\r\nhost: evil.example\r\n" ENDS "\r\n", "400", "Host");
}

Test(serve_http, without_the_token_nothing_is_told)
{
	strcpy(guard.token, "s3cret");
	expect("GET /echo HTTP/1.1\r\n" ENDS "\r\n", "401", "WWW-Authenticate: Bearer");
	expect("GET /nothing HTTP/1.1\r\n" ENDS "\r\n", "401", "token");
	expect("GET /echo HTTP/1.1\r\n" ENDS "Authorization: Bearer s3cret\r\n\r\n", "200",
	       "\"method\"");
}

#define PIECE 4096

/* A body of that many pieces, which says nothing of its length; the answer. */
static const char *send_pieces(uint32_t count)
{
	const char *request = "POST /echo HTTP/1.1\r\n" ENDS "Transfer-Encoding: chunked\r\n\r\n";
	char piece[PIECE];
	int fd = http_dial_port(port);

	cr_assert_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
	memset(piece, ' ', sizeof(piece));
	while (count-- > 0) {
		if (send(fd, "1000\r\n", 6, MSG_NOSIGNAL) < 0 ||
		    send(fd, piece, sizeof(piece), MSG_NOSIGNAL) < 0 ||
		    send(fd, "\r\n", 2, MSG_NOSIGNAL) < 0)
			break;
	}
	return http_exchange(fd, "0\r\n\r\n");
}

Test(serve_http, a_body_that_is_too_long_is_refused_unread_or_once_it_is_over_or_cut_off)
{
	static char request[HTTP_BODY_MAX + 512];
	int head;

	expect("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 999999999\r\n\r\n", "413",
	       "at most");
	head = snprintf(request, sizeof(request),
			"POST /echo HTTP/1.1\r\n" ENDS "Content-Length: %u\r\n\r\n",
			HTTP_BODY_MAX + 1);
	memset(request + head, ' ', HTTP_BODY_MAX + 1);
	expect(request, "413", "at most");
	cr_expect(strstr(send_pieces(HTTP_BODY_MAX / PIECE + 1), "HTTP/1.1 413"));
	cr_expect(strstr(send_pieces(HTTP_BODY_MAX / PIECE), "HTTP/1.1 400"), "blanks are no JSON");
	/* One without end. */
	cr_expect_null(strstr(send_pieces(UINT32_MAX), "HTTP/1.1 "));
}

Test(serve_http, what_is_no_http_is_not_answered_as_if_it_were)
{
	static char header[100000];

	cr_expect_null(strstr(ask("\x16\x03\x01 hello\r\n\r\n"), " 200 "));
	snprintf(header, sizeof(header), "GET /echo HTTP/1.1\r\nX: %099000d\r\n\r\n", 1);
	cr_expect_null(strstr(ask(header), " 200 "));
	/* It goes on for others. */
	expect("GET /echo HTTP/1.1\r\n" ENDS "\r\n", "200", "\"method\"");
}

Test(serve_http, one_that_says_nothing_keeps_nobody_waiting)
{
	int silent = http_dial_port(port), slow = http_dial_port(port);

	cr_assert_eq(send(slow, "GET /echo HTT", 13, MSG_NOSIGNAL), 13);
	expect("GET /echo HTTP/1.1\r\n" ENDS "\r\n", "200", "\"method\"");
	close(silent);
	close(slow);
}
