/* SPDX-License-Identifier: Apache-2.0 */
/* More requests live than keyframes have room for: who saw all of them begin knows them all. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <r3ring/reader.h>

#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ROWS 8u
#define CROWD 6000 /* a keyframe of this ring has room for fewer */

static struct record_stage stage;
static struct engine *const engine = &stage.ranks.engines[0];
static int64_t oldest;

static void begin(const char *id, uint32_t prompt)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = prompt};
	int64_t handle = r3ring_request_begin(engine->producer, &request);

	cr_assert_gt(handle, 0, "%s: %lld", id, (long long)handle);
	if (!oldest)
		oldest = handle;
}

static void begin_crowd(void)
{
	char id[32];

	begin("oldest", ROWS);
	for (int i = 0; i < CROWD; i++) {
		snprintf(id, sizeof(id), "crowd-%d", i);
		begin(id, 1);
	}
}

static void setup(void)
{
	struct r3ring_error err = {0};

	record_stage_start(&stage, ARGS("--ring-size", "2M"));
	cr_assert_eq(engine_open(engine, stage.ranks.daemon.dir, stage.ranks.name, ROWS, &err), 0,
		     "%s", err.text);
	oldest = 0;
}

static void teardown(void)
{
	record_stage_stop(&stage);
}

TestSuite(keyframes_abridged, .init = setup, .fini = teardown, .timeout = 120);

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = stage.ranks.daemon.dir,
		.channel = record_stage_channel(&stage, 0),
		.mode = R3RING_LOSSLESS,
		.from = R3RING_FROM_OLDEST,
	};
	struct r3ring_reader *reader;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

/* Reads up to the first step, and says whose its span is; counts keyframes that are abridged. */
static void read_step(struct r3ring_reader *reader, struct r3ring_requests *requests,
		      unsigned int *abridged, char *owner, size_t size)
{
	_Alignas(64) static uint8_t buffer[1 << 20];
	struct r3ring_record record = {0};
	struct r3ring_view view;

	while (record.type != R3RING_STEP) {
		int rc;

		cr_assert_eq(r3ring_reader_wait(reader, 20000), 1);
		rc = r3ring_reader_read(reader, &view, buffer, sizeof(buffer));
		cr_assert(rc == 0 || rc == 1, "read says %d", rc);
		if (rc == 0)
			continue;
		cr_assert_eq(r3ring_record_decode(&record, view.type, view.data, view.len, NULL),
			     0);
		cr_assert_eq(r3ring_requests_feed(requests, &view, &record), 0);
		*abridged += (view.flags & R3RING_DESC_ABRIDGED) != 0;
	}
	cr_assert_eq(record.u.step.head.spans, 1);
	snprintf(owner, size, "%s",
		 r3ring_requests_id(requests, record.u.step.spans[0].request)
			 ? r3ring_requests_id(requests, record.u.step.spans[0].request)
			 : "");
}

Test(keyframes_abridged, a_reader_that_lost_nothing_knows_the_oldest_request)
{
	struct r3ring_reader *reader = open_reader();
	struct r3ring_requests *requests = r3ring_requests_create();
	unsigned int abridged = 0;
	char owner[32];

	begin_crowd();
	engine_step(engine, oldest, ROWS);
	read_step(reader, requests, &abridged, owner, sizeof(owner));
	cr_expect_gt(abridged, 0);
	cr_expect_str_eq(owner, "oldest");
	cr_expect(test_daemon_said(&stage.ranks.daemon,
				   "live requests are not repeated for late readers"));
	r3ring_requests_destroy(requests);
	r3ring_reader_close(reader);
}

Test(keyframes_abridged, a_recording_that_saw_all_has_the_oldest_request_whole)
{
	struct command tool = {0};
	char out[160];

	record_stage_record(&stage, NULL);
	engine_step(engine, 0, 1);
	cr_assert(record_stage_reads(&stage, 0, 1));
	begin_crowd();
	engine_step(engine, oldest, ROWS);
	cr_assert_eq(r3ring_request_end(engine->producer, oldest, R3RING_END_FINISHED, 0, ROWS + 1),
		     0);
	engine_step(engine, 0, 1);
	cr_assert(record_stage_reads(&stage, 0, 3));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	snprintf(out, sizeof(out), "%s/oldest.jsonl", stage.base);
	cr_expect_eq(command_run(&tool, stage.ranks.daemon.dir,
				 ARGS("export", stage.archive, "--format", "jsonl", "--request",
				      "oldest", "-o", out)),
		     0, "%s", tool.err);
	cr_expect_not_null(strstr(tool.err, "1 requests, 8 rows"), "%s", tool.err);
	cr_expect_null(strstr(tool.err, "began in its middle"), "%s", tool.err);
	command_free(&tool);
}
