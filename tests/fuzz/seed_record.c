/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_record into the directory given: the small examples of
 * every record type. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/record_examples.h"

static int write_seed(const char *dir, uint16_t type, enum example_size size)
{
	struct example_payload payload;
	struct r3ring_record record;
	char path[512];
	FILE *file;
	int ok;

	example_record(&record, type, size);
	payload = example_payload(&record);
	snprintf(path, sizeof(path), "%s/%s.%d", dir, r3ring_record_type_name(type), (int)size);
	file = fopen(path, "wb");
	ok = file && fwrite(&type, sizeof(type), 1, file) == 1 &&
	     fwrite(payload.bytes, 1, payload.len, file) == payload.len;
	if (file && fclose(file))
		ok = 0;
	free(payload.bytes);
	if (!ok)
		perror(path);
	return ok;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (uint16_t type = R3RING_SCHEMA; type < R3RING_RECORD_TYPES; type++)
		if (!write_seed(argv[1], type, EXAMPLE_MIN) ||
		    !write_seed(argv[1], type, EXAMPLE_TYPICAL))
			return 1;
	return 0;
}
