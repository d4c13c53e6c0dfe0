/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of rows come out row by row as they were put. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/export/runs.h"
#include "tests/unit/export_fixture.h"

TestSuite(export_runs, .init = trial_open, .fini = trial_close);

static struct export_runs runs;

static uint8_t *expanded(size_t bytes)
{
	struct export_file file;
	uint8_t *content = malloc(bytes + 1);
	int fd;

	cr_assert_eq(export_runs_bytes(&runs), bytes);
	cr_assert_eq(export_file_create(&file, trial.out, NULL), 0);
	cr_assert_eq(export_file_append(&file, "head", 4, NULL), 0);
	cr_assert_eq(export_runs_expand(&runs, &file, NULL), 0);
	cr_assert_eq(export_file_publish(&file, NULL), 0);
	export_file_close(&file);
	fd = open(trial.out, O_RDONLY);
	cr_assert_eq(lseek(fd, 0, SEEK_END), (off_t)bytes + 4);
	cr_assert_eq(pread(fd, content, bytes, 4), (ssize_t)bytes);
	close(fd);
	export_runs_close(&runs);
	return content;
}

static void begin(size_t row_bytes, bool rising)
{
	cr_assert_eq(export_runs_create(&runs, trial.out, NULL), 0);
	cr_assert_eq(export_runs_begin(&runs, row_bytes, rising), 0);
}

Test(export_runs, rows_that_are_alike_and_rows_that_are_not_come_out_in_their_order)
{
	const uint32_t layers = 5;
	uint8_t *put = malloc(70000 * layers), *content, *row = put;
	unsigned int seed = 3;

	begin(layers, false);
	/* Some long, most short. */
	for (uint32_t rows = 0; rows < 60000;) {
		const uint32_t run = rand_r(&seed) % 50 ? 1 + (uint32_t)rand_r(&seed) % 3
							: (uint32_t)rand_r(&seed) % 9000;
		uint8_t mask[5];

		for (uint32_t i = 0; i < layers; i++)
			mask[i] = (uint8_t)(rand_r(&seed) & 1);
		if (run)
			cr_assert_eq(export_runs_put(&runs, mask, run, NULL), 0);
		for (uint32_t i = 0; i < run && rows < 70000; i++, rows++, row += layers)
			memcpy(row, mask, layers);
	}
	content = expanded((size_t)(row - put));
	cr_assert_eq(memcmp(content, put, (size_t)(row - put)), 0);
	free(content);
	free(put);
}

Test(export_runs, rising_numbers_go_on_over_puts_and_begin_anew)
{
	const uint64_t firsts[] = {0, 10, 4000000000u, 7}, counts[] = {10, 5000, 3, 1};
	uint64_t *content, at = 0;

	begin(sizeof(uint64_t), true);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(export_runs_put(&runs, &firsts[i], counts[i], NULL), 0);
	content = (uint64_t *)(void *)expanded(5014 * sizeof(uint64_t));
	for (int i = 0; i < 4; i++)
		for (uint64_t j = 0; j < counts[i]; j++)
			cr_assert_eq(content[at++], firsts[i] + j);
	free(content);
}

Test(export_runs, no_rows_are_no_bytes)
{
	begin(3, false);
	free(expanded(0));
}
