/* SPDX-License-Identifier: Apache-2.0 */
/* A ring segment to be spoilt, and its reader. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_daemon/remains.h"
#include "ring/internal.h"
#include "tests/support/record_examples.h"
#include "tests/support/segment_image.h"

#define LINES_AT R3RING_REGION_ALIGN
#define DESCS_AT (2u * R3RING_REGION_ALIGN)
#define ARENA_AT (3u * R3RING_REGION_ALIGN)
#define CALLS (4u * SEGMENT_IMAGE_DEPTH)
#define PAYLOAD_MAX 300u
#define EVERY_KEYFRAME 8u
#define EVERY_SKIP 13u
#define SOME_SEQ 3u

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- making ------------------------------------------------------------ */

static void put_records(struct r3ring_writer *writer, unsigned int records)
{
	uint8_t payload[PAYLOAD_MAX];

	memset(payload, 'r', sizeof(payload));
	for (unsigned int i = 0; i < records; i++) {
		bool keyframe = i % EVERY_KEYFRAME == 0;
		const struct r3ring_record_spec spec = {
			.len = i * 37 % PAYLOAD_MAX,
			.type = (uint16_t)(1 + i % 5),
			.flags = keyframe ? R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY : 0,
			.step = i,
			.units = i,
		};

		if (r3ring_writer_put(writer, &spec, payload))
			die("segment image: putting a record");
		if (keyframe)
			r3ring_writer_set_keyframe(writer, r3ring_writer_next_seq(writer) - 1);
	}
}

/* What is longer than a record here may be is left out. */
static void put_examples(struct r3ring_writer *writer)
{
	for (uint16_t type = R3RING_SCHEMA; type < R3RING_RECORD_TYPES; type++) {
		struct r3ring_record_spec spec = {.type = type, .step = 1, .units = 1};
		struct r3ring_record record;
		struct example_payload payload;

		example_record(&record, type, EXAMPLE_TYPICAL);
		payload = example_payload(&record);
		spec.len = (uint32_t)payload.len;
		if (r3ring_writer_put(writer, &spec, payload.bytes) == -EBUSY)
			die("segment image: putting an example");
		free(payload.bytes);
	}
}

static void take_image(struct segment_image *image, const struct r3ring_segment *segment)
{
	image->header = *(const struct r3ring_segment_header *)(const void *)segment->base;
	image->lines = *segment->lines;
	memcpy(image->descs, segment->descs, sizeof(image->descs));
	memcpy(image->arena, segment->arena, sizeof(image->arena));
}

/* Pairs with image_close(). */
static struct r3ring_writer *image_open(struct r3ring_segment **segment)
{
	struct r3ring_segment_options options = {
		.size = sizeof(options),
		.arena_bytes = SEGMENT_IMAGE_ARENA,
		.depth = SEGMENT_IMAGE_DEPTH,
		.generation = 1,
		.label = "image/0",
	};
	struct r3ring_writer *writer;
	char name[64];

	snprintf(name, sizeof(name), "/r3ring-image.%d", getpid());
	options.name = name;
	if (r3ring_segment_create(segment, &options, NULL))
		die("segment image: making a segment");
	r3ring_segment_unlink(*segment);
	if (r3ring_writer_open(&writer, *segment))
		die("segment image: opening a writer");
	return writer;
}

static void image_close(struct segment_image *image, struct r3ring_segment *segment,
			struct r3ring_writer *writer)
{
	take_image(image, segment);
	r3ring_writer_close(writer);
	r3ring_segment_close(segment);
}

void segment_image_make(struct segment_image *image, unsigned int records)
{
	struct r3ring_segment *segment;
	struct r3ring_writer *writer = image_open(&segment);

	put_records(writer, records);
	image_close(image, segment, writer);
}

void segment_image_make_capture(struct segment_image *image)
{
	struct r3ring_segment *segment;
	struct r3ring_writer *writer = image_open(&segment);

	put_examples(writer);
	image_close(image, segment, writer);
}

void segment_image_seal(struct segment_image *image)
{
	for (unsigned int i = 0; i < SEGMENT_IMAGE_DEPTH; i++)
		image->descs[i].check = desc_checksum(&image->descs[i]);
}

int segment_image_fd(void)
{
	int fd = memfd_create("segment-image", MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0600) || ftruncate(fd, SEGMENT_IMAGE_BYTES))
		die("segment image: memfd");
	return fd;
}

uint8_t *segment_image_map(int fd)
{
	void *memory = mmap(NULL, SEGMENT_IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		die("segment image: mmap");
	return memory;
}

struct r3ring_writer_lines *segment_image_lines(uint8_t *memory)
{
	return (void *)(memory + LINES_AT);
}

struct r3ring_desc *segment_image_descs(uint8_t *memory)
{
	return (void *)(memory + DESCS_AT);
}

void segment_image_put(uint8_t *memory, const struct segment_image *image)
{
	memcpy(memory, &image->header, sizeof(image->header));
	memcpy(memory + LINES_AT, &image->lines, sizeof(image->lines));
	memcpy(memory + DESCS_AT, image->descs, sizeof(image->descs));
	memcpy(memory + ARENA_AT, image->arena, sizeof(image->arena));
}

/* ---- reading ----------------------------------------------------------- */

static bool inside(const struct r3ring_segment *segment, const struct r3ring_view *view)
{
	const uint8_t *data = view->data;

	if (view->flags & R3RING_DESC_INLINE)
		return view->len <= R3RING_INLINE_MAX;
	return data >= segment->arena && view->len <= segment->arena_bytes &&
	       data + view->len <= segment->arena + segment->arena_bytes;
}

/* A look at every byte: one outside of all memory ends the process. */
static unsigned int sum(const struct r3ring_view *view)
{
	const uint8_t *data = view->data;
	unsigned int total = 0;

	for (uint32_t i = 0; i < view->len; i++)
		total += data[i];
	return total;
}

static bool adds_up(const struct r3ring_cursor *cursor)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_get_stats(cursor, &stats);
	return stats.got + stats.lost + stats.skipped == stats.cursor - stats.start;
}

