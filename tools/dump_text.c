/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring dump: records as text for people, one line a record; the ids of a
 * LAYER record follow on a line for each row.
 */
#include <inttypes.h>
#include <string.h>

#include "tools/dump.h"
#include "tools/plain_text.h"
#include "tools/words.h"

static void print_text(FILE *out, const char *label, const char *text, size_t len)
{
	if (len)
		fputs(label, out);
	plain_text_print(out, text, len);
}

static void print_schema(FILE *out, const struct dump_item *item)
{
	const struct r3ring_schema_record *schema = &item->record->u.schema.head;

	print_text(out, "", schema->model, strnlen(schema->model, sizeof(schema->model)));
	fprintf(out,
		", generation %" PRIu64
		", %u layers, %u experts, top-%u, steps up to %u rows, weights %" PRIu64,
		schema->generation, schema->layers, schema->experts, schema->top_k,
		schema->max_rows, schema->weight_version);
}

static void print_request(FILE *out, const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_request_record *head = &record->u.request.head;
	size_t id_len;
	const char *id = dump_request_id(item, &id_len);

	fprintf(out, "%s ", word_request_event(head->event));
	print_text(out, "", id, id_len);
	fprintf(out, " (handle %" PRIu64 ", attempt %u", head->handle, head->attempt);
	if (head->event == R3RING_REQUEST_BEGIN && head->since_first)
		fprintf(out, " of what handle %" PRIu64 " began", r3ring_request_first(head));
	if (head->event == R3RING_REQUEST_BEGIN)
		fprintf(out, ", prompt %u tokens", head->prompt_tokens);
	else
		fprintf(out, ", %s", word_end_reason(head->reason));
	if (head->event == R3RING_REQUEST_END && head->accepted_tokens != R3RING_UNKNOWN_U32)
		fprintf(out, ", accepted %u tokens", head->accepted_tokens);
	print_text(out, ", session ", record->u.request.session, head->session_len);
	print_text(out, ", turn ", record->u.request.turn, head->turn_len);
	print_text(out, ", sample ", record->u.request.sample, head->sample_len);
	fputc(')', out);
}

static void print_span(FILE *out, const struct r3ring_span *span,
		       const struct r3ring_requests *requests)
{
	const char *id = requests ? r3ring_requests_id(requests, span->request) : NULL;
	char word[WORD_MAX];

	fprintf(out, "\n%22s%s ", "", word_lower(word, r3ring_span_kind_name(span->kind)));
	if (id)
		print_text(out, "", id, strlen(id));
	else
		fprintf(out, "(not attributed: handle %" PRIu64 ")", span->request);
	fprintf(out, " positions %u to %" PRIu64, span->position,
		(uint64_t)span->position + span->rows);
	if (span->kind == R3RING_SPAN_COMPUTED)
		fprintf(out, ", rows %u to %" PRIu64, span->row, (uint64_t)span->row + span->rows);
	if (span->attempt)
		fprintf(out, ", attempt %u", span->attempt);
	if (span->flags & R3RING_SPAN_DRAFT)
		fputs(", draft", out);
}

static void print_step(FILE *out, const struct dump_item *item)
{
	const struct r3ring_step_record *step = &item->record->u.step.head;
	uint32_t flags = step->flags;
	const char *name;

	fprintf(out, "%u rows, here %u to %u", step->total_rows, step->row_begin, step->row_end);
	if (step->valid_end < step->row_end)
		fprintf(out, " (padding from %u)", step->valid_end);
	for (; (name = word_step_flag(flags)); flags &= flags - 1)
		fprintf(out, ", %s", name);
	for (uint32_t i = 0; i < step->spans; i++)
		print_span(out, &item->record->u.step.spans[i], item->requests);
}

static void print_spans(FILE *out, const struct dump_item *item)
{
	const struct r3ring_spans_record *head = &item->record->u.spans.head;

	fprintf(out, "%u spans that %s", head->spans,
		head->flags & R3RING_SPANS_REPLACE ? "replace" : "follow");
	for (uint32_t i = 0; i < head->spans; i++)
		print_span(out, &item->record->u.spans.spans[i], item->requests);
}

static void print_rows(FILE *out, const struct dump_item *item)
{
	const struct r3ring_rows_record *head = &item->record->u.rows.head;

	fprintf(out, "rows %u to %" PRIu64 "%s%s", head->row, (uint64_t)head->row + head->rows,
		head->content & R3RING_ROWS_POSITIONS ? ", positions" : "",
		head->content & R3RING_ROWS_TOKEN_IDS ? ", token ids" : "");
}

static void print_ids(FILE *out, const uint16_t *ids, uint32_t top_k)
{
	for (uint32_t i = 0; i < top_k; i++) {
		if (ids[i] == R3RING_MISSING)
			fputs("     -", out);
		else
			fprintf(out, " %5u", ids[i]);
	}
}

static void print_layer(FILE *out, const struct dump_item *item)
{
	const struct r3ring_layer_record *head = &item->record->u.layer.head;
	char word[WORD_MAX];

	fprintf(out, "layer %d %s, rows %u to %" PRIu64 " of %u", head->layer_id,
		word_lower(word, r3ring_layer_kind_name(head->kind)), head->row,
		(uint64_t)head->row + head->rows, head->total_rows);
	if (head->missing || head->out_of_range)
		fprintf(out, ", missing %u, out of range %u", head->missing, head->out_of_range);
	for (uint32_t row = 0; row < head->valid_rows; row++) {
		fprintf(out, "\n%22srow %6" PRIu64, "", (uint64_t)head->row + row);
		print_ids(out, item->record->u.layer.ids + (size_t)row * head->top_k, head->top_k);
	}
}

