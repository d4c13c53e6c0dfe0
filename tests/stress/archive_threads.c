/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of an archive's writer, for ThreadSanitizer: one gives, some compress, one
 * writes and syncs, and a fourth party asks for accounts meanwhile. What is there in the
 * end is walked.
 *
 *	archive_threads [RECORDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/writer.h"
#include "tests/support/archive_walk.h"
#include "tests/support/remove_dir.h"

#define RECORDS 30000u
#define LENGTH 2000u

static int give(struct archive_writer *writer, uint64_t records)
{
	static uint8_t payload[LENGTH];
	const uint8_t uuid[16] = {1};
	int channel = archive_writer_channel(writer, "stress/0");
	int r = archive_writer_generation(writer, (uint16_t)channel, 1, uuid);

	for (uint64_t seq = 1; r == 0 && seq <= records; seq++) {
		const struct r3ring_view view = {
			.seq = seq,
			.type = 100,
			.len = (uint32_t)(seq * 31 % LENGTH),
			.data = payload,
		};
		struct archive_writer_stats stats;

		payload[seq % LENGTH] = (uint8_t)(seq * 7);
		r = archive_writer_record(writer, (uint16_t)channel, &view);
		archive_writer_get_stats(writer, &stats);
		if (stats.stored_records > seq || stats.synced_records > stats.stored_records)
			r = -1;
		if (r == 0)
			r = archive_writer_poll(writer);
	}
	return r;
}

static int run(const struct archive_writer_options *options, uint64_t records)
{
	struct archive_writer *writer;
	struct archive_walk walk = {0};
	struct r3ring_error err = {0};
	int r = archive_writer_open(&writer, options, &err);

	if (r == 0) {
		r = give(writer, records);
		r = archive_writer_close(writer, &err) || r;
	}
	if (r == 0) {
		archive_walk(&walk, options->dir);
		r = walk.problem[0] || archive_walk_records(&walk, "stress/0") != records;
	}
	if (r)
		fprintf(stderr, "%d: %s %s\n", r, err.text, walk.problem);
	archive_walk_free(&walk);
	remove_dir(options->dir);
	return r;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : RECORDS;
	char dir[] = "/tmp/r3ring-threads-XXXXXX";
	struct archive_writer_options options = {
		.dir = mkdtemp(dir),
		.level = 1,
		.sync = ARCHIVE_SYNC_BLOCK,
		.sync_ms = 5,
		.segment_bytes = 1u << 20,
		.workers = 3,
	};
	int r = run(&options, records);

	options.no_uring = true;
	return r || run(&options, records) ? EXIT_FAILURE : EXIT_SUCCESS;
}
