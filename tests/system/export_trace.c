/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded routing through `r3ring produce`, r3ringd, `r3ring record` and `r3ring export`:
 * each of its requests comes out as it is in the file, read back by two readers that know
 * nothing of what wrote it.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"
#include "tests/support/remove_dir.h"
#include "tests/support/safetensors.h"

#define PYTHON "/usr/bin/python3"

static struct test_daemon daemon_a;
static struct command produce, recorder, tool;
static struct recording recording;
static char instance[32], dir[64], out[80];

static void start(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	snprintf(instance, sizeof(instance), "exported-%d", getpid());
	snprintf(dir, sizeof(dir), "/tmp/r3ring-exported-%d", getpid());
	snprintf(out, sizeof(out), "%s.out", dir);
	test_daemon_start(&daemon_a, NULL);
}

static void finish(void)
{
	command_free(&produce);
	command_free(&recorder);
	command_free(&tool);
	recording_free(&recording);
	remove_dir(dir);
	unlink(out);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static void run(const char *const *args)
{
	command_free(&tool);
	cr_assert_eq(command_run(&tool, daemon_a.dir, args), 0, "%s: %s", args[0], tool.err);
}

/* All of the recording, in an archive. */
static void record(void)
{
	command_start(&recorder, daemon_a.dir,
		      (const char *[]){"record", "--instance", instance, "-o", dir, "--until-idle",
				       "3", NULL});
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250", NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
}

static void export_as(const char *format, const char *missing)
{
	run((const char *[]){"export", dir, "--format", format, "-o", out, "--missing", missing,
			     "--json", NULL});
}

/* ---- an independent reader ---------------------------------------------- */

struct exported {
	struct safetensors file;
	struct safetensors_tensor routes, valid;
	const int64_t *cu_seqlens;
	json_t *ids;
};

static void read_back(struct exported *exported)
{
	safetensors_read(&exported->file, out);
	exported->routes = safetensors_tensor(&exported->file, "routes");
	exported->valid = safetensors_tensor(&exported->file, "valid");
	exported->cu_seqlens = safetensors_tensor(&exported->file, "cu_seqlens").data;
	exported->ids = json_loads(safetensors_metadata(&exported->file, "request_ids"), 0, NULL);
	cr_assert_not_null(exported->ids);
}

/* Rows before the recording's first are the prompt's, which is not in it. */
static void expect_row(const struct exported *exported, const struct recording_request *request,
		       uint64_t row, uint32_t position)
{
	const size_t cells = row * recording.layers;
	const uint16_t *ids = exported->routes.data;
	const uint8_t *valid = exported->valid.data;

	for (uint32_t layer = 0; layer < recording.layers; layer++) {
		const uint16_t *got = ids + (cells + layer) * recording.top_k;
		const bool there = position >= request->prompt_tokens;

		cr_assert_eq(valid[cells + layer], there, "%s: position %u", request->id, position);
		for (uint32_t k = 0; k < recording.top_k; k++)
			cr_assert_eq(got[k],
				     there ? recording_ids(&recording,
							   request->first_row + position -
								   request->prompt_tokens,
							   layer)[k]
					   : 0xFFFF,
				     "%s: position %u, layer %u", request->id, position, layer);
	}
}

static void expect_request(const struct exported *exported, size_t place)
{
	const char *id = json_string_value(json_array_get(exported->ids, place));
	const struct recording_request *request = recording_find(&recording, id);
	const int64_t first = exported->cu_seqlens[place];
	const int64_t rows = exported->cu_seqlens[place + 1] - first;

	cr_assert(request, "%s", id);
	cr_assert_eq(rows, (int64_t)request->prompt_tokens + request->rows);
	for (int64_t row = 0; row < rows; row++)
		expect_row(exported, request, (uint64_t)(first + row), (uint32_t)row);
}

Test(export_trace, each_request_of_the_recording_is_exported_as_it_is_in_the_file, .init = start,
     .fini = finish, .timeout = 300)
{
	struct exported exported;

	record();
	run((const char *[]){"verify", "--reindex", dir, NULL});
	export_as("safetensors", "-1");
	read_back(&exported);
	cr_assert_eq(json_array_size(exported.ids), recording.request_count);
	cr_assert_eq(recording.request_count, 51);
	cr_assert_eq(exported.routes.shape[1], recording.layers);
	cr_assert_eq(exported.routes.shape[2], recording.top_k);
	for (size_t i = 0; i < recording.request_count; i++)
		expect_request(&exported, i);
	json_decref(exported.ids);
	safetensors_free(&exported.file);
	cr_expect_null(strstr(tool.err, "--mtp"), "%s", tool.err);
	run((const char *[]){"export", dir, "--format", "safetensors", "-o", out, "--missing", "-1",
			     "--mtp", NULL});
	cr_expect(strstr(tool.err, "--mtp: the model has no layers of multi-token prediction"),
		  "%s", tool.err);
}

Test(export_trace, what_is_missing_of_the_recording_is_refused_unless_a_fill_is_chosen,
     .init = start, .fini = finish, .timeout = 300)
{
	record();
	command_free(&tool);
	cr_assert_eq(command_run(&tool, daemon_a.dir,
				 (const char *[]){"export", dir, "--format", "safetensors", "-o",
						  out, NULL}),
		     1);
	cr_assert_not_null(strstr(tool.err, "are missing: external"), "%s", tool.err);
	cr_assert_neq(access(out, F_OK), 0);
}

/* ---- numpy -------------------------------------------------------------- */

/* Prints the sum of each request's valid ids, by nothing but numpy and json. */
static const char sums_by_numpy[] =
	"import json, struct, sys\n"
	"import numpy as np\n"
	"raw = open(sys.argv[1], 'rb').read()\n"
	"n = struct.unpack('<Q', raw[:8])[0]\n"
	"head = json.loads(raw[8:8 + n])\n"
	"kinds = {'U16': '<u2', 'I64': '<i8', 'U64': '<u8', 'BOOL': '?'}\n"
	"def tensor(name):\n"
	"    t = head[name]\n"
	"    a, b = t['data_offsets']\n"
	"    return np.frombuffer(raw[8 + n + a:8 + n + b], "
	"kinds[t['dtype']]).reshape(t['shape'])\n"
	"routes, valid, cu = tensor('routes'), tensor('valid'), tensor('cu_seqlens')\n"
	"for i, name in enumerate(json.loads(head['__metadata__']['request_ids'])):\n"
	"    mine = slice(cu[i], cu[i + 1])\n"
	"    print(name, int(routes[mine][valid[mine]].astype(np.int64).sum()))\n";

static uint64_t sum_of(const struct recording_request *request)
{
	uint64_t sum = 0;

	for (uint32_t row = 0; row < request->rows; row++)
		for (uint32_t layer = 0; layer < recording.layers; layer++)
			for (uint32_t k = 0; k < recording.top_k; k++)
				sum += recording_ids(&recording, request->first_row + row,
						     layer)[k];
	return sum;
}

static void expect_sums(FILE *sums)
{
	char id[64];
	unsigned long long sum;
	uint32_t seen = 0;

	while (fscanf(sums, "%63s %llu", id, &sum) == 2) {
		const struct recording_request *request = recording_find(&recording, id);

		cr_assert(request, "%s", id);
		cr_assert_eq(sum, sum_of(request), "%s", id);
		seen++;
	}
	cr_assert_eq(seen, recording.request_count);
}

Test(export_trace, numpy_reads_the_same_from_it, .init = start, .fini = finish, .timeout = 300)
{
	char script[96], line[256];
	FILE *file;

	if (system(PYTHON " -c 'import numpy' 2>/dev/null") != 0)
		cr_skip_test("no numpy for " PYTHON);
	record();
	export_as("safetensors", "-1");
	snprintf(script, sizeof(script), "%s/sums.py", dir);
	file = fopen(script, "w");
	cr_assert_not_null(file);
	fputs(sums_by_numpy, file);
	fclose(file);
	snprintf(line, sizeof(line), PYTHON " %s %s", script, out);
	file = popen(line, "r");
	cr_assert_not_null(file);
	expect_sums(file);
	cr_assert_eq(pclose(file), 0);
}
