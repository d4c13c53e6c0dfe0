/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a frame around its tables. */
#include <inttypes.h>
#include <string.h>

#include "monitor/balance.h"
#include "tools/absent_channels.h"
#include "tools/quantity.h"
#include "tools/top_frame.h"

/* ---- title ----------------------------------------------------------------- */

static void window_text(const struct top_frame *frame, char *text, size_t size)
{
	char time[QUANTITY_TEXT];

	switch (frame->window) {
	case TOP_TIME:
		snprintf(text, size, "last %s", quantity_duration(time, frame->window_ns));
		break;
	case TOP_STEPS:
		snprintf(text, size, "last %" PRIu64 " steps", frame->window_steps);
		break;
	case TOP_AVERAGE:
		snprintf(text, size, "average");
		break;
	default:
		snprintf(text, size, "all since %s",
			 frame->losses_since_ns ? "reset" : "it is watched");
	}
}

/* That whose load is shown, as its ranks say, or else the daemon, also while it is away. */
static const char *model_of(const struct top_frame *frame)
{
	size_t length = strlen(frame->instance);

	if (frame->follower.model[0])
		return frame->follower.model;
	for (size_t i = 0; frame->lived && i < frame->lived->channel_count; i++) {
		const struct picture_channel *channel = &frame->lived->channels[i];

		if (length && strncmp(channel->name, frame->instance, length) == 0 &&
		    channel->name[length] == '/')
			return channel->model;
	}
	return "";
}

void top_draw_title(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct top_load *load = frame->load;
	char window[48], paused[QUANTITY_TEXT];
	uint32_t column;

	grid_paint(grid, row, 0, GRID_TITLE);
	window_text(frame, window, sizeof(window));
	column = grid_print(grid, row, 0, GRID_TITLE, "r3ring top %s ", frame->clock);
	if (frame->paused_ns)
		column = grid_print(grid, row, column, GRID_WARN, "PAUSED %s ",
				    quantity_duration(paused, frame->now_ns - frame->paused_ns));
	column = grid_print(grid, row, column, GRID_TITLE, " %s",
			    frame->channel[0] ? frame->channel : frame->instance);
	if (load && load->code == 0)
		column = grid_print(grid, row, column, GRID_TITLE,
				    " %" PRIu32 "x%" PRIu32 " top-%u", load->info.layers,
				    load->info.experts, load->info.top_k);
	column = grid_print(grid, row, column, GRID_TITLE, "  %s", window);
	/* The longest, and what can be cut. */
	grid_print(grid, row, column, GRID_TITLE, "  %s", model_of(frame));
}

/* Parts of the engine of which the daemon has no channel: what is shown lacks them. */
static void tell_absent(const struct top_frame *frame, struct flow *flow)
{
	struct archive_absent_ranks absent = {0};
	char text[ARCHIVE_RANK_TEXT];

	if (!frame->lived)
		return;
	if (flow->pieces)
		flow_clause(flow);
	if (absent_channels_find(frame->lived, frame->instance, &absent) < 0)
		flow_add(flow, GRID_WARN, "which ranks are not here is not known: no memory");
	else if (absent.count)
		flow_add(flow, GRID_WARN, "NO CHANNEL HERE:");
	for (uint32_t i = 0; i < absent.told; i++) {
		archive_absent_rank_text(text, &absent.rank[i]);
		flow_add(flow, GRID_WARN, "%s%s", text, i + 1 < absent.count ? ";" : "");
	}
	if (absent.count > absent.told)
		flow_add(flow, GRID_WARN, "+%" PRIu64, absent.count - absent.told);
}

/* Ranks of one instance that run another model than the one that is shown. */
static void tell_models(const struct top_frame *frame, struct flow *flow)
{
	if (!frame->left_outs)
		return;
	flow_add(flow, GRID_BAD,
		 "RANKS OF DIFFERENT MODELS: %s is shown; left out:", model_of(frame));
	for (uint32_t i = 0; i < frame->left_outs; i++)
		flow_add(flow, GRID_WARN, "%s (%s)%s", frame->left_out[i].channel,
			 frame->left_out[i].model, i + 1 < frame->left_outs ? "," : "");
}

void top_ranks(const struct top_frame *frame, struct flow *flow)
{
	tell_models(frame, flow);
	tell_absent(frame, flow);
}

/* ---- balance --------------------------------------------------------------- */

/* The uneven layers, the worst first; not those that chance may have made so. */
void top_uneven(const struct top_frame *frame, struct flow *flow)
{
	const struct top_load *load = frame->load;
	char ratio[16];

	for (uint32_t i = 0; load && !load->code && i < load->info.layers; i++) {
		const struct balance_layer *layer = &load->balance[i];

		if (!balance_uneven(layer, BALANCE_UNEVEN))
			continue;
		flow_add(flow, i ? GRID_PLAIN : GRID_WARN, "%s%" PRId32 " %s,",
			 flow->pieces ? "" : "uneven layers: ", layer->layer,
			 top_ratio(ratio, layer->figures.max_to_mean));
	}
}

