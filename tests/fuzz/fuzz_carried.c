/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what a daemon takes from the file that the one before it left: one byte that
 * says what is put right, then the file. Nothing may be read outside; what is taken must
 * be records, be found again when it is left anew, and fit the ring of a new generation.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_daemon/carried.h"
#include "capture_daemon/publish.h"

#define KEEP_HEAD 1u /* else its magic and generation are right, so that the daemon gets deep */
#define GENERATION 7u
#define FILE_NAME "fuzz.0.live"
#define ARENA_BYTES 65536u /* its largest record is a small part of what a file may hold */
#define DEPTH 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct r3ring_channel_name channel = {.instance = "fuzz"};

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* ---- the directory ------------------------------------------------------- */

/* It is there only while it is looked at: a fuzzer's process just ends. */
static void directory_make(struct runtime_dir *dir)
{
	snprintf(dir->path, sizeof(dir->path), "/dev/shm/r3ring-fuzz-carried.%d", getpid());
	need(mkdir(dir->path, 0700) == 0, dir->path);
	dir->generations_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(dir->generations_fd >= 0, dir->path);
}

static void directory_remove(struct runtime_dir *dir)
{
	unlinkat(dir->generations_fd, FILE_NAME, 0);
	close(dir->generations_fd);
	need(rmdir(dir->path) == 0, dir->path);
}

/* What a daemon that leaves nothing but this step writes. */
static void right_head(struct runtime_dir *dir, uint8_t head[16])
{
	const struct live none = {0};
	int fd;

	need(carried_store(dir, &channel, GENERATION, &none, &(struct carried_told){.step = 1}) ==
		     0,
	     FILE_NAME);
	fd = openat(dir->generations_fd, FILE_NAME, O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && read(fd, head, 16) == 16, FILE_NAME);
	close(fd);
}

static void file_write(struct runtime_dir *dir, uint8_t control, const uint8_t *data, size_t size)
{
	uint8_t head[16];
	int fd;

	right_head(dir, head);
	fd = openat(dir->generations_fd, FILE_NAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	need(fd >= 0 && write(fd, data, size) == (ssize_t)size, FILE_NAME);
	if (!(control & KEEP_HEAD) && size >= sizeof(head))
		need(pwrite(fd, head, sizeof(head), 0) == sizeof(head), FILE_NAME);
	close(fd);
}

/* ---- what was taken ------------------------------------------------------ */

static size_t check_table(const struct live_payload *table, uint16_t type)
{
	size_t bytes = 0;

	for (const struct live_payload *p = table; p; p = p->hh.next) {
		struct r3ring_record record;

		check(r3ring_record_decode(&record, type, p->bytes, p->len, NULL) == 0);
		bytes += sizeof(*p) + p->len;
	}
	return bytes;
}

static void check_live(const struct live *live)
{
	size_t bytes =
		check_table(live->maps, R3RING_EPLB) + check_table(live->requests, R3RING_REQUEST);

	check(bytes == live->bytes && bytes <= LIVE_BYTES_MAX);
}

static void check_found_again(struct runtime_dir *dir, const struct live *live,
			      const struct carried_told *told)
{
	struct carried_told told_again = {0};
	struct live again = {0};

	check(carried_store(dir, &channel, GENERATION, live, told) == 0);
	check(carried_read(dir, &channel, GENERATION, &again, &told_again) == 0);
	check(told_again.step == told->step && told_again.gap_records == told->gap_records);
	check(again.bytes == live->bytes);
	check(HASH_COUNT(again.requests) == HASH_COUNT(live->requests));
	check(HASH_COUNT(again.maps) == HASH_COUNT(live->maps));
	live_clear(&again);
}

/* Takes @live over, as a generation's beginning does. */
static void check_fits(struct live *live)
{
	const struct r3ring_record schema = {.type = R3RING_SCHEMA};
	struct r3ring_segment_options options = {
		.size = sizeof(options),
		.label = "fuzz/0",
		.arena_bytes = ARENA_BYTES,
		.depth = DEPTH,
		.generation = GENERATION + 1,
	};
	struct r3ring_segment *segment;
	struct publisher publisher;
	char name[64];

	snprintf(name, sizeof(name), "/r3ring-fuzz-carried-ring.%d", getpid());
	options.name = name;
	need(r3ring_segment_create(&segment, &options, NULL) == 0, name);
	r3ring_segment_unlink(segment);
	need(publisher_open(&publisher, segment, &schema) == 0, name);
	check(publish_carried(&publisher, live) == 0);
	check_live(&publisher.live);
	publisher_close(&publisher);
	r3ring_segment_close(segment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_dir dir;
	struct live live = {0};
	struct carried_told told = {0};
	int r;

	if (size < 1)
		return 0;
	directory_make(&dir);
	file_write(&dir, data[0], data + 1, size - 1);
	r = carried_read(&dir, &channel, GENERATION, &live, &told);
	check_live(&live);
	if (r == 0)
		check_found_again(&dir, &live, &told);
	if (live.bytes)
		check_fits(&live);
	live_clear(&live);
	directory_remove(&dir);
	return 0;
}
