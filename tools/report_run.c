/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring report: from the archive to files. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/export/file.h"
#include "archive/export/own.h"
#include "report/figures.h"
#include "report/page.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/plain_text.h"
#include "tools/progress.h"
#include "tools/report.h"

/* ---- outputs ----------------------------------------------------------------- */

/* A file that is on its way; path NULL: none is asked for. */
struct output_file {
	const char *path;
	struct export_file file;
};

static int begin(struct output_file *output, const char *dir, struct r3ring_error *err)
{
	int r;

	if (!output->path)
		return 0;
	r = export_refuse_own(dir, output->path, err);
	return r < 0 ? r : export_file_create(&output->file, output->path, err);
}

static int end(struct output_file *output, const char *data, size_t bytes, struct r3ring_error *err)
{
	int r = export_file_append(&output->file, data, bytes, err);

	return r < 0 ? r : export_file_publish(&output->file, err);
}

/* ---- contents ---------------------------------------------------------------------- */

struct making {
	const struct report_line *line;
	struct report *report;
	struct r3ring_error *err;
	char title[200];
};

static int make_page(FILE *out, const struct making *making)
{
	const struct page_source source = {
		.archive = making->line->dir,
		.title = making->title,
		.options = &making->line->options,
	};

	return page_write(out, making->report, &source, making->err);
}

static int make_png(FILE *out, const struct making *making)
{
	struct picture picture;
	int r = figures_draw_load(making->report, making->title, &picture);

	if (r < 0)
		return r;
	r = picture_write_png(&picture, out, making->err);
	picture_free(&picture);
	return r;
}

/* All of it is made before any of it is written. */
static int put(struct output_file *output, int (*make)(FILE *out, const struct making *making),
	       const struct making *making)
{
	char *data = NULL;
	size_t bytes = 0;
	FILE *stream;
	int r;

	if (!output->path)
		return 0;
	stream = open_memstream(&data, &bytes);
	r = stream ? make(stream, making) : -ENOMEM;
	if (stream && fclose(stream) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		r = end(output, data, bytes, making->err);
	free(data);
	return r;
}

static void choose_title(struct making *making)
{
	if (making->line->title)
		snprintf(making->title, sizeof(making->title), "%s", making->line->title);
	else
		snprintf(making->title, sizeof(making->title), "Expert load of %s",
			 making->report->model);
}

/* As the captured map has it, where nobody says otherwise. */
static int place(struct making *making)
{
	struct r3ring_eplb_options options = making->line->place;
	const struct r3ring_eplb_map *map = making->report->map;

	if (!options.gpus && map) {
		options.gpus = map->gpus;
		options.physical = map->physical;
	}
	return options.gpus ? report_place(making->report, &options, making->err) : 0;
}

/* ---- running ------------------------------------------------------------------------- */

static int make_all(const struct report_line *line, struct output_file *page,
		    struct output_file *png, struct making *making)
{
	bool shown = false, watched = line->progress || isatty(STDERR_FILENO);
	int r = begin(page, line->dir, making->err);

	if (r == 0)
		r = begin(png, line->dir, making->err);
	if (r == 0)
		r = report_read(making->report, line->dir, &line->options,
				watched ? progress_show : NULL, &shown, making->err);
	progress_hide(shown);
	if (r < 0)
		return r;
	choose_title(making);
	r = place(making);
	if (r == 0)
		r = put(page, make_page, making);
	return r < 0 ? r : put(png, make_png, making);
}

static int exit_code(const struct report_line *line, const struct report *report, int r,
		     const struct r3ring_error *err)
{
	if (r < 0) {
		plain_text_error("r3ring report", r, err);
		return r == -EINVAL ? TOOL_USAGE : TOOL_FAILED;
	}
	if (report->coverage.evicted)
		fprintf(stderr,
			"r3ring report: %" PRIu64
			" requests did not fit into the memory for requests at work; what they ran "
			"since they were given up is not in the report. Raise --max-memory\n",
			report->coverage.evicted);
	if (!report->problems)
		return report->coverage.evicted ? TOOL_FAILED : TOOL_DONE;
	fprintf(stderr,
		"r3ring report: the archive is damaged in %" PRIu64
		" places; the report is of what could be read, 'r3ring verify %s' says where\n",
		report->problems, line->dir);
	return TOOL_FAILED;
}

int report_run_line(const struct report_line *line)
{
	struct output_file page = {line->page, EXPORT_FILE_NONE};
	struct output_file png = {line->png, EXPORT_FILE_NONE};
	struct report report = {0};
	struct r3ring_error err = {0};
	struct making making = {.line = line, .report = &report, .err = &err};
	int r, code;

	signal(SIGPIPE, SIG_IGN); /* a reader of the output that goes is an error to be told */
	r = make_all(line, &page, &png, &making);
	code = exit_code(line, &report, r, &err);
	export_file_close(&page.file);
	export_file_close(&png.file);
	report_free(&report);
	return code;
}