static void print_step_end(FILE *out, const struct dump_item *item)
{
	const struct r3ring_step_end_record *head = &item->record->u.step_end.head;

	fputs(word_step_status(head->status), out);
	for (uint32_t i = 0; i < head->missing; i++) {
		const struct r3ring_missing_layer *missing = &item->record->u.step_end.missing[i];

		fprintf(out, "\n%22slayer %d missing: %s, %u of %u rows", "", missing->layer_id,
			r3ring_cause_name(missing->cause), missing->captured, missing->expected);
	}
}

static void print_lost(FILE *out, const struct dump_item *item)
{
	const struct r3ring_lost_record *lost = &item->record->u.lost;

	fprintf(out, "%s: %" PRIu64 " steps, %" PRIu64 " rows", r3ring_cause_name(lost->cause),
		lost->steps, lost->rows);
	if (lost->from_step)
		fprintf(out, ", steps %" PRIu64 " to %" PRIu64, lost->from_step, lost->to_step);
	else if (lost->cause == R3RING_CAUSE_DAEMON_RESTART && lost->spans_unknown)
		fputs(": its engine did not come back, and what it ran meanwhile is not known",
		      out);
}

static void print_eplb(FILE *out, const struct dump_item *item)
{
	const struct r3ring_eplb_record *head = &item->record->u.eplb.head;

	fprintf(out,
		"epoch %" PRIu64 " from step %" PRIu64
		", %u layers from index %u, %u experts on %u replicas, %u GPUs",
		head->epoch, head->first_step, head->layers, head->first_layer, head->experts,
		head->physical, head->gpus);
}

static void print_key_copy(FILE *out, const struct dump_item *item)
{
	const struct r3ring_key_copy_record *head = &item->record->u.key_copy.head;

	fprintf(out, "%u %s keys copied", head->pairs, word_key_kind(head->key_kind));
}

static void print_keyframe(FILE *out, const struct dump_item *item)
{
	const struct r3ring_keyframe_record *head = &item->record->u.keyframe;

	fprintf(out,
		"%u records follow, %u live requests; so far %" PRIu64 " steps, %" PRIu64
		" rows, %" PRIu64 " layer records",
		head->records, head->live_requests, head->totals.steps, head->totals.rows,
		head->totals.layer_records);
	if (item->view->flags & R3RING_DESC_ABRIDGED)
		fputs("; other live requests are left out", out);
}

static void print_closed(FILE *out, const struct dump_item *item)
{
	const struct r3ring_closed_record *closed = &item->record->u.closed;

	fputs(word_closed_reason(closed->reason), out);
	if (closed->reason == R3RING_CLOSED_CRASHED)
		fputs(": what its engine ran after its daemon died is not known here", out);
	else if (closed->engine_lives)
		fputs(": its engine lives, and what it runs from here on is not known here", out);
	if (closed->next_generation)
		fprintf(out, ", generation %" PRIu64 " follows", closed->next_generation);
}

typedef void (*print_fn)(FILE *out, const struct dump_item *item);

static const print_fn printers[R3RING_RECORD_TYPES] = {
	[R3RING_SCHEMA] = print_schema,     [R3RING_REQUEST] = print_request,
	[R3RING_STEP] = print_step,         [R3RING_SPANS] = print_spans,
	[R3RING_ROWS] = print_rows,         [R3RING_LAYER] = print_layer,
	[R3RING_STEP_END] = print_step_end, [R3RING_LOST] = print_lost,
	[R3RING_EPLB] = print_eplb,         [R3RING_KEY_COPY] = print_key_copy,
	[R3RING_KEYFRAME] = print_keyframe, [R3RING_CLOSED] = print_closed,
};

/* Of the channel's name the rank; the instance is the same in all lines. */
static void print_rank(FILE *out, const char *channel)
{
	const char *slash = channel ? strrchr(channel, '/') : NULL;

	if (slash)
		fprintf(out, "%-8s", slash + 1);
}

int dump_text_record(void *out, const struct dump_item *item)
{
	const struct r3ring_view *view = item->view;
	char word[WORD_MAX];

	print_rank(out, item->channel);
	fprintf(out, "%10" PRIu64 "  %-9s ", view->seq,
		word_lower(word, r3ring_record_type_name(view->type)));
	if (view->step)
		fprintf(out, "step %" PRIu64 ": ", view->step);
	printers[item->record->type](out, item);
	if (view->flags & R3RING_DESC_REPEATED)
		fputs(" (repeated)", out);
	fputc('\n', out);
	return 0;
}

int dump_text_gap(void *out, const struct dump_gap *gap)
{
	print_rank(out, gap->channel);
	if (gap->missed) {
		fprintf(out,
			"%10s  gap       %" PRIu64 " generations in front of %" PRIu64
			" were gone before they were found: what they had is not known\n",
			"", gap->missed, gap->generation);
		return 0;
	}
	fprintf(out, "%10s  gap       %" PRIu64 " records %s, %" PRIu64 " to %" PRIu64 "\n", "",
		gap->lost,
		gap->corrupt ? "that are damaged in the ring" : "overwritten before they were read",
		gap->from_seq, gap->to_seq);
	return 0;
}

int dump_text_unreadable(void *out, const struct dump_unreadable *unreadable)
{
	print_rank(out, unreadable->channel);
	fprintf(out, "%10" PRIu64 "  unread    type %u, %u bytes: %s\n", unreadable->view->seq,
		unreadable->view->type, unreadable->view->len, unreadable->text);
	return 0;
}

struct dump_form dump_text_form(FILE *out)
{
	return (struct dump_form){
		.record = dump_text_record,
		.gap = dump_text_gap,
		.unreadable = dump_text_unreadable,
		.ctx = out,
	};
}
