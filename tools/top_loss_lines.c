/* SPDX-License-Identifier: Apache-2.0 */
/* What was lost, by cause: below the verdict in short, and on a page with remedies. */
#include <inttypes.h>
#include <stdlib.h>

#include "monitor/causes.h"
#include "tools/quantity.h"
#include "tools/top_frame.h"

/* Causes that have lost something, the one of most steps first. Returns how many. */
static uint32_t sort_causes(const struct picture_lost *lost, uint32_t sorted[R3RING_CAUSE_COUNT])
{
	uint32_t count = 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		uint32_t at = count;

		if (!lost->steps[cause] && !lost->rows[cause])
			continue;
		for (; at && lost->steps[sorted[at - 1]] < lost->steps[cause]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = cause;
		count++;
	}
	return count;
}

static const char *name_of(uint32_t cause)
{
	return cause ? r3ring_cause_name(cause) : "other";
}

static enum grid_style style_of(const struct top_frame *frame)
{
	return top_is_losing(frame) || frame->losses->readers_demoted ? GRID_BAD : GRID_WARN;
}

/* ---- in short -------------------------------------------------------------- */

static void add_causes(const struct top_losses *losses, struct flow *flow, enum grid_style style)
{
	uint32_t sorted[R3RING_CAUSE_COUNT], count = sort_causes(&losses->steps, sorted);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t steps = losses->steps.steps[sorted[i]];

		flow_add_steps(flow, style, steps, "%s %" PRIu64 " step%s (%" PRIu64 " rows);",
			       name_of(sorted[i]), steps, top_plural(steps),
			       losses->steps.rows[sorted[i]]);
	}
	if (losses->partial)
		flow_add_steps(flow, style, losses->partial, "%" PRIu64 " step%s incomplete;",
			       losses->partial, top_plural(losses->partial));
	if (losses->out_of_range)
		flow_add(flow, style, "%" PRIu64 " id%s out of range;", losses->out_of_range,
			 top_plural(losses->out_of_range));
}

static void add_asides(const struct top_frame *frame, struct flow *flow)
{
	const struct top_losses *losses = frame->losses;

	if (losses->readers_demoted)
		flow_add(flow, GRID_BAD, "%" PRIu32 " reader%s demoted;", losses->readers_demoted,
			 top_plural(losses->readers_demoted));
	if (losses->crashed)
		flow_add(flow, GRID_WARN, "%" PRIu32 " channel%s crashed;", losses->crashed,
			 top_plural(losses->crashed));
	if (losses->unfollowed)
		flow_add(flow, GRID_WARN, "%" PRIu64 " end%s that nobody follows;",
			 losses->unfollowed, top_plural(losses->unfollowed));
	if (losses->unbound)
		flow_add(flow, GRID_WARN, "%" PRIu32 " channel%s with layers that nobody bound;",
			 losses->unbound, top_plural(losses->unbound));
	if (losses->readers_lost)
		flow_add(flow, GRID_WARN, "readers came too late for %" PRIu64 " record%s;",
			 losses->readers_lost, top_plural(losses->readers_lost));
	if (frame->load && frame->load->code == 0 && frame->load->info.window_cut)
		flow_add(flow, GRID_WARN, "the window is shorter than it says: too many ids;");
}

void top_losses_brief(const struct top_frame *frame, struct flow *flow)
{
	flow->indent = 2;
	flow->more = frame->keys ? "key d" : NULL;
	if (top_is_gone(frame))
		flow_add(flow, GRID_BAD, "%s;", frame->picture->error);
	if (frame->losses->seen) {
		if (top_losses_any(frame->losses))
			flow_add(flow, style_of(frame),
				 frame->losses_since_ns ? "lost since the reset:" : "lost:");
		add_causes(frame->losses, flow, style_of(frame));
		add_asides(frame, flow);
	}
	flow_end_list(flow);
}

/* ---- the page -------------------------------------------------------------- */

/* Something that was lost: how much of it, and what it means. */
struct loss {
	const char *name, *unit;
	uint64_t count, rows;
	const char *meaning, *remedy;
	uint64_t (*of_channel)(const struct picture_channel *, uint32_t);
	uint32_t cause;
};

static uint64_t steps_of(const struct picture_channel *channel, uint32_t cause)
{
	return channel->lost.steps[cause];
}

static uint64_t partial_of(const struct picture_channel *channel, uint32_t cause)
{
	return cause ? 0 : channel->steps_partial;
}

static uint64_t out_of_range_of(const struct picture_channel *channel, uint32_t cause)
{
	return cause ? 0 : channel->ids_out_of_range;
}

static uint64_t unbound_of(const struct picture_channel *channel, uint32_t cause)
{
	return cause ? 0 : channel->unbound_count;
}

static uint64_t crashed_of(const struct picture_channel *channel, uint32_t cause)
{
	return cause ? 0 : channel->crashed;
}

/* No picture tells of them: the records do. */
static uint64_t unfollowed_of(const struct picture_channel *channel, uint32_t cause)
{
	(void)channel;
	(void)cause;
	return 0;
}

