/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/listen.h"

#define BACKLOG 64
#define DEFAULT_HOST "127.0.0.1"

/* ---- addresses ------------------------------------------------------------ */

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= 5 && !text[digits] && atoi(text) <= UINT16_MAX;
}

/* Splits "HOST:PORT"; brackets around an IPv6 address stay out. */
static bool split(const char *text, char host[256], const char **port)
{
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	int len;

	if (!colon || !is_port(colon + 1))
		return false;
	if (text[0] == '[') {
		if (colon == text || colon[-1] != ']')
			return false;
		begin++;
		end--;
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return false;
	}
	*port = colon + 1;
	len = (int)(end - begin);
	if (len == 0)
		return snprintf(host, 256, "%s", DEFAULT_HOST) > 0;
	return snprintf(host, 256, "%.*s", len, begin) < 256;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	if (address->ss_family == AF_INET) {
		memcpy(&four, address, sizeof(four));
		return ntohl(four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	memcpy(&six, address, sizeof(six));
	return memcmp(&six.sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

static int bind_address(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	int error;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static const char *bind_remedy(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return ": another server listens there, see ss -ltnp; end it, or take another "
		       "port with --listen";
	case -EADDRNOTAVAIL:
		return ": give --listen an address of this machine, see ip -br address";
	case -EACCES:
		return ": take a port from 1024 on with --listen";
	default:
		return "";
	}
}

static void name_place(int fd, struct listen_place *place)
{
	struct sockaddr_storage bound = {0};
	socklen_t len = sizeof(bound);
	char port[16] = "?";

	if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0) {
		getnameinfo((struct sockaddr *)&bound, len, NULL, 0, port, sizeof(port),
			    NI_NUMERICSERV);
		place->loopback = is_loopback(&bound);
	}
	snprintf(place->name, sizeof(place->name), strchr(place->host, ':') ? "[%s]:%s" : "%s:%s",
		 place->host, port);
}

bool listen_is_address(const char *text)
{
	const char *port;
	char host[256];

	return split(text, host, &port);
}

int listen_on_address(const char *text, struct listen_place *place, struct r3ring_error *err)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	const char *port;
	int r;

	if (!split(text, place->host, &port))
		return r3ring_error_set(err, -EINVAL,
					"'%s' is no address: 127.0.0.1:9300, [::1]:9300, :9300",
					text);
	r = getaddrinfo(place->host, port, &hints, &found);
	if (r)
		return r3ring_error_set(err, -EADDRNOTAVAIL,
					"%s: %s: give --listen an address of this machine, such as "
					"127.0.0.1:9300",
					text, gai_strerror(r));
	r = bind_address(found);
	freeaddrinfo(found);
	if (r < 0)
		return r3ring_error_set(err, r, "%s: %s%s", text, strerror(-r), bind_remedy(r));
	name_place(r, place);
	return r;
}

/* ---- Unix sockets --------------------------------------------------------- */

/* Whether there is a socket that nobody listens on any more. */
static bool is_left_over(const struct sockaddr_un *address)
{
	struct stat status;
	int fd, refused;

	if (lstat(address->sun_path, &status) || !S_ISSOCK(status.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static int bind_path(int fd, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;

	umask(mask);
	if (r == 0 && listen(fd, BACKLOG))
		r = -errno;
	return r;
}

static const char *path_remedy(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "something is there already: another server, or a file; end it, remove it, "
		       "or take another path with --unix";
	case -ENOENT:
		return "there is no such directory: make it, or take another path with --unix";
	case -EACCES:
	case -EROFS:
		return "this user may not write there: take another path with --unix";
	default:
		return strerror(-error);
	}
}

int listen_on_path(const char *path, struct listen_place *place, struct r3ring_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return r3ring_error_set(err, -ENAMETOOLONG,
					"%s: a socket's path has at most %zu "
					"bytes",
					path, sizeof(address.sun_path) - 1);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return r3ring_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (is_left_over(&address))
		unlink(path);
	r = bind_path(fd, &address);
	if (r) {
		close(fd);
		return r3ring_error_set(err, r, "%s: %s", path, path_remedy(r));
	}
	place->host[0] = '\0';
	place->loopback = true;
	snprintf(place->name, sizeof(place->name), "%s", path);
	return fd;
}
