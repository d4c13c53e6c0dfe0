/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are no files: the bytes of the file, and words where nobody takes them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_sinks, .init = trial_open, .fini = trial_close);

#define CONTENT_BYTES (1u << 20)

struct content {
	const char *path;
	uint8_t *bytes;
	size_t count;
};

static void *read_all(void *arg)
{
	struct content *content = arg;
	FILE *file = fopen(content->path, "rb");

	content->bytes = malloc(CONTENT_BYTES);
	if (file && content->bytes)
		content->count = fread(content->bytes, 1, CONTENT_BYTES, file);
	if (file)
		fclose(file);
	return NULL;
}

static void export_one(const char *format)
{
	trial_begin(format);
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0, "%s", trial.err.text);
	cr_assert_eq(export_finish(trial.exporter, &trial.summary, &trial.err), 0, "%s",
		     trial.err.text);
	export_close(trial.exporter);
	trial.exporter = NULL;
}

/* As it is in a file, which is read and removed. */
static struct content as_file(const char *format)
{
	struct content content = {.path = trial.out};

	export_one(format);
	read_all(&content);
	unlink(trial.out);
	cr_assert_gt(content.count, 0);
	cr_assert_eq(content.count, trial.summary.bytes);
	return content;
}

static void expect_same(const char *format, const struct content *file, const struct content *sink)
{
	cr_assert_eq(sink->count, file->count, "%s: %zu bytes", format, sink->count);
	cr_assert_eq(memcmp(sink->bytes, file->bytes, file->count), 0, "%s", format);
	cr_assert_eq(trial.summary.bytes, file->count);
	free(sink->bytes);
}

static void through_fifo(const char *format, const struct content *file)
{
	struct content sink = {.path = trial.out};
	pthread_t reader;

	cr_assert_eq(mkfifo(trial.out, 0600), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_all, &sink), 0);
	export_one(format);
	pthread_join(reader, NULL);
	unlink(trial.out);
	expect_same(format, file, &sink);
}

static void through_stdout(const char *format, const struct content *file)
{
	struct content sink = {.path = trial.out};
	char old[sizeof(trial.out)];
	int fd = open(trial.out, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	int saved = dup(STDOUT_FILENO);

	cr_assert(fd >= 0 && saved >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	memcpy(old, trial.out, sizeof(old));
	strcpy(trial.out, "-");
	export_one(format);
	memcpy(trial.out, old, sizeof(old));
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	read_all(&sink);
	unlink(trial.out);
	expect_same(format, file, &sink);
}

static const char *const formats[] = {"safetensors", "npy",      "jsonl", "verl", "nemo-rl",
				      "skyrl",       "prime-rl", "slime", "miles"};

static void each_format(void (*through)(const char *format, const struct content *file))
{
	trial.feed.experts = 1000;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct content file = as_file(formats[i]);

		through(formats[i], &file);
		free(file.bytes);
	}
}

Test(export_sinks, a_fifo_gets_what_a_file_would_have, .timeout = 60)
{
	each_format(through_fifo);
}

Test(export_sinks, standard_output_gets_what_a_file_would_have, .timeout = 60)
{
	each_format(through_stdout);
}

/* What is made from front to back needs no room for a copy of it. */
Test(export_sinks, only_what_has_to_be_whole_first_needs_a_temporary_file)
{
	setenv("TMPDIR", "/nonexistent", 1);
	trial.options.out = "-";
	trial_not_opened("safetensors", -ENOENT, "standard output: $TMPDIR, or /var/tmp");
	trial.options.format = "jsonl";
	cr_assert_eq(export_open(&trial.exporter, &trial.options, &trial.err), 0, "%s",
		     trial.err.text);
}

Test(export_sinks, nothing_is_passed_on_of_what_is_not_whole, .timeout = 60)
{
	struct content sink = {.path = trial.out};
	pthread_t reader;
	int writer;

	cr_assert_eq(mkfifo(trial.out, 0600), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_all, &sink), 0);
	writer = open(trial.out, O_WRONLY);
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	cr_assert_eq(trial_take(), -ENODATA);
	export_close(trial.exporter);
	trial.exporter = NULL;
	close(writer);
	pthread_join(reader, NULL);
	cr_assert_eq(sink.count, 0);
	free(sink.bytes);
}

Test(export_sinks, a_reader_that_goes_is_named)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(ends), 0);
	close(ends[0]);
	dup2(ends[1], STDOUT_FILENO);
	strcpy(trial.out, "-");
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0);
	cr_assert_eq(export_finish(trial.exporter, NULL, &trial.err), -EPIPE);
	cr_assert_not_null(strstr(trial.err.text, "standard output: write: Broken pipe"), "%s",
			   trial.err.text);
}
