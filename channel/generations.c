/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/generations.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void generations_file(const struct r3ring_channel_name *channel, const char *suffix, char *file,
		      size_t capacity)
{
	snprintf(file, capacity, "%s.%u%s%s", channel->instance, channel->rank,
		 channel->draft ? ".draft" : "", suffix);
}

uint64_t generations_read(int dir_fd, const char *file)
{
	char text[32] = "";
	uint64_t generation = 0;
	int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) > 0)
		generation = strtoull(text, NULL, 10);
	close(fd);
	return generation;
}
