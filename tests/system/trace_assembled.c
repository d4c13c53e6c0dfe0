/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded routing through `r3ring produce`, r3ringd, a lossless reader and the
 * assembler: each of its requests comes out as it is in the file.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/assembler.h>
#include <r3ring/reader.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"

#define WAIT_MS 60000

static struct test_daemon daemon_a;
static struct command produce;
static struct recording recording;
static struct r3ring_assembler *assembler;
static char instance[32], channel[40];
static uint32_t requests_right;

static void start(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	snprintf(instance, sizeof(instance), "joined-%d", getpid());
	snprintf(channel, sizeof(channel), "%s/0", instance);
	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(r3ring_assembler_create(&assembler, NULL, NULL), 0);
	cr_assert_eq(r3ring_assembler_channel(assembler, channel), 0);
}

static void finish(void)
{
	r3ring_assembler_destroy(assembler);
	command_free(&produce);
	recording_free(&recording);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
		.mode = R3RING_LOSSLESS,
		.from = R3RING_FROM_OLDEST,
	};
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

/* Rows before the recording's first are the prompt's, which is not in it. */
static void expect_row(const struct r3ring_assembled *got, const struct recording_request *request,
		       uint32_t position, const uint16_t *ids, const uint8_t *causes)
{
	uint32_t row = position - request->prompt_tokens;
	size_t row_ids = (size_t)recording.layers * recording.top_k;

	for (uint32_t layer = 0; layer < recording.layers; layer++) {
		uint8_t cause = causes[(size_t)position * recording.layers + layer];

		if (position < request->prompt_tokens)
			cr_assert_eq(cause, R3RING_MISSING_EXTERNAL);
		else if (row == request->rows)
			cr_assert_eq(cause, R3RING_MISSING_NOT_FED);
		else
			cr_assert(
				cause == 0 &&
					!memcmp(ids + position * row_ids + layer * recording.top_k,
						recording_ids(&recording, request->first_row + row,
							      layer),
						recording.top_k * sizeof(*ids)),
				"%s: position %u, layer %u", r3ring_assembled_get_info(got)->id,
				position, layer);
	}
}

static void expect_request(const struct r3ring_assembled *got)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(got);
	const struct recording_request *request = recording_find(&recording, info->id);
	size_t cells = (size_t)info->tokens * info->layers;
	uint16_t *ids = malloc(cells * info->top_k * sizeof(*ids));
	uint8_t *causes = malloc(cells);
	const struct r3ring_assembled_rows rows = {.ids = ids, .cause = causes};

	cr_assert(request && ids && causes);
	cr_assert_eq(info->layers, recording.layers);
	cr_assert_eq(info->flags, 0);
	cr_assert_eq(info->tokens, request->prompt_tokens + request->rows + 1);
	cr_assert_eq(info->cells_valid, (uint64_t)request->rows * recording.layers);
	cr_assert_eq(r3ring_assembled_read(got, 0, info->tokens, 0, info->layers, &rows), 0);
	for (uint32_t position = 0; position < info->tokens; position++)
		expect_row(got, request, position, ids, causes);
	free(causes);
	free(ids);
	requests_right++;
}

static void take_all(void)
{
	struct r3ring_assembled *got;

	while ((got = r3ring_assembler_take(assembler))) {
		expect_request(got);
		r3ring_assembled_free(got);
	}
}

/* Until all requests were given out. */
static void assemble(struct r3ring_reader *reader)
{
	size_t capacity = r3ring_reader_max_record(reader);
	void *buffer = aligned_alloc(64, (capacity + 63) / 64 * 64);
	struct r3ring_record record;
	struct r3ring_view view;

	cr_assert_not_null(buffer);
	while (requests_right < recording.request_count) {
		int r = r3ring_reader_read(reader, &view, buffer, capacity);

		cr_assert(r == 1 || r == 0, "%d: %s", r, r3ring_reader_error(reader));
		if (r == 0) {
			cr_assert_eq(r3ring_reader_wait(reader, WAIT_MS), 1, "after %u requests",
				     requests_right);
			continue;
		}
		cr_assert_eq(r3ring_record_decode(&record, view.type, buffer, view.len, NULL), 0);
		cr_assert_eq(r3ring_assembler_feed(assembler, 0, &view, &record), 0);
		take_all();
	}
	free(buffer);
}

Test(trace_assembled, each_request_of_the_recording_comes_out_as_it_is_in_the_file, .init = start,
     .fini = finish)
{
	struct r3ring_assembler_stats stats;
	struct r3ring_reader *reader;
	char said[80];

	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250", NULL});
	snprintf(said, sizeof(said), "channel %s: generation", channel);
	cr_assert(test_daemon_said(&daemon_a, said), "%s", daemon_a.log);
	reader = open_reader();
	assemble(reader);
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(requests_right, recording.request_count);
	cr_assert_eq(recording.request_count, 51);
	r3ring_assembler_get_stats(assembler, &stats);
	cr_assert_eq(stats.rows_unattributed, 0);
	cr_assert_eq(stats.requests_live, 0);
	cr_assert_eq(stats.bytes, 0);
	r3ring_reader_close(reader);
}
