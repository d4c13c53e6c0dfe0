/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "tests/bench/worth/corpus.h"

#define COLLECTION_DIRECTORIES 2u

uint32_t draw(uint64_t *state, uint32_t bound)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*state >> 32) * bound >> 32);
}

/* ---- sources: "data/COLLECTION/SUBJECT/..." ------------------------------ */

static const char *source_of(const json_t *header, uint32_t request)
{
	const json_t *entry = json_array_get(json_object_get(header, "requests"), request);
	const char *path = json_string_value(json_object_get(entry, "source_path"));

	return path ? path : "";
}

/* Length of the path up to its file, or up to its @directories-th directory. */
static size_t path_length(const char *path, uint32_t directories)
{
	size_t len = 0;

	for (size_t i = 0; path[i] && directories; i++) {
		if (path[i] != '/')
			continue;
		len = i;
		directories--;
	}
	return len;
}

/* The number of the first request that has so many directories in common with it. */
static uint32_t find_first(const json_t *header, uint32_t request, uint32_t directories)
{
	const char *path = source_of(header, request);
	size_t len = path_length(path, directories);
	uint32_t first = 0;

	while (first < request) {
		const char *other = source_of(header, first);

		if (path_length(other, directories) == len && memcmp(other, path, len) == 0)
			break;
		first++;
	}
	return first;
}

/* ---- reading -------------------------------------------------------------- */

static void take_requests(struct corpus *corpus, const json_t *header)
{
	const struct trace *trace = &corpus->trace;

	for (uint32_t i = 0; i < trace->request_count; i++) {
		const struct workload_request *from = &trace->requests[i];

		if (from->rows < ROWS_MIN)
			continue;
		corpus->request[corpus->count++] = (struct recorded){
			.ids = trace->ids + from->source * trace->layer_count * trace->top_k,
			.rows = from->rows,
			.subject = find_first(header, i, UINT32_MAX),
			.collection = find_first(header, i, COLLECTION_DIRECTORIES),
		};
	}
}

static int read_recording(struct corpus *corpus, const char *path, struct r3ring_error *err)
{
	json_t *header;
	int r = trace_read(&corpus->trace, path, err);

	if (r)
		return r;
	header = json_load_file(path, 0, NULL);
	corpus->request = calloc(corpus->trace.request_count, sizeof(*corpus->request));
	if (header && corpus->request)
		take_requests(corpus, header);
	json_decref(header);
	return 0;
}

static bool is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int corpus_read(struct corpus *corpus, const char *path, struct r3ring_error *err)
{
	int r;

	*corpus = (struct corpus){0};
	r = is_directory(path) ? corpus_read_archive(corpus, path, err)
			       : read_recording(corpus, path, err);
	corpus->cells = corpus->trace.layer_count * corpus->trace.experts;
	if (r == 0 && corpus->count < 4)
		r = r3ring_error_set(err, -EINVAL, "%s: fewer than four requests of %u rows", path,
				     ROWS_MIN);
	if (r == 0 && corpus->trace.experts > EXPERTS_MOST)
		r = r3ring_error_set(err, -EINVAL, "%s: %u experts, more than %u", path,
				     corpus->trace.experts, EXPERTS_MOST);
	if (r)
		corpus_free(corpus);
	return r;
}

void corpus_free(struct corpus *corpus)
{
	free(corpus->request);
	trace_free(&corpus->trace);
}

void corpus_count(const struct corpus *corpus, uint32_t request, uint32_t row, uint32_t end,
		  uint32_t *counts)
{
	const struct trace *trace = &corpus->trace;
	const uint16_t *ids =
		corpus->request[request].ids + (size_t)row * trace->layer_count * trace->top_k;

	for (; row < end; row++) {
		for (uint32_t layer = 0; layer < trace->layer_count; layer++) {
			for (uint32_t k = 0; k < trace->top_k; k++, ids++) {
				if (*ids < trace->experts)
					counts[layer * trace->experts + *ids]++;
			}
		}
	}
}

void corpus_split(const struct corpus *corpus, uint64_t seed, bool *fitted)
{
	uint32_t left = corpus->count / 2;

	for (uint32_t i = 0; i < corpus->count; i++) {
		fitted[i] = draw(&seed, corpus->count - i) < left;
		left -= fitted[i];
	}
}
