/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server and clients that are slow, many, or send what they should not. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http.h"
#include "serve/listen.h"
#include "tests/support/http_client.h"
#include "tests/support/process_size.h"

#define LARGE (32u << 20) /* more than sockets take */
#define ENDS "Host: 127.0.0.1\r\nConnection: close\r\n"
#define STAYS "Host: 127.0.0.1\r\n"

static struct guard guard = {.hosts = {"127.0.0.1"}, .host_count = 1};
static struct http_server *server;
static int port;

static void echo(void *context, const struct http_request *request, struct http_answer *to)
{
	(void)context;
	to->json = json_pack("{s:s, s:O?}", "argument", request->argument, "body", request->body);
}

static void large(void *context, const struct http_request *request, struct http_answer *to)
{
	char *text = malloc(LARGE);

	(void)context;
	(void)request;
	memset(text, 'x', LARGE);
	to->json = json_pack("{s:s%}", "text", text, (size_t)LARGE);
	free(text);
}

static const struct http_route routes[] = {
	{"GET", "/echo/*", echo, NULL},
	{"POST", "/echo", echo, NULL},
	{"GET", "/large", large, NULL},
};

static void start_with(uint32_t patience_ms)
{
	struct r3ring_error err = {0};
	struct listen_place place;
	const struct http_options options = {
		.listener = listen_on_address("127.0.0.1:0", &place, &err),
		.guard = &guard,
		.routes = routes,
		.route_count = sizeof(routes) / sizeof(*routes),
		.threads = 2,
		.patience_ms = patience_ms,
	};

	cr_assert_geq(options.listener, 0, "%s", err.text);
	cr_assert_eq(http_server_start(&server, &options, &err), 0, "%s", err.text);
	port = atoi(strrchr(place.name, ':') + 1);
}

static void stop(void)
{
	http_server_stop(server);
}

TestSuite(serve_hostile, .fini = stop);

static const char *ask(const char *request)
{
	return http_exchange(http_dial_port(port), request);
}

static void expect(const char *request, const char *status, const char *part)
{
	const char *answer = ask(request);

	cr_expect(strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, 3) == 0,
		  "%.60s: not %s: %.200s", request, status, answer);
	cr_expect(strstr(answer, part), "%.60s: \"%s\" is not in: %.300s", request, part, answer);
}

static void expect_served(void)
{
	expect("GET /echo/still HTTP/1.1\r\n" ENDS "\r\n", "200", "still");
}

/* ---- slow ones ------------------------------------------------------------- */

/* Whether the other end has closed. */
static bool is_over(int fd)
{
	char byte;
	ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);

	return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Sends one byte after another, so that something always moves; whether the server ends it. */
static bool trickle(const char *begin)
{
	int fd = http_dial_port(port);
	bool over = false;

	send(fd, begin, strlen(begin), MSG_NOSIGNAL);
	for (int tries = 0; !over && tries < 3000; tries++) {
		poll(NULL, 0, 20);
		over = send(fd, "a", 1, MSG_NOSIGNAL) < 0 || is_over(fd);
	}
	close(fd);
	return over;
}

Test(serve_hostile, headers_that_come_byte_by_byte_are_not_waited_for_for_ever)
{
	start_with(500);
	cr_expect(trickle("GET /echo/x HTTP/1.1\r\n" STAYS "X: "));
	cr_expect(trickle("G"));
	expect_served();
}

Test(serve_hostile, a_body_that_comes_byte_by_byte_is_not_waited_for_for_ever)
{
	start_with(500);
	cr_expect(trickle("POST /echo HTTP/1.1\r\n" STAYS "Content-Length: 100000\r\n\r\n"));
	expect_served();
}

/* Something always moves, slowly; then what is on its way is read, in any haste. */
Test(serve_hostile, an_answer_that_is_read_bit_by_bit_is_cut_off)
{
	const char *request = "GET /large HTTP/1.1\r\n" ENDS "\r\n";
	static char block[1 << 20];
	uint64_t got = 0;
	ssize_t one = 1;
	int fd;

	start_with(500);
	fd = http_dial_port(port);
	cr_assert_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
	for (int i = 0; one > 0; i++) {
		if (i < 100)
			poll(NULL, 0, 20);
		one = recv(fd, block, i < 100 ? 512 : sizeof(block), 0);
		got += one > 0 ? (uint64_t)one : 0;
	}
	cr_expect_lt(got, LARGE);
	close(fd);
	expect_served();
}

