/* SPDX-License-Identifier: Apache-2.0 */
/* Archives for tests. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/record.h>

#include "tests/support/record_examples.h"
#include "tests/support/remove_dir.h"
#include "tests/unit/archive_fixture.h"

#define LENGTH 3000u
#define GENERATION 1u

static const char *const names[FIXTURE_CHANNELS] = {"unit/0", "unit/1.draft"};

void archive_fixture_init(struct archive_fixture *fixture)
{
	*fixture = (struct archive_fixture){.length = LENGTH};
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/r3ring-archive-XXXXXX");
	cr_assert_not_null(mkdtemp(fixture->dir));
	fixture->options = (struct archive_writer_options){
		.dir = fixture->dir,
		.level = 3,
		.sync = ARCHIVE_SYNC_NEVER,
		.workers = 2,
	};
}

void archive_fixture_free(struct archive_fixture *fixture)
{
	archive_writer_close(fixture->writer, NULL);
	remove_dir(fixture->dir);
	free(fixture->payload);
}

const char *archive_fixture_segment(const struct archive_fixture *fixture, unsigned int number)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%08u.r3seg", fixture->dir, number);
	return path;
}

/* ---- records ------------------------------------------------------------ */

/* A SCHEMA first, then a BEGIN and an END of request s and s - 100 now and then; the
 * others are no type of r3ring's. Bytes that shrink, and some that do not. */
uint32_t archive_fixture_record(const struct archive_fixture *fixture, unsigned int channel,
				uint64_t seq, uint8_t *payload, uint16_t *type)
{
	uint64_t state = (channel + 1) * 0x9e3779b97f4a7c15ull + seq;
	struct r3ring_record record;
	uint32_t length;
	long bytes;

	*type = seq == 1 ? R3RING_SCHEMA : seq % 50 == 0 ? R3RING_REQUEST : 100;
	if (*type != 100) {
		example_record(&record, *type, EXAMPLE_MIN);
		if (*type == R3RING_REQUEST) {
			bool ends = seq % 100 == 0;

			record.u.request.head = (struct r3ring_request_record){
				.handle = ends ? seq - 50 : seq,
				.event = ends ? R3RING_REQUEST_END : R3RING_REQUEST_BEGIN,
				.reason = ends ? R3RING_END_FINISHED : 0,
				.id_len = 3,
			};
			record.u.request.id = "one";
		}
		bytes = r3ring_record_encode(&record, payload, fixture->length, NULL);
		cr_assert_gt(bytes, 0);
		return (uint32_t)bytes;
	}
	length = (uint32_t)((seq * 7919) % (fixture->length + 1));
	for (uint32_t i = 0; i < length; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		payload[i] = seq % 3 ? (uint8_t)(state >> 61) : (uint8_t)(state >> 56);
	}
	return length;
}

/* ---- writing ------------------------------------------------------------ */

int archive_fixture_open(struct archive_fixture *fixture, struct r3ring_error *err)
{
	const struct archive_resumption *resumption;
	uint8_t uuid[16];
	int r = archive_writer_open(&fixture->writer, &fixture->options, err);

	if (r < 0)
		return r;
	free(fixture->payload);
	fixture->payload = malloc(fixture->length + 64);
	memset(uuid, FIXTURE_UUID + GENERATION, sizeof(uuid));
	resumption = archive_writer_resumption(fixture->writer);
	for (unsigned int i = 0; i < FIXTURE_CHANNELS; i++) {
		fixture->channel[i] = archive_writer_channel(fixture->writer, names[i]);
		cr_assert_geq(fixture->channel[i], 0);
		fixture->next[i] = 0;
		for (uint32_t c = 0; c < resumption->count; c++) {
			if (strcmp(resumption->cursors[c].name, names[i]) == 0)
				fixture->next[i] = resumption->cursors[c].seq + 1;
		}
		if (fixture->next[i])
			continue;
		fixture->next[i] = 1;
		cr_assert_eq(archive_writer_generation(fixture->writer,
						       (uint16_t)fixture->channel[i], GENERATION,
						       uuid),
			     0);
	}
	return 0;
}

int archive_fixture_put(struct archive_fixture *fixture, unsigned int channel)
{
	struct r3ring_view view = {
		.seq = fixture->next[channel],
		.step = fixture->next[channel] / 10,
		.units = 3 * fixture->next[channel],
		.generation = GENERATION,
		.data = fixture->payload,
	};
	int r;

	view.len = archive_fixture_record(fixture, channel, view.seq, fixture->payload, &view.type);
	r = archive_writer_record(fixture->writer, (uint16_t)fixture->channel[channel], &view);
	if (r == 0)
		fixture->next[channel]++;
	return r;
}

void archive_fixture_fill(struct archive_fixture *fixture, unsigned int records)
{
	for (unsigned int i = 0; i < records; i++)
		cr_assert_eq(archive_fixture_put(fixture, i % FIXTURE_CHANNELS), 0);
}

int archive_fixture_close(struct archive_fixture *fixture)
{
	struct archive_writer *writer = fixture->writer;

	fixture->writer = NULL;
	return archive_writer_close(writer, NULL);
}

/* ---- looking ------------------------------------------------------------ */

static void check_record(const struct archive_fixture *fixture, const struct walked_entry *entry)
{
	unsigned int channel = strcmp(entry->channel, names[0]) != 0;
	uint8_t *expected = malloc(fixture->length + 64);
	uint16_t type;
	uint32_t length =
		archive_fixture_record(fixture, channel, entry->head.seq, expected, &type);

	cr_assert_eq(entry->head.type, type);
	cr_assert_eq(entry->head.step, entry->head.seq / 10);
	cr_assert_eq(entry->head.units, 3 * entry->head.seq);
	cr_assert_eq(entry->generation, GENERATION);
	cr_assert_eq(entry->head.bytes, length, "record %lu of %s", entry->head.seq,
		     entry->channel);
	cr_assert(memcmp(entry->payload, expected, length) == 0, "record %lu of %s",
		  entry->head.seq, entry->channel);
	free(expected);
}

void archive_fixture_check(const struct archive_fixture *fixture, struct archive_walk *walk)
{
	archive_walk(walk, fixture->dir);
	cr_assert_str_eq(walk->problem, "");
	for (size_t i = 0; i < walk->entry_count; i++) {
		const struct walked_entry *entry = &walk->entries[i];

		if (entry->head.kind == ARCHIVE_RECORD &&
		    !(entry->head.flags & ARCHIVE_ENTRY_REPEATED))
			check_record(fixture, entry);
	}
}
