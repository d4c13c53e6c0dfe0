/* SPDX-License-Identifier: Apache-2.0 */
/* Listed segments, and whose they are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/ring.h>

#include "channel/leftover.h"

#define PREFIX "r3ring."
#define UUID_TEXT 33 /* with its NUL */
#define LISTED_TEXT 160
#define PRODUCER_TEXT " by %" PRIu64 " %" PRIu64 " %" PRIu64
#define PRODUCER_SCAN " by %" SCNu64 " %" SCNu64 " %" SCNu64 "%n"

static const char *const end_marks[] = {
	[LEFTOVER_GOES_ON] = "",
	[LEFTOVER_ENDED] = " ended",
	[LEFTOVER_FORSAKEN] = " forsaken",
};

/* ---- the list ----------------------------------------------------------- */

static void uuid_write(const uint8_t uuid[16], char text[UUID_TEXT])
{
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

static int line_write(int list_fd, const char *name, int flags, const char *text)
{
	int fd = openat(list_fd, name + 1, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0640);
	ssize_t len = (ssize_t)strlen(text), written;

	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)len);
	if (written != len)
		len = written < 0 ? -errno : -ENOSPC;
	close(fd);
	return len < 0 ? (int)len : 0;
}

/* "" where there is none. */
static void line_read(int list_fd, const char *name, char text[LISTED_TEXT])
{
	int fd = openat(list_fd, name + 1, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, text, LISTED_TEXT - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
}

int leftover_list(int list_fd, const char *name, const uint8_t uuid[16], uid_t user)
{
	char text[LISTED_TEXT];

	uuid_write(uuid, text);
	snprintf(text + UUID_TEXT - 1, sizeof(text) - UUID_TEXT + 1, " %u", user);
	return line_write(list_fd, name, O_CREAT | O_TRUNC, text);
}

void leftover_unlist(int list_fd, const char *name)
{
	unlinkat(list_fd, name + 1, 0);
}

int leftover_note_end(int list_fd, const char *name, enum leftover_end end)
{
	return line_write(list_fd, name, O_APPEND, end_marks[end]);
}

int leftover_note_producer(int list_fd, const char *name, const struct leftover_process *producer)
{
	char text[LISTED_TEXT];

	snprintf(text, sizeof(text), PRODUCER_TEXT, producer->pid, producer->start_time,
		 producer->pid_namespace);
	return line_write(list_fd, name, O_APPEND, text);
}

/* Returns what comes behind it. */
static const char *read_producer(const char *text, struct leftover_process *producer)
{
	struct leftover_process found;
	int len = 0;

	if (sscanf(text, PRODUCER_SCAN, &found.pid, &found.start_time, &found.pid_namespace,
		   &len) != 3)
		return text;
	*producer = found;
	return text + len;
}

struct leftover_entry leftover_read(int list_fd, const char *name)
{
	struct leftover_entry entry = {.user = geteuid(), .end = LEFTOVER_GOES_ON};
	char line[LISTED_TEXT], *behind_user;
	const char *rest;
	unsigned long user;

	line_read(list_fd, name, line);
	if (strlen(line) < UUID_TEXT)
		return entry;
	user = strtoul(line + UUID_TEXT, &behind_user, 10);
	if (behind_user == line + UUID_TEXT || user >= UINT32_MAX)
		return entry;
	entry.user = (uid_t)user;
	rest = read_producer(behind_user, &entry.producer);
	for (enum leftover_end end = LEFTOVER_ENDED; end <= LEFTOVER_FORSAKEN; end++) {
		if (strcmp(rest, end_marks[end]) == 0)
			entry.end = end;
	}
	return entry;
}

bool leftover_has_ended(const char *runtime_dir, const char *name)
{
	char path[PATH_MAX + sizeof("/segments")];
	enum leftover_end end;
	int list_fd;

	snprintf(path, sizeof(path), "%s/segments", runtime_dir);
	list_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (list_fd < 0)
		return false;
	end = leftover_read(list_fd, name).end;
	close(list_fd);
	return end == LEFTOVER_ENDED;
}

int leftover_each(int list_fd, void (*each)(void *ctx, const char *name), void *ctx)
{
	struct dirent **entries;
	int count = scandirat(list_fd, ".", &entries, NULL, alphasort);
	char name[NAME_MAX + 2];

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (strncmp(entries[i]->d_name, PREFIX, strlen(PREFIX)) == 0) {
			snprintf(name, sizeof(name), "/%s", entries[i]->d_name);
			each(ctx, name);
		}
		free(entries[i]);
	}
	free(entries);
	return 0;
}

/* ---- whose it is -------------------------------------------------------- */

/* Whether it is the segment that was listed. The list is written first: where a crash
 * left it without a uuid, a segment of that name is another daemon's. */
static bool is_listed(int list_fd, const char *name, const struct r3ring_segment *segment)
{
	char listed[LISTED_TEXT], found[UUID_TEXT];

	line_read(list_fd, name, listed);
	uuid_write(r3ring_segment_get_header(segment)->uuid, found);
	return strncmp(listed, found, UUID_TEXT - 1) == 0;
}

static enum leftover_state judge(int list_fd, const char *name, bool locked)
{
	enum leftover_state state = locked ? LEFTOVER_HELD : LEFTOVER_UNOWNED;
	struct r3ring_segment *segment;

	/* What cannot be opened was never finished, or is of another version. */
	if (r3ring_segment_open(&segment, name, NULL) < 0)
		return state;
	if (!is_listed(list_fd, name, segment))
		state = LEFTOVER_FOREIGN;
	else if (locked && r3ring_segment_writer_lives(segment))
		state = LEFTOVER_ALIVE;
	r3ring_segment_close(segment);
	return state;
}

enum leftover_state leftover_look(int list_fd, const char *name)
{
	enum leftover_state state = LEFTOVER_FOREIGN;
	int fd = shm_open(name, O_RDWR | O_NONBLOCK, 0);
	struct stat status;

	if (fd < 0)
		return errno == ENOENT ? LEFTOVER_GONE : LEFTOVER_FOREIGN;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())
		state = judge(list_fd, name, flock(fd, LOCK_EX | LOCK_NB) < 0);
	close(fd);
	return state;
}
