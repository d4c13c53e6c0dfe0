/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds. */
#include <dirent.h>
#include <stdio.h>

#include "tests/support/process_size.h"

long process_own_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	if (!file)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "RssAnon: %ld", &kib) != 1)
			kib = -1;
	}
	fclose(file);
	return kib;
}

bool process_size_tells(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return false;
#elif defined(__has_feature)
	return !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
	return true;
#endif
}

int process_descriptors(pid_t pid)
{
	struct dirent *entry;
	char path[64];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}
