/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into arm64 programs under qemu-user: what they execute is run by
 * qemu, too. A kernel that was told of qemu (binfmt_misc) would do it by itself;
 * in a container nobody has told it.
 *
 * QEMU: path of qemu-aarch64, set by tests/aarch64/run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 64
#define ENVIRONMENT_MAX 1024

typedef int (*execve_fn)(const char *, char *const *, char *const *);

__attribute__((visibility("default"))) int execve(const char *path, char *const args[],
						  char *const environment[]);

/* Without this file: the program executed is qemu, which is none of arm64's. */
static int environment_of_qemu(char *const environment[], char *to[])
{
	int count = 0;

	for (int i = 0; environment && environment[i]; i++) {
		if (strncmp(environment[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)
			continue;
		if (count == ENVIRONMENT_MAX)
			return -E2BIG;
		to[count++] = environment[i];
	}
	to[count] = NULL;
	return 0;
}

int execve(const char *path, char *const args[], char *const environment[])
{
	execve_fn real = (execve_fn)dlsym(RTLD_NEXT, "execve");
	const char *qemu = getenv("QEMU");
	const char *through[ARGS_MAX + 4] = {"qemu-aarch64", "-0", args[0], path};
	char *variables[ENVIRONMENT_MAX + 1];
	int count = 4;

	if (!real || !qemu || environment_of_qemu(environment, variables)) {
		errno = ENOSYS;
		return -1;
	}
	for (int i = 1; args[0] && args[i]; i++) {
		if (count > ARGS_MAX) {
			errno = E2BIG;
			return -1;
		}
		through[count++] = args[i];
	}
	return real(qemu, (char *const *)through, variables);
}