/* By turns in place and as a copy. Returns what the cursor said. */
static int look(const struct r3ring_segment *segment, struct r3ring_cursor *cursor,
		unsigned int call, struct segment_reading *reading)
{
	static uint8_t buffer[SEGMENT_IMAGE_ARENA];
	struct r3ring_view view = {0};
	int rc;

	if (call % 2) {
		rc = r3ring_cursor_read(cursor, &view, buffer, sizeof(buffer));
		if (rc == 1)
			reading->sum += sum(&view);
		return rc;
	}
	rc = r3ring_cursor_next(cursor, &view);
	if (rc != 1)
		return rc;
	reading->wrong += !inside(segment, &view);
	reading->sum += sum(&view);
	return r3ring_cursor_check(cursor) ? -EOVERFLOW : 1;
}

/* Returns whether there may be more: where nothing is, only after as many looks as it takes the
 * cursor to ask for a lie. */
static bool read_one(const struct r3ring_segment *segment, struct r3ring_cursor *cursor,
		     unsigned int call, struct segment_reading *reading)
{
	unsigned int looks = 0;
	int rc;

	do
		rc = look(segment, cursor, call, reading);
	while (rc == 0 && ++looks < RING_EMPTY_LOOKS);
	if (call % EVERY_SKIP == EVERY_SKIP - 1)
		r3ring_cursor_skip(cursor);
	reading->got += rc == 1;
	reading->lost += rc == -EOVERFLOW;
	reading->corrupt += rc == -EBADMSG;
	reading->wrong += !adds_up(cursor);
	return rc != 0 && rc != -EPIPE && rc != -EMSGSIZE;
}

/* Whether the writer's intent says that all was overwritten, and a reader of what is left was
 * told of no loss. */
static bool hides(const struct r3ring_segment *segment, const struct r3ring_cursor *cursor)
{
	const uint64_t tail = r3ring_segment_tail(segment);
	struct r3ring_cursor_stats stats;
	struct r3ring_desc last;

	r3ring_cursor_get_stats(cursor, &stats);
	return tail >= segment->header.first_seq && tail < RING_NUMBER_LIMIT &&
	       desc_copy(segment, tail, &last) == DESC_INTACT &&
	       !desc_payload_kept(segment, desc_end(&last) + 2 * segment->arena_bytes) &&
	       stats.got + stats.lost == 0;
}

static void read_as(const struct r3ring_segment *segment, enum r3ring_cursor_mode mode,
		    enum r3ring_cursor_start from, struct segment_reading *reading)
{
	struct r3ring_cursor *cursor;
	unsigned int call = 0;

	if (r3ring_cursor_open(&cursor, segment, mode, from, SOME_SEQ))
		return;
	reading->wrong += !adds_up(cursor);
	while (call < CALLS && read_one(segment, cursor, call, reading))
		call++;
	reading->endless += call == CALLS;
	reading->untold += mode == R3RING_LOSSY && from == R3RING_FROM_OLDEST &&
			   hides(segment, cursor);
	r3ring_cursor_wait(cursor, 0);
	r3ring_cursor_close(cursor);
}

void segment_image_read(int fd, struct segment_reading *reading)
{
	struct r3ring_segment *segment;
	struct r3ring_error err;

	if (r3ring_segment_open_fd(&segment, fd, &err))
		return;
	reading->opened++;
	for (int mode = R3RING_LOSSY; mode <= R3RING_LOSSLESS; mode++)
		for (int from = R3RING_FROM_OLDEST; from <= R3RING_FROM_KEYFRAME; from++)
			read_as(segment, (enum r3ring_cursor_mode)mode,
				(enum r3ring_cursor_start)from, reading);
	r3ring_segment_oldest(segment);
	r3ring_segment_heartbeat(segment);
	r3ring_segment_close(segment);
}

/* ---- adopting ---------------------------------------------------------- */

/* A reader that comes then must be able to read what was written, in its place. */
static void write_behind(struct r3ring_segment *segment, struct r3ring_writer *writer,
			 struct segment_reading *reading)
{
	const struct r3ring_record_spec spec = {.len = PAYLOAD_MAX, .type = 1, .units = 1};
	uint8_t payload[PAYLOAD_MAX] = {0};

	for (unsigned int i = 0; i < 2 * SEGMENT_IMAGE_DEPTH; i++) {
		uint64_t seq = r3ring_writer_next_seq(writer);
		struct r3ring_desc desc;

		if (seq >= RING_NUMBER_LIMIT)
			return;
		reading->wrong += r3ring_writer_put(writer, &spec, payload) != 0;
		reading->wrong += desc_copy(segment, seq, &desc) != DESC_INTACT;
		reading->wrong += r3ring_segment_tail(segment) != seq;
	}
}

void segment_image_adopt(const char *name, struct segment_reading *reading)
{
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	struct remains remains;
	struct r3ring_error err;

	if (r3ring_segment_adopt(&segment, name, &err))
		return;
	reading->opened++;
	remains_init(&remains);
	if (remains_read(&remains, segment) == 0 && r3ring_writer_open(&writer, segment) == 0) {
		reading->got++;
		write_behind(segment, writer, reading);
		r3ring_writer_close(writer);
	}
	remains_free(&remains);
	r3ring_segment_close(segment);
}
