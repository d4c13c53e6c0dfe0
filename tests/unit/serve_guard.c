/* SPDX-License-Identifier: Apache-2.0 */
/* Who may talk to the HTTP server, and where it listens. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/guard.h"
#include "serve/listen.h"
#include "serve/route.h"

static const struct guard local = {
	.hosts = {"localhost", "127.0.0.1", "[::1]"}, .host_count = 3, .token = "s3cret"};

Test(serve_guard, a_host_of_ours_is_known_with_and_without_a_port)
{
	cr_expect(guard_knows_host(&local, "localhost"));
	cr_expect(guard_knows_host(&local, "LocalHost:9300"));
	cr_expect(guard_knows_host(&local, "127.0.0.1:1"));
	cr_expect(guard_knows_host(&local, "[::1]:9300"));
	cr_expect(guard_knows_host(&local, "[::1]"));
}

Test(serve_guard, a_foreign_host_or_none_is_not_known)
{
	const char *const foreign[] = {"",
				       "evil.example",
				       "localhost.evil.example",
				       "127.0.0.2.evil.example",
				       "localhost:x",
				       "localhost:80:80",
				       "[::1",
				       "[::1]evil",
				       "::1",
				       "local",
				       "localhost@evil"};

	cr_expect_not(guard_knows_host(&local, NULL));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		cr_expect_not(guard_knows_host(&local, foreign[i]), "%s", foreign[i]);
}

Test(serve_guard, an_address_in_numbers_is_known_as_no_name_was_looked_up_for_it)
{
	const char *const numbers[] = {"127.0.0.1:9300", "10.1.2.3",      "192.168.0.7:80",
				       "[fe80::1]:9300", "[2001:db8::7]", "[::ffff:10.1.2.3]:1"};
	const char *const others[] = {"10.1.2.3.evil.example",
				      "10.1.2",
				      "0x7f.0.0.1",
				      "2130706433",
				      "10.1.2.3.4",
				      "10.1.2.256",
				      "[10.1.2.3]",
				      "[fe80::1%eth0]",
				      "[]",
				      "[",
				      "[evil.example]",
				      "fe80::1",
				      "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]"};
	const struct guard named = {.hosts = {"localhost"}, .host_count = 1};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		cr_expect(guard_knows_host(&named, numbers[i]), "%s", numbers[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect_not(guard_knows_host(&named, others[i]), "%s", others[i]);
}

Test(serve_guard, a_page_of_another_port_or_name_is_another_site)
{
	const char *const host = "127.0.0.1:9300";

	cr_expect(guard_knows_origin(&local, NULL, host));
	cr_expect(guard_knows_origin(&local, "http://127.0.0.1:9300", host));
	cr_expect_not(guard_knows_origin(&local, "http://127.0.0.1:9999", host));
	cr_expect_not(guard_knows_origin(&local, "http://127.0.0.1", host));
	cr_expect_not(guard_knows_origin(&local, "http://localhost:9300", host));
	cr_expect_not(guard_knows_origin(&local, "null", host));
}

Test(serve_guard, over_a_unix_socket_any_host_will_do)
{
	const struct guard guard = {.any_host = true};

	cr_expect(guard_knows_host(&guard, NULL));
	cr_expect(guard_knows_host(&guard, "evil.example"));
}

Test(serve_guard, only_the_whole_token_admits)
{
	const struct guard open_to_all = {0};

	cr_expect(guard_admits(&local, "Bearer s3cret"));
	cr_expect(guard_admits(&local, "bearer s3cret"));
	cr_expect_not(guard_admits(&local, NULL));
	cr_expect_not(guard_admits(&local, "Bearer "));
	cr_expect_not(guard_admits(&local, "Bearer s3cre"));
	cr_expect_not(guard_admits(&local, "Bearer s3cret "));
	cr_expect_not(guard_admits(&local, "Bearer S3cret"));
	cr_expect_not(guard_admits(&local, "Basic s3cret"));
	cr_expect(guard_admits(&open_to_all, NULL));
}

/* Returns what reading a token file with this content and mode returns. */
static int read_token(struct guard *guard, const char *content, mode_t mode,
		      struct r3ring_error *err)
{
	char path[] = "/tmp/r3ring-token.XXXXXX";
	int fd = mkstemp(path), r;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	fchmod(fd, mode);
	close(fd);
	r = guard_read_token(guard, path, err);
	unlink(path);
	return r;
}