/* Each has its time, and they take several together. */
Test(serve_hostile, a_connection_may_stay_for_many_short_exchanges)
{
	const char *request = "GET /echo/x HTTP/1.1\r\n" STAYS "\r\n";
	char answer[1024];
	int fd;

	start_with(5000);
	fd = http_dial_port(port);
	for (int i = 0; i < 60; i++) {
		cr_assert_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
		cr_assert_gt(recv(fd, answer, sizeof(answer), 0), 0, "after %d", i);
		poll(NULL, 0, 100);
	}
	close(fd);
}

/* ---- many ------------------------------------------------------------------ */

/* More than it takes, each with half a request; they are let go in their time, and others served. */
Test(serve_hostile, more_connections_than_there_may_be_keep_others_out_for_a_time_only)
{
	enum { MANY = HTTP_CONNECTIONS_MAX + 60 };
	struct rlimit files = {2048, 2048};
	int fd[MANY];

	setrlimit(RLIMIT_NOFILE, &files);
	start_with(1000);
	for (int i = 0; i < MANY; i++) {
		fd[i] = http_dial_port(port);
		send(fd[i], "GET /echo/", 10, MSG_NOSIGNAL);
	}
	expect_served();
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	expect_served();
}

static unsigned int count_of(const char *text, const char *part)
{
	unsigned int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

Test(serve_hostile, requests_sent_at_once_are_answered_in_their_order)
{
	static char requests[64 * 100];
	const char *answer, *at;
	size_t length = 0;
	char argument[64];

	start_with(0);
	for (int i = 0; i < 50; i++)
		length += (size_t)sprintf(requests + length, "GET /echo/no%d. HTTP/1.1\r\n%s\r\n",
					  i, i == 49 ? ENDS : STAYS);
	at = answer = ask(requests);
	cr_expect_eq(count_of(answer, "HTTP/1.1 200"), 50);
	for (int i = 0; i < 50; i++) {
		snprintf(argument, sizeof(argument), "\"no%d.\"", i);
		at = strstr(at, argument);
		cr_assert(at, "%s is not where it should be", argument);
	}
}

/* ---- what is not as it should be --------------------------------------------- */

Test(serve_hostile, an_older_http_is_answered)
{
	start_with(0);
	expect("GET /echo/x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", "200", "\"x\"");
}

Test(serve_hostile, addresses_that_make_no_sense_are_taken_as_they_are_or_refused)
{
	start_with(0);
	expect("GET /echo/%zz% HTTP/1.1\r\n" ENDS "\r\n", "200", "%zz%");
	expect("GET /echo/%c3%bc HTTP/1.1\r\n" ENDS "\r\n", "200", "\xc3\xbc");
	expect("GET /echo/%00 HTTP/1.1\r\n" ENDS "\r\n", "400", "zero byte");
	expect("GET /echo/a%00b HTTP/1.1\r\n" ENDS "\r\n", "400", "zero byte");
	expect("GET /echo/x?y HTTP/1.1\r\n" ENDS "\r\n", "400", "no parameter y");
	expect("GET /echo/x?= HTTP/1.1\r\n" ENDS "\r\n", "400", "no parameter");
	expect("GET /../../etc/passwd HTTP/1.1\r\n" ENDS "\r\n", "404", "error");
	expect("BREW /echo HTTP/1.1\r\n" ENDS "\r\n", "405", "error");
}

/* What no JSON text may have in it is not told either. */
Test(serve_hostile, an_argument_that_is_no_text_closes_or_is_refused_and_no_more)
{
	start_with(0);
	cr_expect_null(strstr(ask("GET /echo/%ff%fe HTTP/1.1\r\n" ENDS "\r\n"), " 200 "));
	expect_served();
}

static void expect_body(const char *body, const char *status, const char *part)
{
	char request[512];

	snprintf(request, sizeof(request),
		 "POST /echo HTTP/1.1\r\n" ENDS "Content-Length: %zu\r\n\r\n%s", strlen(body),
		 body);
	expect(request, status, part);
}

Test(serve_hostile, bodies_that_are_no_json_are_refused_by_what_is_wrong_with_them)
{
	start_with(0);
	expect_body("{\"a\": 99999999999999999999}", "400", "too big integer");
	expect_body("{\"a\": 1e999}", "400", "real number overflow");
	expect_body("{\"a\": NaN}", "400", "invalid token");
	expect_body("{\"a\": 1, \"a\": 2}", "400", "duplicate");
	expect_body("{\"a\": \"\xff\"}", "400", "unable to decode");
	expect_body("{\"a\": \"\xc0\x80\"}", "400", "unable to decode");
	expect_body("{\"a\": \"\\ud800\"}", "400", "Unicode");
	expect_body("{\"a\": \"\n\"}", "400", "newline");
	expect_body("{} {}", "400", "end of file expected");
	expect_body("\xef\xbb\xbf{}", "400", "expected");
	expect_body("{\"a\": 1", "400", "line 1");
}

Test(serve_hostile, brackets_without_end_are_no_way_to_the_end_of_the_stack)
{
	static char request[HTTP_BODY_MAX + 200];
	int head;

	start_with(0);
	head = sprintf(request, "POST /echo HTTP/1.1\r\n" ENDS "Content-Length: %u\r\n\r\n",
		       HTTP_BODY_MAX);
	memset(request + head, '[', HTTP_BODY_MAX);
	expect(request, "400", "depth");
	for (uint32_t i = 0; i + 5 <= HTTP_BODY_MAX; i += 5)
		memcpy(request + head + i, "{\"a\":", 5);
	expect(request, "400", "depth");
}

Test(serve_hostile, a_body_whose_length_is_no_number_or_another_is_not_answered_as_if_it_were)
{
	const char *const lengths[] = {"abc", "-1", "99999999999999999999999", "1 1", "0x10"};
	char request[256];

	start_with(0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		snprintf(request, sizeof(request),
			 "POST /echo HTTP/1.1\r\n" ENDS "Content-Length: %s\r\n\r\n{}", lengths[i]);
		cr_expect_null(strstr(ask(request), " 200 "), "%s", lengths[i]);
	}
	cr_expect_null(strstr(ask("POST /echo HTTP/1.1\r\n" ENDS
				  "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
			      " 200 "));
	expect("POST /echo HTTP/1.1\r\n" ENDS
	       "Expect: 100-continue\r\nContent-Length: 262145\r\n\r\n",
	       "413", "at most");
	expect_served();
}

/* Source: RFC 9112, 6.3: an attempt to smuggle a request; what follows is not taken for one. */
Test(serve_hostile, a_body_with_a_length_and_in_chunks_is_refused_and_ends_the_connection)
{
	static const char next[] = "GET /echo/smuggled HTTP/1.1\r\n" ENDS "\r\n";
	char request[512];

	start_with(0);
	snprintf(request, sizeof(request),
		 "POST /echo HTTP/1.1\r\n" STAYS
		 "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "7\r\n{\"a\":1}\r\n0\r\n\r\n%s",
		 next);
	expect(request, "400", "Content-Length and Transfer-Encoding");
	cr_expect_null(strstr(ask(request), "smuggled"));
	snprintf(request, sizeof(request),
		 "POST /echo HTTP/1.1\r\n" STAYS
		 "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n%s",
		 next);
	expect(request, "400", "Connection: close");
	cr_expect_null(strstr(ask(request), "smuggled"));
	expect_served();
}

Test(serve_hostile, a_body_of_two_lengths_is_refused_and_ends_the_connection)
{
	static const char next[] = "GET /echo/smuggled HTTP/1.1\r\n" ENDS "\r\n";
	static const char *const lengths[][2] = {{"2", "3"}, {"3", "2"}, {"2", "0"}};
	char request[512];

	start_with(0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		snprintf(request, sizeof(request),
			 "POST /echo HTTP/1.1\r\n" STAYS
			 "Content-Length: %s\r\ncontent-length: %s\r\n\r\n{}%s",
			 lengths[i][0], lengths[i][1], next);
		expect(request, "400", "more than one Content-Length");
		expect(request, "400", "Connection: close");
		cr_expect_null(strstr(ask(request), "smuggled"));
	}
	expect_served();
}

Test(serve_hostile, a_length_that_a_proxy_may_see_otherwise_is_refused_and_ends_the_connection)
{
	static const char next[] = "GET /echo/smuggled HTTP/1.1\r\n" ENDS "\r\n";
	static const char *const told[][2] = {
		{"Content-Length : 2\r\n", "400"},
		{"Content-Length\t: 2\r\n", "400"},
		{"Transfer-Encoding : chunked\r\n", "400"},
		{"Transfer-Encoding: xchunked\r\n", "501"},
		{"Transfer-Encoding: gzip, chunked\r\n", "501"},
		{"Transfer-Encoding: identity\r\n", "501"},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "501"},
	};
	char request[512];

	start_with(0);
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
		snprintf(request, sizeof(request), "POST /echo HTTP/1.1\r\n" STAYS "%s\r\n%s",
			 told[i][0], next);
		expect(request, told[i][1], "Connection: close");
		cr_expect_null(strstr(ask(request), "smuggled"), "%s", told[i][0]);
	}
	expect_served();
}

/* Its text has no end where the byte is, as far as a proxy in front knows. */
Test(serve_hostile, an_address_with_a_byte_zero_is_refused)
{
	static const char *const requests[][2] = {
		{"GET /echo/a", " HTTP/1.1\r\n" ENDS "\r\n"},
		{"GET /echo/a", "b HTTP/1.1\r\n" ENDS "\r\n"},
		{"GET /echo/a?x=1", "&y=2 HTTP/1.1\r\n" ENDS "\r\n"},
		{"GET /echo/a", "\t HTTP/1.1\r\n" ENDS "\r\n"},
	};

	start_with(0);
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		char answer[4096] = "";
		int fd = http_dial_port(port);

		send(fd, requests[i][0], strlen(requests[i][0]) + 1, MSG_NOSIGNAL);
		send(fd, requests[i][1], strlen(requests[i][1]), MSG_NOSIGNAL);
		cr_expect(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 0);
		close(fd);
		cr_expect(strstr(answer, " 400 ") && strstr(answer, "zero byte"), "%zu: %s", i,
			  answer);
	}
	expect_served();
}

