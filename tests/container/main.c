/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command as in a plain container: 64 MiB of /dev/shm, and io_uring
 * refused, as Docker's default profile does.
 *
 *	plain-container COMMAND [ARGUMENT]...
 *
 * Ends as the command does; with 77 where the kernel refuses such a container,
 * with 127 where there is no such command.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/container.h"

int main(int argc, char **argv)
{
	const struct container plain = {.shm_size = CONTAINER_SHM, .io_uring_error = EPERM};
	char why[128];

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND [ARGUMENT]...\n", argv[0]);
		return 2;
	}
	if (container_enter(&plain, why, sizeof(why))) {
		fprintf(stderr, "%s: %s\n", argv[0], why);
		return 77;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(errno));
	return 127;
}
