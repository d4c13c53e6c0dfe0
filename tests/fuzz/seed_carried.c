/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_carried into the directory given: files of daemons that left live
 * requests and maps, one that left a step only, and each with its end missing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture_daemon/carried.h"
#include "tests/fuzz/seed_file.h"
#include "tests/support/record_examples.h"

#define GENERATION 7u
#define MAP_LAYERS 8u
#define MAP_EXPERTS 1024u

static const struct r3ring_channel_name channel = {.instance = "seed"};

static void note(struct live *live, uint16_t type, enum example_size size)
{
	struct r3ring_record record;
	struct example_payload payload;

	example_record(&record, type, size);
	if (type == R3RING_REQUEST) {
		record.u.request.head.event = R3RING_REQUEST_BEGIN;
		record.u.request.head.reason = 0;
	}
	payload = example_payload(&record);
	if (type == R3RING_REQUEST)
		live_note_request(live, &record.u.request.head, payload.bytes, payload.len);
	else
		live_note_map(live, &record.u.eplb.head, payload.bytes, payload.len);
	free(payload.bytes);
}

/* More than one record of a small ring takes. */
static void note_large_map(struct live *live)
{
	static uint16_t map[MAP_LAYERS * MAP_EXPERTS];
	static uint8_t payload[sizeof(struct r3ring_eplb_record) + sizeof(map)];
	struct r3ring_record record = {.type = R3RING_EPLB};
	long len;

	record.u.eplb.head = (struct r3ring_eplb_record){
		.epoch = 1,
		.layers = MAP_LAYERS,
		.experts = MAP_EXPERTS,
		.physical = MAP_EXPERTS,
		.replicas = 1,
		.gpus = 1,
	};
	record.u.eplb.map = map;
	len = r3ring_record_encode(&record, payload, sizeof(payload), NULL);
	if (len < 0)
		exit(1);
	live_note_map(live, &record.u.eplb.head, payload, (size_t)len);
}

/* With the head kept and without, whole and without its last byte. */
static void write_seeds(struct runtime_dir *dir, const char *what, const struct live *live)
{
	uint8_t bytes[65536];
	ssize_t len;
	int fd;

	if (carried_store(dir, &channel, GENERATION, live,
			  &(struct carried_told){.step = 17, .gap_records = 1}) < 0)
		exit(1);
	fd = openat(dir->generations_fd, "seed.0.live", O_RDONLY | O_CLOEXEC);
	len = read(fd, bytes, sizeof(bytes));
	close(fd);
	carried_remove(dir, &channel);
	if (len <= 0)
		exit(1);
	for (uint8_t control = 0; control < 4; control++) {
		const uint8_t keep_head = control & 1;
		const struct seed_part parts[] = {{&keep_head, sizeof(keep_head)},
						  {bytes, (size_t)len - control / 2}};
		char name[64];

		snprintf(name, sizeof(name), "%s.%u", what, control);
		seed_write(dir->path, name, parts, 2);
	}
}

int main(int argc, char **argv)
{
	struct runtime_dir dir;
	struct live live = {0};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	snprintf(dir.path, sizeof(dir.path), "%s", argv[1]);
	dir.generations_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir.generations_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	write_seeds(&dir, "step", &live);
	note(&live, R3RING_REQUEST, EXAMPLE_TYPICAL);
	write_seeds(&dir, "request", &live);
	note(&live, R3RING_EPLB, EXAMPLE_TYPICAL);
	write_seeds(&dir, "map", &live);
	note_large_map(&live);
	write_seeds(&dir, "large_map", &live);
	live_clear(&live);
	return 0;
}
