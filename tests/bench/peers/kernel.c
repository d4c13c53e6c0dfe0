/* SPDX-License-Identifier: Apache-2.0 */
/* Two descriptors of the kernel as a channel. */
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/bench/peers/kernel.h"

const char *kernel_version(void)
{
	static struct utsname name;

	return uname(&name) ? "?" : name.release;
}

int *kernel_pair_make(struct peer_channel *channel)
{
	int *pair = malloc(2 * sizeof(*pair));

	if (pair)
		pair[0] = pair[1] = -1;
	channel->shared = pair;
	return pair;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void kernel_pair_keep(struct peer_channel *channel, int kept)
{
	int *pair = channel->shared;

	drop(&pair[!kept]);
}

void kernel_pair_dispose(struct peer_channel *channel)
{
	int *pair = channel->shared;

	if (!pair)
		return;
	drop(&pair[0]);
	drop(&pair[1]);
	free(pair);
}
