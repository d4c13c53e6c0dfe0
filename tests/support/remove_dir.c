/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <unistd.h>

#include "tests/support/remove_dir.h"

void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}
