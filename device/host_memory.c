/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may still take. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "device/host_memory.h"

static uint64_t machine_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kibibytes, bytes = UINT64_MAX;
	char line[128];

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kibibytes) == 1)
			bytes = kibibytes * 1024;
	fclose(file);
	return bytes;
}

/* This process's group, as "/a/b"; "" when it has none of version 2. */
static void group_path(char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	path[0] = '\0';
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, PATH_MAX, "%s", line + strlen("0::"));
	}
	fclose(file);
}

/* A number in a file of the group; UINT64_MAX for "max" or no such file. */
static uint64_t group_number(const char *group, const char *name)
{
	char path[PATH_MAX + 64];
	uint64_t number;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
	file = fopen(path, "re");
	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &number) != 1)
		number = UINT64_MAX;
	fclose(file);
	return number;
}

static uint64_t group_available(void)
{
	char group[PATH_MAX];
	uint64_t limit, used;

	group_path(group);
	limit = group_number(group, "memory.max");
	used = group_number(group, "memory.current");
	if (limit == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

uint64_t host_memory_available(void)
{
	uint64_t machine = machine_available();
	uint64_t group = group_available();

	return machine < group ? machine : group;
}
