/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded routing through `r3ring produce`, r3ringd, a lossless reader and the load: its
 * counts are those that lie beside the recording.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <r3ring/instance.h>
#include <r3ring/load.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"

#define WAIT_MS 60000

static struct test_daemon daemon_a;
static struct command produce;
static struct recording recording;
static struct r3ring_load *load;
static struct r3ring_load_snapshot *snapshot;
static char instance[32];

static void start(void)
{
	const struct r3ring_load_options options = {.size = sizeof(options),
						    .window_steps = UINT32_MAX};

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	snprintf(instance, sizeof(instance), "load-%d", getpid());
	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(r3ring_load_create(&load, &options, NULL), 0);
	cr_assert_eq(r3ring_load_snapshot_create(&snapshot), 0);
}

static void finish(void)
{
	r3ring_load_snapshot_free(snapshot);
	r3ring_load_destroy(load);
	command_free(&produce);
	recording_free(&recording);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static struct r3ring_instance *open_reader(void)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.instance = instance,
		.mode = R3RING_LOSSLESS,
		.from = R3RING_FROM_OLDEST,
	};
	struct r3ring_instance *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_instance_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

static const struct r3ring_load_info *read_load(void)
{
	int r = r3ring_load_read(load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				 snapshot);

	cr_assert(r == 0 || r == -ENODATA);
	return r3ring_load_snapshot_info(snapshot);
}

static bool all_counted(void)
{
	const struct r3ring_load_info *info = read_load();

	return info->channels && info->accounts.counted >= (uint64_t)recording.rows * info->layers;
}

static void feed_until_all_are_counted(struct r3ring_instance *reader)
{
	size_t capacity = r3ring_instance_max_record(reader);
	void *buffer = aligned_alloc(64, (capacity + 63) / 64 * 64);
	struct r3ring_record record;
	struct r3ring_view view;

	cr_assert_not_null(buffer);
	while (!all_counted()) {
		int r = r3ring_instance_read(reader, &view, buffer, capacity);
		int channel;

		cr_assert(r == 1 || r == 0, "%d: %s", r, r3ring_instance_error(reader));
		if (r == 0) {
			cr_assert_eq(r3ring_instance_wait(reader, WAIT_MS), 1);
			continue;
		}
		channel = r3ring_load_channel(
			load, r3ring_instance_channel(reader, r3ring_instance_current(reader)));
		cr_assert_eq(r3ring_record_decode(&record, view.type, buffer, view.len, NULL), 0);
		cr_assert_eq(r3ring_load_feed(load, (uint32_t)channel, &view, &record), 0);
	}
	free(buffer);
}

Test(trace_load, the_counts_of_the_recording_come_out_as_they_lie_beside_it, .init = start,
     .fini = finish)
{
	const struct r3ring_load_info *info;
	struct r3ring_instance *reader;
	char said[80];

	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250", NULL});
	snprintf(said, sizeof(said), "channel %s/0: generation", instance);
	cr_assert(test_daemon_said(&daemon_a, said), "%s", daemon_a.log);
	reader = open_reader();
	feed_until_all_are_counted(reader);
	info = read_load();
	cr_assert_eq(info->layers, recording.layers);
	cr_assert_eq(info->experts, recording.experts);
	for (uint32_t i = 0; i < info->layers * info->experts; i++)
		cr_assert_float_eq(info->counts[i], (double)recording.counts[i], 1e-9,
				   "layer %u, expert %u", i / info->experts, i % info->experts);
	for (uint32_t i = 0; i < info->layers; i++)
		cr_assert_float_eq(info->rows[i], recording.rows, 1e-9);
	cr_assert_eq(info->accounts.gaps, 0);
	cr_assert_eq(info->accounts.left_out[R3RING_LOAD_RECOMPUTED], 0);
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	r3ring_instance_close(reader);
}
