/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program outside of the project: makes a ring, writes a record, reads it.
 * Built against the installed headers and library.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/reader.h>
#include <r3ring/record.h>
#include <r3ring/ring.h>

static int fail(const char *what, int code, const struct r3ring_error *err)
{
	fprintf(stderr, "%s: %d %s\n", what, code, err->text);
	return 1;
}

static int write_and_read(struct r3ring_segment *segment, struct r3ring_error *err)
{
	struct r3ring_record_spec spec = {.step = 7, .units = 1, .len = 6, .type = R3RING_LAYER};
	struct r3ring_writer *writer = NULL;
	struct r3ring_cursor *cursor = NULL;
	struct r3ring_view view;
	char text[64];
	int rc;

	rc = r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	if (rc)
		return fail("cursor_open", rc, err);
	rc = r3ring_writer_open(&writer, segment);
	if (!rc)
		rc = r3ring_writer_put(writer, &spec, "routes");
	if (rc)
		return fail("writer", rc, err);
	rc = r3ring_cursor_read(cursor, &view, text, sizeof(text));
	if (rc != 1 || view.step != 7 || view.len != 6 || memcmp(text, "routes", 6))
		return fail("cursor_read", rc, err);
	r3ring_writer_close(writer);
	r3ring_cursor_close(cursor);
	return 0;
}

int main(void)
{
	struct r3ring_error err = {0};
	struct r3ring_segment *segment = NULL;
	struct r3ring_segment_options options = {
		.size = sizeof(options), .label = "stranger/0", .arena_bytes = 65536, .depth = 64};
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "/r3ring-stranger.%" PRIdMAX, (intmax_t)getpid());
	options.name = name;
	rc = r3ring_segment_create(&segment, &options, &err);
	if (rc)
		return fail("segment_create", rc, &err);
	rc = write_and_read(segment, &err);
	r3ring_segment_unlink(segment);
	r3ring_segment_close(segment);
	return rc;
}
