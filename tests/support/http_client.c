/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/http_client.h"

#define PATIENCE_S 60

static void die(const char *what)
{
	fprintf(stderr, "http client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(const struct sockaddr *address, socklen_t len)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, address, len))
		die("connect");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

int http_dial_port(int port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons((in_port_t)port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return dial((const struct sockaddr *)&address, sizeof(address));
}

int http_dial_path(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return dial((const struct sockaddr *)&address, sizeof(address));
}

/* Whether all came that the answer says it has: some servers close later, or never. */
static bool is_whole(const char *answer, size_t length)
{
	const char *body = strstr(answer, "\r\n\r\n");
	const char *told = strcasestr(answer, "\r\nContent-Length:");

	return body && told && told < body &&
	       length - (size_t)(body + 4 - answer) >= strtoul(told + 17, NULL, 10);
}

/* Until the server closes; or, where one answer is all that is wanted, until that is whole. */
static const char *exchange(int fd, const char *request, bool one)
{
	static char answer[1 << 20];
	size_t length = 0;
	ssize_t got;

	/* A server that refuses early may have closed: what it said is still there. */
	send(fd, request, strlen(request), MSG_NOSIGNAL);
	answer[0] = '\0';
	while (length < sizeof(answer) - 1 && !(one && is_whole(answer, length)) &&
	       (got = recv(fd, answer + length, sizeof(answer) - 1 - length, 0)) > 0) {
		length += (size_t)got;
		answer[length] = '\0';
	}
	close(fd);
	return answer;
}

const char *http_exchange(int fd, const char *request)
{
	return exchange(fd, request, false);
}

struct http_reply http_ask(int fd, const char *method, const char *path, const char *body,
			   const char *token)
{
	struct http_reply reply = {0};
	const char *answer, *begin;
	char request[8192];

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
		 "Content-Length: %zu\r\n%s%s%s\r\n%s",
		 method, path, body ? strlen(body) : 0, token ? "Authorization: Bearer " : "",
		 token ? token : "", token ? "\r\n" : "", body ? body : "");
	answer = exchange(fd, request, true);
	if (strncmp(answer, "HTTP/1.1 ", 9) == 0)
		reply.status = atoi(answer + 9);
	begin = strstr(answer, "\r\n\r\n");
	if (begin)
		reply.json = json_loads(begin + 4, 0, NULL);
	return reply;
}
