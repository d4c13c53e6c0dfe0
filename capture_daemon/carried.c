/* SPDX-License-Identifier: Apache-2.0 */
/* Files of live requests and EPLB maps, from one daemon to the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <test_point.h>

#include "capture_daemon/carried.h"
#include "channel/generations.h"

#define MAGIC 0x345641454c523352ull

/* The file: this, and behind each entry's head its payload. */
struct carried_head {
	uint64_t magic;
	uint64_t generation;
	uint64_t told_step;
	uint64_t gap_records;
	uint64_t former;
	uint64_t entries;
	uint64_t lacks; /* 1: there are live requests that no entry tells of */
};

struct carried_entry {
	uint32_t type; /* R3RING_REQUEST or R3RING_EPLB */
	uint32_t len;
};

/* ---- leaving ------------------------------------------------------------ */

static bool write_table(FILE *file, const struct live_payload *table, uint32_t type)
{
	for (const struct live_payload *p = table; p; p = p->hh.next) {
		const struct carried_entry entry = {.type = type, .len = (uint32_t)p->len};

		if (fwrite(&entry, sizeof(entry), 1, file) != 1 ||
		    fwrite(p->bytes, 1, p->len, file) != p->len)
			return false;
	}
	return true;
}

static bool write_all(FILE *file, uint64_t generation, const struct live *live,
		      const struct carried_told *told)
{
	const struct carried_head head = {
		.magic = MAGIC,
		.generation = generation,
		.told_step = told->step,
		.gap_records = told->gap_records,
		.former = told->former,
		.entries = HASH_COUNT(live->maps) + HASH_COUNT(live->requests),
		.lacks = live->lacks,
	};

	return fwrite(&head, sizeof(head), 1, file) == 1 &&
	       write_table(file, live->maps, R3RING_EPLB) &&
	       write_table(file, live->requests, R3RING_REQUEST);
}

static int write_file(int dir_fd, const char *name, uint64_t generation, const struct live *live,
		      const struct carried_told *told)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *file;
	bool whole;

	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	whole = write_all(file, generation, live, told);
	return fclose(file) == 0 && whole ? 0 : -EIO;
}

int carried_store(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		  uint64_t generation, const struct live *live, const struct carried_told *told)
{
	char name[NAME_MAX + 1], fresh[NAME_MAX + 1];
	int r;

	if (!live->maps && !live->requests && !live->lacks && !told->step && !told->gap_records) {
		carried_remove(dir, channel);
		return 0;
	}
	generations_file(channel, ".live", name, sizeof(name));
	generations_file(channel, ".live~", fresh, sizeof(fresh));
	r = write_file(dir->generations_fd, fresh, generation, live, told);
	R3RING_TEST_POINT("carried written");
	if (r == 0 && renameat(dir->generations_fd, fresh, dir->generations_fd, name) < 0)
		r = -errno;
	R3RING_TEST_POINT("carried stored");
	if (r < 0)
		unlinkat(dir->generations_fd, fresh, 0);
	return r;
}

void carried_remove(struct runtime_dir *dir, const struct r3ring_channel_name *channel)
{
	char name[NAME_MAX + 1];

	generations_file(channel, ".live", name, sizeof(name));
	unlinkat(dir->generations_fd, name, 0);
	R3RING_TEST_POINT("carried removed");
}

/* ---- reading ------------------------------------------------------------- */

static int note(struct live *live, uint32_t type, const uint8_t *payload, size_t len)
{
	struct r3ring_record record;
	int r;

	if (type != R3RING_REQUEST && type != R3RING_EPLB)
		return -EBADMSG;
	r = r3ring_record_decode(&record, (uint16_t)type, payload, len, NULL);
	if (r < 0)
		return r;
	return type == R3RING_EPLB ? live_note_map(live, &record.u.eplb.head, payload, len)
				   : live_note_request(live, &record.u.request.head, payload, len);
}

static int read_entry(FILE *file, struct live *live)
{
	struct carried_entry entry;
	uint8_t *payload;
	int r = -EBADMSG;

	if (fread(&entry, sizeof(entry), 1, file) != 1 || entry.len > LIVE_BYTES_MAX)
		return -EBADMSG;
	payload = malloc(entry.len + 1ul);
	if (!payload)
		return -ENOMEM;
	if (fread(payload, 1, entry.len, file) == entry.len)
		r = note(live, entry.type, payload, entry.len);
	free(payload);
	return r;
}

static int read_all(FILE *file, uint64_t generation, struct live *live, struct carried_told *told)
{
	struct carried_head head;
	int r = 0;

	if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != MAGIC)
		return -EBADMSG;
	if (head.generation != generation && (!head.former || head.former != generation))
		return 0;
	if (head.gap_records >= R3RING_CAUSE_COUNT || head.lacks > 1)
		return -EBADMSG;
	*told = (struct carried_told){.step = head.told_step, .gap_records = head.gap_records};
	live->lacks |= head.lacks == 1;
	for (uint64_t i = 0; r == 0 && i < head.entries; i++)
		r = read_entry(file, live);
	return r;
}

int carried_read(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		 uint64_t generation, struct live *live, struct carried_told *told)
{
	char name[NAME_MAX + 1];
	FILE *file;
	int fd, r;

	generations_file(channel, ".live", name, sizeof(name));
	fd = openat(dir->generations_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	r = read_all(file, generation, live, told);
	fclose(file);
	return r;
}