/* ---- hottest, GPUs, keys --------------------------------------------------- */

void top_draw_hottest(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct top_load *load = frame->load;
	uint32_t column = grid_text(grid, row, 0, GRID_PLAIN, "hottest:");

	for (uint32_t i = 0; i < load->hottest_count; i++) {
		const struct balance_expert *expert = &load->hottest[i];
		char text[64], ratio[16];
		int length = snprintf(text, sizeof(text), "%s layer %" PRId32 " e%" PRIu32 " %s",
				      i ? "," : "", expert->layer, expert->expert,
				      top_ratio(ratio, expert->ratio));

		if (column + (uint32_t)length > grid->columns)
			return;
		column = grid_text(grid, row, column, GRID_PLAIN, text);
	}
}

void top_draw_gpus(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct r3ring_load_info *info = &frame->load->info;
	const struct gpus *gpus = frame->load->gpus;
	char ratio[16];
	enum grid_style style = gpus_uneven(gpus) ? GRID_WARN : GRID_PLAIN;
	uint32_t column = grid_print(grid, row, 0, style, "%" PRIu32 " GPUs, map %" PRIu64,
				     gpus->count, gpus->epoch);

	if (info->epoch != info->epoch_oldest)
		column = grid_print(grid, row, column, GRID_WARN,
				    " (ranks at %" PRIu64 " to %" PRIu64 ")", info->epoch_oldest,
				    info->epoch);
	column = grid_print(grid, row, column, style,
			    ": worst layer %" PRId32 " %s on GPU %" PRIu32 "; by GPU:",
			    gpus->worst_layer, top_ratio(ratio, gpus->worst), gpus->worst_gpu);
	for (uint32_t i = 0; i < gpus->count; i++) {
		uint32_t left = gpus->count - i - 1;
		char more[16] = "";

		if (left)
			snprintf(more, sizeof(more), " +%" PRIu32, left + 1);
		top_ratio(ratio, gpus_to_mean(gpus, i));
		if (column + 1 + strlen(ratio) + strlen(more) > grid->columns) {
			grid_print(grid, row, column, GRID_FAINT, " +%" PRIu32, left + 1);
			return;
		}
		column = grid_text(grid, row, column + 1, GRID_PLAIN, ratio);
	}
}

/* Where not all have room, those that lead to the others. */
void top_draw_keys(const struct top_frame *frame, struct grid *grid, uint32_t row, uint32_t column)
{
	const struct {
		const char *key, *word;
	} keys[] = {
		{"q", frame->page == TOP_MAIN ? "quit" : "back"},
		{"?", "help"},
		{"d", frame->page == TOP_LOSSES ? "load" : "losses"},
		{"t", frame->page == TOP_TABLE ? "load" : "table"},
		{"i", "engine"},
		{"c", "channel"},
		{"w", "window"},
		{"l", frame->logarithmic ? "lin" : "log"},
		{"p", frame->paused_ns ? "go on" : "pause"},
		{"r", "reset"},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (column + 2 + strlen(keys[i].word) > grid->columns)
			return;
		column = grid_text(grid, row, column, GRID_TITLE, keys[i].key);
		column = grid_print(grid, row, column, GRID_PLAIN, " %s ", keys[i].word);
	}
}

void top_help_page(struct page *page)
{
	static const struct {
		const char *what, *text;
	} lines[] = {
		{"q", "quit; from another page, as this one, back to the load"},
		{"Esc", "back to the load"},
		{"i", "the next instance (engine)"},
		{"c", "the next channel of it, or all of them together"},
		{"w", "the next window: seconds, steps, average, all since the reset"},
		{"l", "linear or logarithmic colours (each level twice the one below)"},
		{"p, space", "pause; what is shown stays until it is pressed again, or i c w r"},
		{"r", "reset: losses and load are counted from now on"},
		{"d", "all losses by cause and channel, and what to do about them"},
		{"t", "the table of all channels and readers, or the load"},
		{"?, h", "this page, and back"},
		{"arrows", "up and down on a page that is longer; so do PgUp PgDn Home End"},
		{"", ""},
		{"LOSING", "of the steps of the last ten seconds, so many; by cause below"},
		{"UNEVEN", "beyond twice the mean of experts, 1.5 of GPUs, and beyond chance"},
		{"1.50x e7", "the hottest expert of that layer, 7, has 1.5 times its mean"},
		{"to 3.00x", "the brightest cell: three times the mean of its layer"},
		{"BOUND", "layers captured, of all that the model has"},
		{"", ""},
		{"", "Nothing that is done here is noticed by engines or other readers."},
	};

	for (uint32_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct flow flow = {.indent = 11, .label = lines[i].what};

		flow_add(&flow, GRID_PLAIN, "%s", lines[i].text);
		page_add(page, &flow);
	}
}
