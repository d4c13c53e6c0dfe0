/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of an archive: what `r3ring record` kept of any engine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/assembler.h>

#include "archive/reader.h"
#include "tests/bench/worth/corpus.h"

/* Requests as they are found; their rows lie one request after another in the trace's ids. */
struct finding {
	struct corpus *corpus;
	struct r3ring_assembler *assembler;
	size_t *first; /* [corpus.count] the first row of each */
	size_t rows, room;
	char (*session)[R3RING_TEXT_ID_MAX + 1]; /* [corpus.count] */
};

/* ---- one request ------------------------------------------------------------ */

/* The first request that took part in the same session, itself where it had none. */
static uint32_t find_session(const struct finding *finding, const char *session)
{
	uint32_t first = 0;

	while (first < finding->corpus->count &&
	       (!session[0] || strcmp(finding->session[first], session) != 0))
		first++;
	return first;
}

static bool is_of_model(struct trace *trace, const struct r3ring_assembled_info *info)
{
	if (!trace->layer_count) {
		trace->layer_count = info->layers;
		trace->top_k = info->top_k;
		trace->experts = info->experts;
		snprintf(trace->model, sizeof(trace->model), "%s", info->model);
	}
	return trace->layer_count == info->layers && trace->top_k == info->top_k &&
	       trace->experts == info->experts;
}

static int make_room(struct finding *finding, uint32_t rows)
{
	struct corpus *corpus = finding->corpus;
	size_t row = (size_t)corpus->trace.layer_count * corpus->trace.top_k;
	size_t count = corpus->count + 1u, need = finding->rows + rows;
	void *more;

	more = realloc(corpus->request, count * sizeof(*corpus->request));
	if (!more)
		return -ENOMEM;
	corpus->request = more;
	more = realloc(finding->first, count * sizeof(*finding->first));
	if (!more)
		return -ENOMEM;
	finding->first = more;
	more = realloc(finding->session, count * sizeof(*finding->session));
	if (!more)
		return -ENOMEM;
	finding->session = more;
	if (need <= finding->room)
		return 0;
	more = realloc(corpus->trace.ids, 2 * need * row * sizeof(uint16_t));
	if (!more)
		return -ENOMEM;
	corpus->trace.ids = more;
	finding->room = 2 * need;
	return 0;
}

/* Where its rows begin: the last of its prompt's, as far as they are known. */
static uint32_t first_row(const struct r3ring_assembled *assembled,
			  const struct r3ring_assembled_info *info, uint8_t *valid)
{
	uint32_t first = info->prompt_tokens > PROMPT_ROWS ? info->prompt_tokens - PROMPT_ROWS : 0;

	for (; first < info->tokens; first++) {
		const struct r3ring_assembled_rows rows = {.valid = valid};

		r3ring_assembled_read(assembled, first, 1, 0, info->layers, &rows);
		if (memchr(valid, 1, info->layers))
			break;
	}
	return first;
}

/* The last token was not fed back: it has no row. */
static int add_request(struct finding *finding, const struct r3ring_assembled *assembled,
		       const struct r3ring_assembled_info *info, uint32_t first)
{
	struct corpus *corpus = finding->corpus;
	size_t row = (size_t)info->layers * info->top_k;
	uint32_t count = info->tokens > first + 1 ? info->tokens - 1 - first : 0;
	struct r3ring_assembled_rows rows = {0};
	int r;

	if (count < ROWS_MIN)
		return 0;
	r = make_room(finding, count);
	if (r)
		return r;
	rows.ids = corpus->trace.ids + finding->rows * row;
	r3ring_assembled_read(assembled, first, count, 0, info->layers, &rows);
	snprintf(finding->session[corpus->count], sizeof(*finding->session), "%s", info->session);
	corpus->request[corpus->count] = (struct recorded){
		.rows = count,
		.subject = find_session(finding, info->session),
		.collection = find_session(finding, info->session),
	};
	finding->first[corpus->count++] = finding->rows;
	finding->rows += count;
	return 0;
}

static int take(struct finding *finding)
{
	struct r3ring_assembled *assembled;
	int r = 0;

	while (!r && (assembled = r3ring_assembler_take(finding->assembler))) {
		const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
		uint8_t *valid = calloc(info->layers + 1u, 1);

		if (!valid)
			r = -ENOMEM;
		else if (is_of_model(&finding->corpus->trace, info))
			r = add_request(finding, assembled, info,
					first_row(assembled, info, valid));
		free(valid);
		r3ring_assembled_free(assembled);
	}
	return r;
}

/* ---- the archive ------------------------------------------------------------ */

static int feed(struct finding *finding, const struct archive_item *item)
{
	struct r3ring_record record;
	int channel;

	if (!item->name || (item->kind != ARCHIVE_RECORD && item->kind != ARCHIVE_GAP))
		return 0;
	channel = r3ring_assembler_channel(finding->assembler, item->name);
	if (channel < 0)
		return channel;
	if (item->kind == ARCHIVE_GAP)
		r3ring_assembler_gap(finding->assembler, (uint32_t)channel);
	else if (r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len,
				      NULL) == 0)
		r3ring_assembler_feed(finding->assembler, (uint32_t)channel, &item->view, &record);
	return take(finding);
}

static int feed_all(struct finding *finding, const char *dir, struct r3ring_error *err)
{
	struct archive_reader *reader;
	struct archive_item item;
	int r = archive_reader_open(&reader, dir, err);

	if (r)
		return r;
	while ((r = archive_reader_next(reader, &item, err)) == 1) {
		r = feed(finding, &item);
		if (r)
			break;
	}
	archive_reader_close(reader);
	if (r)
		return r;
	r3ring_assembler_flush(finding->assembler);
	return take(finding);
}

int corpus_read_archive(struct corpus *corpus, const char *dir, struct r3ring_error *err)
{
	struct finding finding = {.corpus = corpus};
	int r = r3ring_assembler_create(&finding.assembler, NULL, err);

	if (r == 0)
		r = feed_all(&finding, dir, err);
	r3ring_assembler_destroy(finding.assembler);
	for (uint32_t i = 0; i < corpus->count; i++)
		corpus->request[i].ids = corpus->trace.ids + finding.first[i] *
								     corpus->trace.layer_count *
								     corpus->trace.top_k;
	free(finding.first);
	free(finding.session);
	return r && err && !err->text[0] ? r3ring_error_set(err, r, "%s: %s", dir, strerror(-r))
					 : r;
}
