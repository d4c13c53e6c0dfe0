/* SPDX-License-Identifier: Apache-2.0 */
/* One line per event on standard error, with a time or a journal priority. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "capture_daemon/log.h"

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char priorities[] = {'3', '4', '6', '7'};
static uint32_t log_level = R3RING_LOG_INFO;
static bool to_journal;

void log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device &&
		     status.st_ino == inode;
}

void log_set_level(enum r3ring_log_level level)
{
	r3ring_store_relaxed_u32(&log_level, level);
}

int log_level_parse(const char *name, enum r3ring_log_level *level)
{
	for (unsigned int i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(name, level_names[i]) == 0) {
			*level = (enum r3ring_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int write_prefix(char *line, size_t capacity, enum r3ring_log_level level)
{
	struct timespec now;
	struct tm parts;
	char stamp[32];

	if (to_journal)
		return snprintf(line, capacity, "<%c>", priorities[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &parts);
	return snprintf(line, capacity, "%s.%03ldZ r3ringd %s: ", stamp, now.tv_nsec / 1000000,
			level_names[level]);
}

void log_line(enum r3ring_log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;
	int prefix, text;
	size_t len;
	va_list args;

	if (level > r3ring_load_relaxed_u32(&log_level))
		return;
	prefix = write_prefix(line, sizeof(line), level);
	va_start(args, format);
	text = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, args);
	va_end(args);
	len = (size_t)prefix + (size_t)(text < 0 ? 0 : text);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	/* Where even this write fails there is nobody left to tell. */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = saved;
	errno = saved;
}