static uint64_t demoted_of(const struct picture_channel *channel, uint32_t cause)
{
	uint64_t count = 0;

	for (size_t i = 0; i < channel->reader_count; i++)
		count += !cause && channel->readers[i].demoted;
	return count;
}

static uint64_t late_of(const struct picture_channel *channel, uint32_t cause)
{
	uint64_t count = 0;

	for (size_t i = 0; i < channel->reader_count; i++)
		count += cause ? 0 : channel->readers[i].lost;
	return count;
}

/* "in a/0 12, b/0 3", as each channel counts since it began. */
static void add_channels(const struct daemon_picture *picture, const struct loss *loss,
			 struct flow *flow)
{
	const char *before = "in ";

	for (size_t i = 0; picture && i < picture->channel_count; i++) {
		const struct picture_channel *channel = &picture->channels[i];
		uint64_t count = loss->of_channel(channel, loss->cause);

		if (!count)
			continue;
		flow_add(flow, GRID_PLAIN, "%s%s %" PRIu64 ";", before, channel->name, count);
		before = "";
	}
}

static void add_loss(const struct top_frame *frame, const struct loss *loss, struct page *page)
{
	struct flow flow = {.indent = 2};

	if (!loss->count && !loss->rows)
		return;
	flow_add_steps(&flow, style_of(frame), loss->count, "%s: %" PRIu64 " %s%s", loss->name,
		       loss->count, loss->unit, top_plural(loss->count));
	if (loss->rows)
		flow_add(&flow, style_of(frame), "(%" PRIu64 " rows)", loss->rows);
	add_channels(frame->lived, loss, &flow);
	flow_end_list(&flow);
	page_add(page, &flow);
	flow = (struct flow){.indent = 4, .label = ""};
	flow_add(&flow, GRID_PLAIN, "%s;", loss->meaning);
	flow_add(&flow, GRID_HEAD, "%s", loss->remedy);
	page_add(page, &flow);
}

static void add_causes_to_page(const struct top_frame *frame, struct page *page)
{
	const struct picture_lost *lost = &frame->losses->steps;
	uint32_t sorted[R3RING_CAUSE_COUNT], count = sort_causes(lost, sorted);

	for (uint32_t i = 0; i < count; i++) {
		const struct loss loss = {
			.name = name_of(sorted[i]),
			.unit = "step",
			.count = lost->steps[sorted[i]],
			.rows = lost->rows[sorted[i]],
			.meaning = cause_meaning(sorted[i]),
			.remedy = cause_remedy(sorted[i]),
			.of_channel = steps_of,
			.cause = sorted[i],
		};

		add_loss(frame, &loss, page);
	}
}

/* So that nobody takes an empty page for an answer that has not come. */
static void add_no_loss(const struct top_frame *frame, struct page *page)
{
	struct flow flow = {.indent = 2};
	char age[QUANTITY_TEXT];

	if (top_is_gone(frame))
		flow_add(&flow, GRID_BAD, "%s;", frame->picture->error);
	if (!frame->losses->seen)
		flow_add(&flow, GRID_FAINT, "not known: no daemon has answered yet");
	else if (top_losses_any(frame->losses))
		return;
	else if (frame->losses_since_ns)
		flow_add(&flow, GRID_GOOD, "no losses since the reset, %s ago",
			 quantity_duration(age, frame->now_ns - frame->losses_since_ns));
	else
		flow_add(&flow, GRID_GOOD, "no losses since the channels began");
	page_add(page, &flow);
}

void top_losses_page(const struct top_frame *frame, struct page *page)
{
	const struct top_losses *losses = frame->losses;
	const struct loss others[] = {
		{"incomplete", "step", losses->partial, 0, "layers or rows are missing in them",
		 "r3ring dump shows which, in their STEP_END records", partial_of, 0},
		{"out of range", "id", losses->out_of_range, 0, "ids beyond the schema's experts",
		 "most likely physical ids, captured behind the EPLB mapping", out_of_range_of, 0},
		{"crashed", "channel", losses->crashed, 0,
		 "its engine ran on without a daemon: more may be lost than is known",
		 "look at the engine", crashed_of, 0},
		{"not followed", "end", losses->unfollowed, 0,
		 "its daemon was gone: what the engine ran behind it only the engine knows",
		 "start a daemon again within its engine's life: the engine tells it all",
		 unfollowed_of, 0},
		{"not bound", "channel", losses->unbound, 0,
		 "layers that nobody bound are missing in every step",
		 "r3ring status names the layers", unbound_of, 0},
		{"demoted", "reader", losses->readers_demoted, 0,
		 "a lossless reader stood still for longer than its limit, and loses records",
		 "look at that reader: t shows its process", demoted_of, 0},
		{"too late", "record", losses->readers_lost, 0,
		 "a reader was slower than the ring is long; nobody else lost anything",
		 "a faster reader or a larger ring: t shows its process", late_of, 0},
	};

	add_no_loss(frame, page);
	add_causes_to_page(frame, page);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		add_loss(frame, &others[i], page);
}
