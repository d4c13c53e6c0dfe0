/* SPDX-License-Identifier: Apache-2.0 */
/* Executing itself anew. */
#include <errno.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture_daemon/anew.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"

#define COPY_FAILED_VARIABLE "R3RINGD_COPY_FAILED" /* channels, each with a comma behind it */
#define FIRST_DESCRIPTOR 3

static bool on_gpu(const struct channel *channel)
{
	return channel->state == CHANNEL_LIVE && channel->buffer_kind != R3RING_BUFFER_HOST;
}

static int pass_on(const struct daemon *daemon)
{
	size_t bytes = 1, at = 0;
	char *list;
	int r;

	for (const struct channel *c = daemon->channels; c; c = c->next)
		bytes += on_gpu(c) ? strlen(c->text) + 1 : 0;
	list = malloc(bytes);
	if (!list)
		return -ENOMEM;
	for (const struct channel *c = daemon->channels; c; c = c->next) {
		size_t len = strlen(c->text);

		if (!on_gpu(c))
			continue;
		memcpy(list + at, c->text, len);
		list[at + len] = ',';
		at += len + 1;
	}
	list[at] = '\0';
	r = setenv(COPY_FAILED_VARIABLE, list, 1) ? -errno : 0;
	free(list);
	return r;
}

int anew_execute(const struct daemon *daemon)
{
	int r = pass_on(daemon);

	if (r < 0)
		log_warn("which copies failed is not passed on: %s", strerror(-r));
	log_warn("a GPU's context is spoiled: executing itself anew");
	/* The driver's own descriptors, too: with them goes what it still does. */
	syscall(SYS_close_range, FIRST_DESCRIPTOR, ~0u, CLOSE_RANGE_CLOEXEC);
	execv("/proc/self/exe", daemon->argv);
	return -errno;
}

bool anew_copy_failed(const char *channel)
{
	const char *list = getenv(COPY_FAILED_VARIABLE);
	size_t len = strlen(channel);

	while (list && *list) {
		const char *end = strchr(list, ',');

		if (!end)
			return false;
		if ((size_t)(end - list) == len && memcmp(list, channel, len) == 0)
			return true;
		list = end + 1;
	}
	return false;
}