Test(serve_guard, a_token_is_read_from_a_file_that_nobody_else_can_read)
{
	struct guard guard = {0};
	struct r3ring_error err = {0};
	char longest[GUARD_TOKEN_MAX + 2];

	cr_expect_eq(read_token(&guard, "abc\n", 0600, &err), 0, "%s", err.text);
	cr_expect_str_eq(guard.token, "abc");
	cr_expect_eq(read_token(&guard, "abd", 0640, &err), -EACCES);
	cr_expect(strstr(err.text, "chmod 600"));
	cr_expect_eq(read_token(&guard, "", 0600, &err), -EINVAL);
	cr_expect_eq(read_token(&guard, "\n", 0600, &err), -EINVAL);
	cr_expect_eq(read_token(&guard, "a b\n", 0600, &err), -EINVAL);
	cr_expect_eq(read_token(&guard, "a\nb\n", 0600, &err), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[GUARD_TOKEN_MAX + 1] = '\0';
	cr_expect_eq(read_token(&guard, longest, 0600, &err), -EINVAL);
	cr_expect_str_eq(guard.token, "abc", "what was refused changes nothing");
	longest[GUARD_TOKEN_MAX] = '\0';
	cr_expect_eq(read_token(&guard, longest, 0600, &err), 0);
	cr_expect_eq(guard_read_token(&guard, "/nowhere/token", &err), -ENOENT);
	cr_expect(strstr(err.text, "umask 077"), "no remedy: %s", err.text);
	cr_expect_eq(guard_read_token(&guard, "/tmp", &err), -EINVAL);
}

Test(serve_guard, a_token_may_have_any_printable_character_and_no_other)
{
	struct guard guard = {0};
	struct r3ring_error err = {0};

	cr_expect_eq(read_token(&guard, "!a~\n", 0600, &err), 0, "%s", err.text);
	cr_expect_str_eq(guard.token, "!a~");
	cr_expect_eq(read_token(&guard, "a\x7f\n", 0600, &err), -EINVAL);
	cr_expect_eq(read_token(&guard, "a\xc3\xa9\n", 0600, &err), -EINVAL);
	cr_expect_str_eq(guard.token, "!a~");
}

/* ---- listening ------------------------------------------------------------ */

Test(serve_listen, loopback_is_told_from_an_address_that_others_reach)
{
	struct listen_place place;
	struct r3ring_error err = {0};
	int fd = listen_on_address("127.0.0.1:0", &place, &err);

	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect(place.loopback);
	cr_expect_str_eq(place.host, "127.0.0.1");
	cr_expect(strncmp(place.name, "127.0.0.1:", 10) == 0 && atoi(place.name + 10) > 0);
	close(fd);
	fd = listen_on_address(":0", &place, &err);
	cr_expect_geq(fd, 0);
	cr_expect(place.loopback);
	close(fd);
	fd = listen_on_address("0.0.0.0:0", &place, &err);
	cr_expect_geq(fd, 0);
	cr_expect_not(place.loopback);
	close(fd);
}

Test(serve_listen, what_is_no_address_is_refused_with_examples)
{
	const char *const wrong[] = {
		"",         "9300",      "localhost", "127.0.0.1:",      "127.0.0.1:http",
		"::1:9300", "[::1]9300", "[::1:9300", "127.0.0.1:99999", "no such host:1"};
	struct listen_place place;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct r3ring_error err = {0};

		cr_expect_lt(listen_on_address(wrong[i], &place, &err), 0, "%s", wrong[i]);
		cr_expect(err.text[0]);
		cr_expect_eq(listen_is_address(wrong[i]), i == 9, "%s has the form", wrong[i]);
	}
}

Test(serve_listen, an_address_that_is_not_this_machines_is_refused_with_the_remedy)
{
	/* No name has a blank; of the addresses of RFC 5737 nobody has one. */
	const char *const elsewhere[] = {"no such host:1", "192.0.2.1:9300"};
	struct listen_place place;

	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
		struct r3ring_error err = {0};

		cr_expect_eq(listen_on_address(elsewhere[i], &place, &err), -EADDRNOTAVAIL);
		cr_expect(strstr(err.text, "--listen an address of this machine"), "%s", err.text);
	}
}

