/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/remove_dir.h"
#include "tests/unit/export_fixture.h"

struct trial trial;

/* ---- the directory ------------------------------------------------------ */

void trial_open(void)
{
	trial = (struct trial){.now_ns = 1000};
	snprintf(trial.dir, sizeof(trial.dir), "/tmp/r3ring-export-%d-XXXXXX", getpid());
	cr_assert_not_null(mkdtemp(trial.dir));
	snprintf(trial.out, sizeof(trial.out), "%s/out", trial.dir);
	trial.feed = (struct feed){.generation = 1};
}

unsigned int trial_files(void)
{
	DIR *dir = opendir(trial.dir);
	struct dirent *entry;
	unsigned int files = 0;

	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			files++;
	}
	if (dir)
		closedir(dir);
	return files;
}

void trial_close(void)
{
	export_close(trial.exporter);
	safetensors_free(&trial.file);
	remove_dir(trial.dir);
}

/* ---- exporting ---------------------------------------------------------- */

void trial_begin(const char *format)
{
	int channel;

	trial.options.format = format;
	trial.options.out = trial.out;
	cr_assert_eq(export_open(&trial.exporter, &trial.options, &trial.err), 0, "%s",
		     trial.err.text);
	trial.feed.assembler = export_assembler(trial.exporter);
	trial.feed.seq = 0;
	channel = r3ring_assembler_channel(trial.feed.assembler, "test/0");
	cr_assert_eq(channel, 0);
	feed_schema(&trial.feed);
}

struct r3ring_span trial_span(uint64_t request, uint32_t position, uint32_t rows)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32};
}

static void ask(uint64_t handle, const char *id, uint64_t step, bool gap)
{
	const struct r3ring_span prompt = trial_span(handle, 0, 3);
	const struct r3ring_span decode = trial_span(handle, 3, 1);

	feed_begin(&trial.feed, handle, id, 3, 0);
	feed_whole(&trial.feed, step, 3, &prompt, 1);
	trial.feed.flags = gap ? R3RING_STEP_DROPPED : 0;
	if (gap) {
		feed_step(&trial.feed, step + 1, 1, &decode, 1, NULL, 0);
		feed_lost(&trial.feed, step + 1, step + 1, R3RING_CAUSE_RING_FULL, 0);
	} else {
		feed_whole(&trial.feed, step + 1, 1, &decode, 1);
	}
	trial.feed.flags = 0;
	feed_end(&trial.feed, handle, R3RING_END_FINISHED, 0, 5);
}

void trial_request(uint64_t handle, const char *id, uint64_t step)
{
	ask(handle, id, step, false);
}

void trial_gapped_request(uint64_t handle, const char *id, uint64_t step)
{
	ask(handle, id, step, true);
}

int trial_take(void)
{
	return export_take(trial.exporter, trial.now_ns, &trial.err);
}

void trial_finish(void)
{
	cr_assert_eq(trial_take(), 0, "%s", trial.err.text);
	cr_assert_eq(export_finish(trial.exporter, &trial.summary, &trial.err), 0, "%s",
		     trial.err.text);
	export_close(trial.exporter);
	trial.exporter = NULL;
	cr_assert_eq(trial_files(), 1);
}

static void expect_refusal(int rc, int code, const char *why)
{
	cr_assert_eq(rc, code, "%d: %s", rc, trial.err.text);
	cr_assert_not_null(strstr(trial.err.text, why), "'%s' is not in: %s", why, trial.err.text);
	cr_assert_eq(trial_files(), 0);
}

void trial_refused(int code, const char *why)
{
	int rc = trial_take();

	if (!rc)
		rc = export_finish(trial.exporter, &trial.summary, &trial.err);
	export_close(trial.exporter);
	trial.exporter = NULL;
	expect_refusal(rc, code, why);
}

void trial_not_opened(const char *format, int code, const char *why)
{
	trial.options.format = format;
	if (!trial.options.out)
		trial.options.out = trial.out;
	expect_refusal(export_open(&trial.exporter, &trial.options, &trial.err), code, why);
}

/* ---- what came out ------------------------------------------------------ */

void trial_read(void)
{
	safetensors_read(&trial.file, trial.out);
}

static int64_t number_at(const struct safetensors_tensor *tensor, size_t place)
{
	if (!strcmp(tensor->dtype, "U8"))
		return ((const uint8_t *)tensor->data)[place];
	if (!strcmp(tensor->dtype, "I8"))
		return ((const int8_t *)tensor->data)[place];
	if (!strcmp(tensor->dtype, "U16"))
		return ((const uint16_t *)tensor->data)[place];
	if (!strcmp(tensor->dtype, "I16"))
		return ((const int16_t *)tensor->data)[place];
	if (!strcmp(tensor->dtype, "I32"))
		return ((const int32_t *)tensor->data)[place];
	cr_assert_str_eq(tensor->dtype, "I64");
	return ((const int64_t *)tensor->data)[place];
}

int64_t trial_id(const char *name, uint64_t row, uint32_t layer, uint32_t k)
{
	const struct safetensors_tensor tensor = safetensors_tensor(&trial.file, name);

	cr_assert_eq(tensor.rank, 3);
	cr_assert(row < tensor.shape[0] && layer < tensor.shape[1] && k < tensor.shape[2]);
	return number_at(&tensor, (row * tensor.shape[1] + layer) * tensor.shape[2] + k);
}

bool trial_is(const char *name, uint64_t row, uint32_t layer, uint64_t step, uint32_t from_row,
	      uint32_t from_layer)
{
	const uint32_t experts = trial.feed.experts ? trial.feed.experts : FEED_EXPERTS;

	for (uint32_t k = 0; k < FEED_TOP_K; k++)
		if (trial_id(name, row, layer, k) !=
		    feed_id(trial.feed.salt, step, from_row, from_layer, k) % experts)
			return false;
	return true;
}