/* ---- all of it, again and again ---------------------------------------------- */

static void misbehave(void)
{
	int fd = http_dial_port(port);

	send(fd, "POST /echo HTTP/1.1\r\nContent-Le", 31, MSG_NOSIGNAL);
	close(fd);
	fd = http_dial_port(port);
	send(fd, "POST /echo HTTP/1.1\r\n" STAYS "Content-Length: 1000\r\n\r\n{\"a\":", 70,
	     MSG_NOSIGNAL);
	close(fd);
	ask("GET /echo/%00 HTTP/1.1\r\n" ENDS "\r\n");
	ask("POST /echo HTTP/1.1\r\n" ENDS "Content-Length: 9\r\n\r\n[[[[[[[[[");
	ask("\x16\x03\x01 hello\r\n\r\n");
}

Test(serve_hostile, nothing_of_it_stays_in_memory)
{
	long before;

	if (!process_size_tells())
		cr_skip_test("a sanitizer keeps what is freed");
	start_with(0);
	for (int i = 0; i < 20; i++)
		misbehave();
	before = process_own_kib(getpid());
	for (int i = 0; i < 200; i++)
		misbehave();
	expect_served();
	cr_expect_lt(process_own_kib(getpid()) - before, 1024, "%ld KiB, then %ld", before,
		     process_own_kib(getpid()));
	cr_expect_lt(process_descriptors(getpid()), 64);
}
