/* SPDX-License-Identifier: Apache-2.0 */
/* Which process writes, so that others can tell whether it still lives. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring/internal.h"

/* Reads a small file of /proc as text; an empty string where there is none. */
static void read_text(const char *path, char *text, size_t capacity)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, capacity - 1);

	text[got > 0 ? got : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

void identity_boot_id(uint8_t boot_id[16])
{
	char text[64];
	size_t digits = 0;

	memset(boot_id, 0, 16);
	read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	for (const char *c = text; *c && digits < 32; c++) {
		int value = hex_value(*c);

		if (value < 0)
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | value);
		digits++;
	}
}

/* Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and ')'.
 * Source: proc(5). */
uint64_t identity_start_time(uint32_t pid)
{
	char path[32], text[1024];
	char *field;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	read_text(path, text, sizeof(text));
	field = strrchr(text, ')');
	for (int number = 2; field && number < 22; number++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field, NULL, 10) : 0;
}

bool r3ring_segment_writer_lives(const struct r3ring_segment *segment)
{
	const struct r3ring_segment_header *header = &segment->header;
	uint8_t boot_id[16];

	identity_boot_id(boot_id);
	return memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0 &&
	       header->writer_start_time != 0 &&
	       identity_start_time(header->writer_pid) == header->writer_start_time;
}
