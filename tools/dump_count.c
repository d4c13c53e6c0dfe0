/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring dump --count: what a channel holds, in totals.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "tools/dump.h"
#include "tools/words.h"

/* ---- counting --------------------------------------------------------- */

static void count_step(struct dump_count *count, const struct r3ring_step_record *step)
{
	if (step->flags & R3RING_STEP_DROPPED)
		count->steps_dropped++;
	count->step_rows += r3ring_step_valid_rows(step);
}

/* The counts of a layer stand in each of its records: take them once. */
static void count_layer(struct dump_count *count, const struct r3ring_layer_record *layer)
{
	bool continued = count->last_step == layer->step &&
			 count->last_layer == layer->layer_index &&
			 count->records[R3RING_LAYER] > 1;

	count->layer_rows += layer->valid_rows;
	count->ids += (uint64_t)layer->valid_rows * layer->top_k;
	if (!continued) {
		count->ids_missing += layer->missing;
		count->ids_out_of_range += layer->out_of_range;
	}
	count->last_step = layer->step;
	count->last_layer = layer->layer_index;
}

static void count_step_end(struct dump_count *count, const struct r3ring_record *record)
{
	const struct r3ring_step_end_record *end = &record->u.step_end.head;

	if (end->status == R3RING_STEP_COMPLETE)
		count->steps_complete++;
	else
		count->steps_partial++;
	for (uint32_t i = 0; i < end->missing; i++) {
		uint32_t cause = record->u.step_end.missing[i].cause;

		if (cause < R3RING_CAUSE_COUNT)
			count->layers_missing[cause]++;
	}
}

static void count_request(struct dump_count *count, const struct r3ring_request_record *request)
{
	if (request->event == R3RING_REQUEST_BEGIN)
		count->requests_begun++;
	else
		count->requests_ended++;
}

static void count_content(struct dump_count *count, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_REQUEST:
		count_request(count, &record->u.request.head);
		break;
	case R3RING_STEP:
		count_step(count, &record->u.step.head);
		break;
	case R3RING_LAYER:
		count_layer(count, &record->u.layer.head);
		break;
	case R3RING_STEP_END:
		count_step_end(count, record);
		break;
	default:
		channel_losses_record(&count->losses, record, true);
		break;
	}
}

static void count_sequence(struct dump_count *count, const struct r3ring_view *view)
{
	if (!count->first_seq)
		count->first_seq = view->seq;
	count->last_seq = view->seq;
	if (!count->generations || count->generation != view->generation) {
		count->generations++;
		channel_losses_generation(&count->losses, view->generation, view->seq == 1);
	}
	count->generation = view->generation;
}

int dump_count_record(void *ctx, const struct dump_item *item)
{
	struct dump_count *count = ctx;

	count_sequence(count, item->view);
	count->records[item->record->type]++;
	if (item->view->flags & R3RING_DESC_REPEATED)
		count->repeated++;
	else
		count_content(count, item->record);
	return 0;
}

int dump_count_gap(void *ctx, const struct dump_gap *gap)
{
	struct dump_count *count = ctx;

	/* In front of a first record nothing is missing of what it came for. */
	if (count->generations)
		channel_losses_gap(&count->losses, true);
	if (gap->corrupt) {
		count->corrupt_records += gap->lost;
		return 0;
	}
	count->gaps += !gap->missed;
	count->gap_records += gap->lost;
	count->missed += gap->missed;
	return 0;
}

int dump_count_unreadable(void *ctx, const struct dump_unreadable *unreadable)
{
	struct dump_count *count = ctx;

	count_sequence(count, unreadable->view);
	count->unreadable++;
	return 0;
}

void dump_count_left_open(void *ctx)
{
	struct dump_count *count = ctx;

	channel_losses_unfollowed(&count->losses, true);
}

/* ---- printing --------------------------------------------------------- */

