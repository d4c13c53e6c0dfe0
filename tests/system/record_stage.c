/* SPDX-License-Identifier: Apache-2.0 */
/* Recording an instance. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/channel_status.h"
#include "tests/support/remove_dir.h"
#include "tests/system/record_stage.h"

#define ARGS_MAX 24
#define DEADLINE_MS 20000
#define LOOK_MS 5

void record_stage_start(struct record_stage *stage, const char *const *daemon_args)
{
	*stage = (struct record_stage){0};
	ranks_start(&stage->ranks, daemon_args);
	snprintf(stage->base, sizeof(stage->base), "/tmp/r3ring-record-XXXXXX");
	cr_assert_not_null(mkdtemp(stage->base));
	snprintf(stage->archive, sizeof(stage->archive), "%s/archive", stage->base);
}

void record_stage_stop(struct record_stage *stage)
{
	command_free(&stage->tool);
	archive_walk_free(&stage->walk);
	ranks_stop(&stage->ranks);
	remove_dir(stage->archive);
	remove_dir(stage->base);
}

void record_stage_remove(const struct record_stage *stage)
{
	remove_dir(stage->archive);
}

void record_stage_record_in(struct record_stage *stage, const struct container *container,
			    const char *archive, const char *const *args)
{
	const char *all[ARGS_MAX] = {"record", "--instance", stage->ranks.name, "-o", archive};
	size_t count = 5;

	while (args && *args && count < ARGS_MAX - 1)
		all[count++] = *args++;
	command_free(&stage->tool);
	command_start_in(&stage->tool, container, "r3ring", stage->ranks.daemon.dir, all);
}

void record_stage_record(struct record_stage *stage, const char *const *args)
{
	record_stage_record_in(stage, NULL, stage->archive, args);
}

int record_stage_run(struct record_stage *stage, const char *const *args)
{
	record_stage_record(stage, args);
	return command_wait(&stage->tool);
}

const char *record_stage_channel(const struct record_stage *stage, uint32_t rank)
{
	char suffix[8];

	snprintf(suffix, sizeof(suffix), "%u", rank);
	return ranks_channel(&stage->ranks, suffix);
}

static bool has_steps(const json_t *channel, long steps)
{
	return json_integer_value(json_object_get(channel, "steps")) >= steps;
}

void record_stage_run_told(struct record_stage *stage, uint32_t rank, uint32_t steps, long told)
{
	ranks_run(&stage->ranks, rank, steps);
	cr_assert(status_becomes(stage->ranks.daemon.dir, record_stage_channel(stage, rank),
				 has_steps, told));
}

/* Steps of a channel's present generation that it told the end of. */
static json_int_t steps_ended(const json_t *channel)
{
	json_int_t steps = json_integer_value(json_object_get(channel, "steps_complete")) +
			   json_integer_value(json_object_get(channel, "steps_partial"));
	const char *cause;
	json_t *lost;

	json_object_foreach (json_object_get(channel, "lost"), cause, lost)
		steps += json_integer_value(json_object_get(lost, "steps"));
	return steps;
}

static bool are_read(const json_t *channel, long steps)
{
	const json_t *reader = json_array_get(json_object_get(channel, "readers"), 0);

	return steps_ended(channel) >= steps && reader &&
	       json_integer_value(json_object_get(reader, "lag_records")) == 0;
}

bool record_stage_reads(const struct record_stage *stage, uint32_t rank, uint64_t steps)
{
	char name[80];

	snprintf(name, sizeof(name), "%s/%u", stage->ranks.name, rank);
	return status_becomes(stage->ranks.daemon.dir, name, are_read, (long)steps);
}

static uint64_t bytes_in(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	struct stat status;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &status, 0) == 0 && S_ISREG(status.st_mode))
			bytes += (uint64_t)status.st_size;
	}
	if (dir)
		closedir(dir);
	return bytes;
}

uint64_t record_stage_bytes(const struct record_stage *stage)
{
	return bytes_in(stage->archive);
}

bool record_stage_has_bytes(const struct record_stage *stage, uint64_t bytes)
{
	for (int ms = 0; ms < DEADLINE_MS; ms += LOOK_MS) {
		if (bytes_in(stage->archive) >= bytes)
			return true;
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

static void check_ids(const struct walked_entry *entry)
{
	struct r3ring_layer_record head;
	const uint16_t *ids = (const uint16_t *)(const void *)(entry->payload + sizeof(head));

	memcpy(&head, entry->payload, sizeof(head));
	cr_assert_eq(entry->head.bytes, sizeof(head) + 2 * head.rows * head.top_k);
	for (uint32_t i = 0; i < head.rows * head.top_k; i++)
		cr_assert_eq(ids[i],
			     engine_id(head.step, head.layer_index, head.row + i / head.top_k,
				       i % head.top_k),
			     "step %lu of %s", head.step, entry->channel);
}

void record_stage_check_at(struct record_stage *stage, const char *archive)
{
	archive_walk_free(&stage->walk);
	archive_walk(&stage->walk, archive);
	cr_assert_str_eq(stage->walk.problem, "");
	for (size_t i = 0; i < stage->walk.entry_count; i++) {
		const struct walked_entry *entry = &stage->walk.entries[i];

		if (entry->head.kind == ARCHIVE_RECORD && entry->head.type == R3RING_LAYER)
			check_ids(entry);
	}
}

void record_stage_check(struct record_stage *stage)
{
	record_stage_check_at(stage, stage->archive);
}

/* How many steps an entry tells the end of, whatever that was. */
static uint64_t steps_told(const struct walked_entry *entry)
{
	struct r3ring_lost_record lost;

	if (entry->head.kind != ARCHIVE_RECORD || entry->head.flags & ARCHIVE_ENTRY_REPEATED)
		return 0;
	if (entry->head.type == R3RING_STEP_END)
		return 1;
	if (entry->head.type != R3RING_LOST)
		return 0;
	memcpy(&lost, entry->payload, sizeof(lost));
	return lost.steps;
}

uint64_t record_stage_steps(const struct record_stage *stage, uint32_t rank)
{
	char channel[80];
	uint64_t steps = 0;

	snprintf(channel, sizeof(channel), "%s/%u", stage->ranks.name, rank);
	for (size_t i = 0; i < stage->walk.entry_count; i++) {
		const struct walked_entry *entry = &stage->walk.entries[i];

		if (entry->channel && strcmp(entry->channel, channel) == 0)
			steps += steps_told(entry);
	}
	return steps;
}

void record_stage_expect_steps(struct record_stage *stage, uint64_t first, uint64_t second,
			       uint64_t third)
{
	record_stage_check(stage);
	cr_expect_eq(archive_walk_kind(&stage->walk, ARCHIVE_GAP), 0);
	cr_expect_eq(record_stage_steps(stage, 0), first, "%lu and not %lu: %s",
		     record_stage_steps(stage, 0), first, stage->tool.err);
	cr_expect_eq(record_stage_steps(stage, 1), second);
	cr_expect_eq(record_stage_steps(stage, 2), third);
}
