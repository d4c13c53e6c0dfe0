/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: which generations there were before it began: what came since and is not in
 * the archive it has missed. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "channel/generations.h"
#include "channel/socket.h"
#include "tools/record.h"

static void read_all(json_t *before, DIR *dir, const char *instance)
{
	size_t len = strlen(instance);
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		const char *file = entry->d_name;

		if (strncmp(file, instance, len) != 0 || file[len] != '.')
			continue;
		json_object_set_new(before, file,
				    json_integer((json_int_t)generations_read(dirfd(dir), file)));
	}
}

json_t *record_before_read(const char *instance)
{
	char place[PATH_MAX], path[PATH_MAX + sizeof(GENERATIONS_DIR) + 1];
	json_t *before;
	DIR *dir;

	if (socket_find_dir(place, sizeof(place)))
		return NULL;
	snprintf(path, sizeof(path), "%s/" GENERATIONS_DIR, place);
	dir = opendir(path);
	if (!dir)
		return NULL;
	before = json_object();
	if (before)
		read_all(before, dir, instance);
	closedir(dir);
	return before;
}

bool record_before_get(const json_t *before, const char *channel, uint64_t *generation)
{
	struct r3ring_channel_name name;
	char file[NAME_MAX + 1];

	if (!before || channel_name_parse(&name, channel, NULL))
		return false;
	generations_file(&name, "", file, sizeof(file));
	*generation = (uint64_t)json_integer_value(json_object_get(before, file));
	return true;
}