static void print_details(const struct dump_count *count, uint16_t type)
{
	switch (type) {
	case R3RING_REQUEST:
		fprintf(count->out, "  begun %" PRIu64 ", ended %" PRIu64, count->requests_begun,
			count->requests_ended);
		break;
	case R3RING_STEP:
		fprintf(count->out, "  rows %" PRIu64 ", dropped %" PRIu64, count->step_rows,
			count->steps_dropped);
		break;
	case R3RING_LAYER:
		fprintf(count->out,
			"  rows %" PRIu64 ", ids %" PRIu64 ", missing %" PRIu64
			", out of range %" PRIu64,
			count->layer_rows, count->ids, count->ids_missing, count->ids_out_of_range);
		break;
	case R3RING_STEP_END:
		fprintf(count->out, "  complete %" PRIu64 ", partial %" PRIu64,
			count->steps_complete, count->steps_partial);
		break;
	default:
		break;
	}
}

static void print_types(const struct dump_count *count)
{
	char word[WORD_MAX];

	for (uint16_t type = 1; type < R3RING_RECORD_TYPES; type++) {
		fprintf(count->out, "%-12s %12" PRIu64,
			word_lower(word, r3ring_record_type_name(type)), count->records[type]);
		print_details(count, type);
		fputc('\n', count->out);
	}
}

/* One line a cause that took something; whether there was one. */
static bool print_losses(const struct dump_count *count)
{
	const struct lost_account *lost = &count->losses.account;
	bool any = lost->unproved > 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (!lost->steps[cause] && !lost->rows[cause] && !count->layers_missing[cause])
			continue;
		fprintf(count->out,
			"  %-18s steps %" PRIu64 ", rows %" PRIu64 ", layers %" PRIu64 "\n",
			r3ring_cause_name(cause), lost->steps[cause], lost->rows[cause],
			count->layers_missing[cause]);
		any = true;
	}
	if (lost_account_unheard(lost))
		fprintf(count->out,
			"  %-18s steps %" PRIu64 ", told by totals only: their records fell into a "
			"gap\n",
			"of these", lost_account_unheard(lost));
	if (lost->unproved)
		fprintf(count->out,
			"  %-18s behind %" PRIu64 " gaps no keyframe came that would tell more\n",
			"at least", lost->unproved);
	if (count->gaps) {
		fprintf(count->out, "  %-18s records %" PRIu64 ", in %" PRIu64 " gaps\n",
			"reader_overrun", count->gap_records, count->gaps);
		any = true;
	}
	if (count->corrupt_records) {
		fprintf(count->out, "  %-18s records %" PRIu64 ", damaged in the ring\n", "corrupt",
			count->corrupt_records);
		any = true;
	}
	if (count->missed) {
		fprintf(count->out,
			"  %-18s generations %" PRIu64 ", gone before they were found\n", "missed",
			count->missed);
		any = true;
	}
	if (count->unreadable) {
		fprintf(count->out, "  %-18s records %" PRIu64 "\n", "unreadable",
			count->unreadable);
		any = true;
	}
	/* No number: the engine had nobody to tell any more. */
	if (lost->unfollowed) {
		fprintf(count->out,
			"  %-18s unknown: what the engine ran behind %" PRIu64
			" ends of generations only the engine knows\n",
			"daemon_gone", lost->unfollowed);
		any = true;
	}
	return any;
}

int dump_count_print(void *ctx)
{
	const struct dump_count *count = ctx;
	uint64_t records = 0;

	for (uint16_t type = 1; type < R3RING_RECORD_TYPES; type++)
		records += count->records[type];
	fprintf(count->out, "%s: %" PRIu64 " records", count->channel, records);
	if (count->generations > 1) /* each numbers its records from 1 */
		fprintf(count->out, " of %" PRIu64 " generations", count->generations);
	else if (count->first_seq)
		fprintf(count->out, ", sequences %" PRIu64 " to %" PRIu64, count->first_seq,
			count->last_seq);
	fprintf(count->out, ", %" PRIu64 " repeated in keyframes\n", count->repeated);
	print_types(count);
	fputs("losses\n", count->out);
	if (!print_losses(count))
		fputs("  none\n", count->out);
	return 0;
}

struct dump_form dump_count_form(struct dump_count *count)
{
	return (struct dump_form){
		.record = dump_count_record,
		.gap = dump_count_gap,
		.unreadable = dump_count_unreadable,
		.left_open = dump_count_left_open,
		.finish = dump_count_print,
		.ctx = count,
	};
}
