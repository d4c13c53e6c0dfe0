/* SPDX-License-Identifier: Apache-2.0 */
/* One seed, written in pieces. */
#ifndef TESTS_FUZZ_SEED_FILE_H
#define TESTS_FUZZ_SEED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct seed_part {
	const void *bytes;
	size_t len;
};

/* Writes DIR/NAME; ends the process when it cannot. */
static inline void seed_write(const char *dir, const char *name, const struct seed_part *parts,
			      size_t count)
{
	char path[512];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "wb");
	ok = file != NULL;
	for (size_t i = 0; ok && i < count; i++)
		ok = fwrite(parts[i].bytes, 1, parts[i].len, file) == parts[i].len;
	if (file && fclose(file))
		ok = false;
	if (ok)
		return;
	perror(path);
	exit(1);
}

#endif