Test(serve_listen, a_unix_socket_in_no_directory_is_refused_with_the_remedy)
{
	struct listen_place place;
	struct r3ring_error err = {0};

	cr_expect_eq(listen_on_path("/nonexist/s", &place, &err), -ENOENT);
	cr_expect(strstr(err.text, "/nonexist/s: there is no such directory: make it"), "%s",
		  err.text);
}

Test(serve_listen, a_taken_port_is_told)
{
	struct listen_place first, second;
	struct r3ring_error err = {0};
	int fd = listen_on_address("127.0.0.1:0", &first, &err);

	cr_assert_geq(fd, 0);
	cr_expect_eq(listen_on_address(first.name, &second, &err), -EADDRINUSE);
	cr_expect(strstr(err.text, first.name));
	cr_expect(strstr(err.text, "--listen"), "no remedy: %s", err.text);
	close(fd);
}

Test(serve_listen, a_unix_socket_is_this_users_and_a_dead_one_is_replaced)
{
	struct listen_place place;
	struct r3ring_error err = {0};
	struct stat status;
	char path[64];
	int first, second;

	snprintf(path, sizeof(path), "/tmp/r3ring-listen.%d", getpid());
	first = listen_on_path(path, &place, &err);
	cr_assert_geq(first, 0, "%s", err.text);
	cr_expect(place.loopback);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mode & 0777, 0600);
	cr_expect_eq(listen_on_path(path, &place, &err), -EADDRINUSE, "it is alive");
	close(first);
	second = listen_on_path(path, &place, &err);
	cr_expect_geq(second, 0, "%s", err.text);
	close(second);
	unlink(path);
}

Test(serve_listen, a_file_in_the_place_of_a_unix_socket_stays)
{
	char path[] = "/tmp/r3ring-listen.XXXXXX";
	int fd = mkstemp(path);
	struct listen_place place;
	struct r3ring_error err = {0};

	cr_assert_geq(fd, 0);
	cr_expect_eq(listen_on_path(path, &place, &err), -EADDRINUSE);
	cr_expect_eq(access(path, F_OK), 0);
	close(fd);
	unlink(path);
}

/* ---- routes --------------------------------------------------------------- */

static void answer(void *context, const struct http_request *request, struct http_answer *to)
{
	(void)context;
	(void)request;
	(void)to;
}

static const struct http_route routes[] = {
	{"GET", "/v1/things", answer, NULL},
	{"POST", "/v1/things", answer, NULL},
	{"DELETE", "/v1/things/*", answer, NULL},
};

static const struct http_route *find(const char *method, const char *path, char *argument,
				     char *allowed, unsigned int *status)
{
	return route_find(routes, 3, method, path, argument, allowed, status);
}

Test(serve_route, method_and_path_name_the_route_and_the_rest_is_its_argument)
{
	char argument[HTTP_ARGUMENT_MAX + 1], allowed[64];
	unsigned int status;

	cr_expect_eq(find("GET", "/v1/things", argument, allowed, &status), &routes[0]);
	cr_expect_str_eq(argument, "");
	cr_expect_eq(find("HEAD", "/v1/things", argument, allowed, &status), &routes[0]);
	cr_expect_eq(find("POST", "/v1/things", argument, allowed, &status), &routes[1]);
	cr_expect_eq(find("DELETE", "/v1/things/a/b c", argument, allowed, &status), &routes[2]);
	cr_expect_str_eq(argument, "a/b c");
}

Test(serve_route, what_is_not_there_is_404_and_another_method_405)
{
	char argument[HTTP_ARGUMENT_MAX + 1], allowed[64], path[HTTP_ARGUMENT_MAX + 32];
	unsigned int status;

	cr_expect_null(find("GET", "/v1/thing", argument, allowed, &status));
	cr_expect_eq(status, 404);
	cr_expect_null(find("GET", "/v1/things2", argument, allowed, &status));
	cr_expect_eq(status, 404);
	cr_expect_null(find("DELETE", "/v1/things/", argument, allowed, &status));
	cr_expect_eq(status, 404);
	cr_expect_null(find("DELETE", "/v1/things", argument, allowed, &status));
	cr_expect_eq(status, 405);
	cr_expect_str_eq(allowed, "GET, POST");
	snprintf(path, sizeof(path), "/v1/things/%0*d", HTTP_ARGUMENT_MAX + 1, 0);
	cr_expect_null(find("DELETE", path, argument, allowed, &status));
	cr_expect_eq(status, 400);
}
