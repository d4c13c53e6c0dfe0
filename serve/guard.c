/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/guard.h"

#define BEARER "Bearer "

/* Length of the name in "name:port", "[v6]:port" or either without a port. */
static size_t name_length(const char *host)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : strchr(host, ':');

	if (!end)
		return strlen(host);
	return (size_t)(end - host) + (host[0] == '[');
}

static bool is_port(const char *text)
{
	return text[0] == '\0' ||
	       (text[0] == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* Of IPv4 in digits, or of IPv6 in brackets. */
static bool is_ip(const char *host, size_t len)
{
	const bool six = host[0] == '[';
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr address;

	if (six && host[len - 1] != ']')
		return false;
	if (six) {
		host++;
		len -= 2;
	}
	if (len >= sizeof(text))
		return false;
	memcpy(text, host, len);
	return inet_pton(six ? AF_INET6 : AF_INET, text, &address) == 1;
}

/* A page can have its own name lead here, but no number: who asks by one means this machine. */
bool guard_knows_host(const struct guard *guard, const char *host)
{
	size_t len;

	if (guard->any_host)
		return true;
	if (!host)
		return false;
	len = name_length(host);
	if (!is_port(host + len))
		return false;
	for (unsigned int i = 0; i < guard->host_count; i++) {
		if (strlen(guard->hosts[i]) == len && strncasecmp(host, guard->hosts[i], len) == 0)
			return true;
	}
	return is_ip(host, len);
}

bool guard_knows_origin(const struct guard *guard, const char *origin, const char *host)
{
	const char *site;

	if (!origin)
		return true;
	site = strstr(origin, "://");
	if (!site)
		return false;
	return guard->any_host || (host && strcasecmp(site + 3, host) == 0);
}

static bool same_secret(const char *a, const char *b, size_t len)
{
	unsigned char difference = 0;

	for (size_t i = 0; i < len; i++)
		difference |= (unsigned char)(a[i] ^ b[i]);
	return difference == 0;
}

bool guard_admits(const struct guard *guard, const char *authorization)
{
	size_t len = strlen(guard->token);

	if (!len)
		return true;
	if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
		return false;
	authorization += strlen(BEARER);
	return strlen(authorization) == len && same_secret(authorization, guard->token, len);
}

/* ---- the token's file ----------------------------------------------------- */

static int check_file(int fd, const char *path, struct r3ring_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return r3ring_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return r3ring_error_set(err, -EINVAL, "%s is no file", path);
	if (status.st_mode & (S_IRWXG | S_IRWXO))
		return r3ring_error_set(err, -EACCES,
					"%s can be read by others: chmod 600 it, and take a new "
					"token",
					path);
	return 0;
}

static int check_token(const char *token, const char *path, struct r3ring_error *err)
{
	if (!token[0] || strlen(token) > GUARD_TOKEN_MAX)
		return r3ring_error_set(err, -EINVAL, "%s: a token has 1 to %d characters", path,
					GUARD_TOKEN_MAX);
	for (const char *c = token; *c; c++) {
		if (*c <= ' ' || *c > '~')
			return r3ring_error_set(err, -EINVAL,
						"%s: a token is one line of printable ASCII "
						"without blanks",
						path);
	}
	return 0;
}

int guard_read_token(struct guard *guard, const char *path, struct r3ring_error *err)
{
	char token[GUARD_TOKEN_MAX + 3] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got;
	int r;

	if (fd < 0)
		return r3ring_error_set(err, -errno,
					"the token's file %s: %s: make it, (umask 077; openssl "
					"rand -hex 32 >FILE), or name another with --token-file",
					path, strerror(errno));
	r = check_file(fd, path, err);
	got = r ? 0 : read(fd, token, sizeof(token) - 1);
	if (got < 0)
		r = r3ring_error_set(err, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	if (r)
		return r;
	if (got && token[got - 1] == '\n')
		token[got - 1] = '\0';
	r = check_token(token, path, err);
	if (!r)
		snprintf(guard->token, sizeof(guard->token), "%s", token);
	return r;
}
