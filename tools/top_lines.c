/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a frame around its tables. */
#include <inttypes.h>
#include <string.h>

#include "monitor/balance.h"
#include "tools/quantity.h"
#include "tools/top_frame.h"

const char *top_ratio(char text[16], double ratio)
{
	int digits = ratio < 9.995 ? 2 : ratio < 99.95;

	snprintf(text, 16, "x%.*f", digits, ratio);
	return text;
}

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

/* Known on while the daemon is away. */
static const char *model_of(const struct top_frame *frame)
{
	size_t length = strlen(frame->instance);

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
	column = grid_print(grid, row, 0, GRID_TITLE, "r3ring top %s  %s", frame->clock,
			    frame->channel[0] ? frame->channel : frame->instance);
	if (load && load->code == 0)
		column = grid_print(grid, row, column, GRID_TITLE,
				    " %" PRIu32 "x%" PRIu32 " top-%u", load->info.layers,
				    load->info.experts, load->info.top_k);
	column = grid_print(grid, row, column, GRID_TITLE, "  %s", window);
	if (load && load->code == 0 && load->info.window_cut)
		column = grid_print(grid, row, column, GRID_WARN, ", less: too many ids");
	if (frame->paused_ns)
		column = grid_print(grid, row, column, GRID_WARN, "  PAUSED %s",
				    quantity_duration(paused, frame->now_ns - frame->paused_ns));
	/* The longest, and what can be cut. */
	grid_print(grid, row, column, GRID_TITLE, "  %s", model_of(frame));
}

/* ---- losses ---------------------------------------------------------------- */

static bool gone(const struct top_frame *frame)
{
	return frame->picture && frame->picture->state != PICTURE_LIVE;
}

static uint32_t print_steps(const struct top_losses *losses, struct grid *grid, uint32_t row,
			    uint32_t column, enum grid_style style)
{
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (!losses->steps.steps[cause] && !losses->steps.rows[cause])
			continue;
		column = grid_print(grid, row, column, style,
				    " %s %" PRIu64 " steps (%" PRIu64 " rows)",
				    cause ? r3ring_cause_name(cause) : "other causes",
				    losses->steps.steps[cause], losses->steps.rows[cause]);
	}
	return column;
}

static uint32_t print_lost(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct top_losses *losses = frame->losses;
	uint64_t age = frame->now_ns > losses->newest_ns ? frame->now_ns - losses->newest_ns : 0;
	bool now = losses->newest_ns && age < TOP_LOSING_NS;
	enum grid_style style = now || losses->readers_demoted ? GRID_BAD : GRID_WARN;
	char text[QUANTITY_TEXT];
	const char *when = losses->newest_ns ? "lost earlier:" : "lost so far (when, not known):";
	uint32_t column = grid_text(grid, row, 0, style, now ? "LOSING:" : when);

	column = print_steps(losses, grid, row, column, style);
	if (losses->partial)
		column = grid_print(grid, row, column, style, " %" PRIu64 " steps lack layers",
				    losses->partial);
	if (losses->out_of_range)
		column = grid_print(grid, row, column, style, " %" PRIu64 " ids out of range",
				    losses->out_of_range);
	if (losses->readers_demoted)
		column = grid_print(grid, row, column, style, " %" PRIu32 " readers demoted",
				    losses->readers_demoted);
	if (losses->crashed)
		column = grid_print(grid, row, column, style, " %" PRIu32 " channels crashed",
				    losses->crashed);
	if (!now && losses->newest_ns)
		column = grid_print(grid, row, column, style, "; none for %s",
				    quantity_duration(text, age));
	return column;
}

static void print_asides(const struct top_losses *losses, struct grid *grid, uint32_t row,
			 uint32_t column)
{
	if (losses->unbound)
		column = grid_print(grid, row, column, GRID_WARN,
				    "; %" PRIu32 " channels with layers that nobody bound",
				    losses->unbound);
	if (losses->readers_lost)
		grid_print(grid, row, column, GRID_WARN,
			   "; readers came too late for %" PRIu64 " records", losses->readers_lost);
}

void top_draw_losses(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct top_losses *losses = frame->losses;
	uint32_t column;

	if (gone(frame)) {
		grid_print(grid, row, 0, GRID_BAD, "waiting: %s", frame->picture->error);
		return;
	}
	if (!losses->seen) {
		grid_text(grid, row, 0, GRID_FAINT, "asking the daemon");
		return;
	}
	if (top_losses_any(losses))
		column = print_lost(frame, grid, row);
	else
		column = grid_print(grid, row, 0, GRID_GOOD, "lost: nothing%s",
				    frame->losses_since_ns ? " since the reset" : "");
	print_asides(losses, grid, row, column);
}

/* ---- balance --------------------------------------------------------------- */

static uint32_t count_uneven(const struct top_load *load)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < load->info.layers; i++)
		count += balance_uneven(&load->balance[i], BALANCE_UNEVEN);
	return count;
}

/* Returns the column behind it. */
static uint32_t name_layer(const struct balance_layer *layer, struct grid *grid, uint32_t row,
			   uint32_t column, enum grid_style style, const char *separator)
{
	char text[48], ratio[16];
	int length = snprintf(text, sizeof(text), "%s %" PRId32 " %s", separator, layer->layer,
			      top_ratio(ratio, layer->figures.max_to_mean));

	if (*separator && column + (uint32_t)length > grid->columns)
		return grid->columns;
	return grid_text(grid, row, column, style, text);
}

/* As many as there is room for, whole; not those that chance may have made so. */
static void name_uneven(const struct top_load *load, struct grid *grid, uint32_t row,
			uint32_t column, enum grid_style style)
{
	const char *separator = "";

	for (uint32_t i = 0; i < load->info.layers && column < grid->columns; i++) {
		if (!balance_uneven(&load->balance[i], BALANCE_UNEVEN))
			continue;
		column = name_layer(&load->balance[i], grid, row, column, style, separator);
		separator = ",";
	}
}

static void draw_even(const struct top_load *load, struct grid *grid, uint32_t row)
{
	bool unsure = load->balance[0].figures.max_to_mean > BALANCE_UNEVEN;
	enum grid_style style = unsure ? GRID_FAINT : GRID_GOOD;
	uint32_t column = grid_text(grid, row, 0, style,
				    unsure ? "balance: too few tokens to tell from chance; layer"
					   : "balance: even; the worst is layer");

	name_layer(&load->balance[0], grid, row, column, style, "");
}

void top_draw_balance(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct top_load *load = frame->load;
	enum grid_style style;
	uint32_t uneven, column;

	if (!load || load->code || !load->info.layers) {
		grid_text(grid, row, 0, GRID_FAINT, "balance: no load yet");
		return;
	}
	uneven = count_uneven(load);
	if (!uneven) {
		draw_even(load, grid, row);
		return;
	}
	style = load->balance[0].figures.max_to_mean > 2 * BALANCE_UNEVEN ? GRID_BAD : GRID_WARN;
	column = grid_print(grid, row, 0, style,
			    "UNEVEN: %" PRIu32 " of %" PRIu32 " layers; worst: layer", uneven,
			    load->info.layers);
	name_uneven(load, grid, row, column, style);
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
	const struct top_gpus *gpus = &frame->load->gpus;
	char ratio[16];
	uint32_t column = grid_print(grid, row, 0,
				     gpus->worst > BALANCE_UNEVEN ? GRID_WARN : GRID_PLAIN,
				     "%" PRIu32 " GPUs, map %" PRIu64 ": worst layer %" PRId32
				     " %s on GPU %" PRIu32 "; all layers:",
				     gpus->gpus, gpus->epoch, gpus->worst_layer,
				     top_ratio(ratio, gpus->worst), gpus->worst_gpu);

	for (uint32_t i = 0; i < gpus->gpus; i++) {
		top_ratio(ratio, gpus->load[i]);
		if (column + 1 + strlen(ratio) > grid->columns)
			return;
		column = grid_text(grid, row, column + 1, GRID_PLAIN, ratio);
	}
}

void top_draw_keys(const struct top_frame *frame, struct grid *grid, uint32_t row)
{
	const struct {
		const char *key, *word;
	} keys[] = {
		{"q", "quit"},
		{"i", "engine"},
		{"c", "channel"},
		{"w", "window"},
		{"l", frame->logarithmic ? "linear" : "log"},
		{"p", frame->paused_ns ? "go on" : "pause"},
		{"r", "reset"},
		{"t", frame->page == TOP_TABLE ? "load" : "table"},
		{"?", "help"},
	};
	uint32_t column = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		column = grid_text(grid, row, column, GRID_TITLE, keys[i].key);
		column = grid_print(grid, row, column, GRID_PLAIN, " %s ", keys[i].word);
	}
}

void top_draw_help(struct grid *grid, uint32_t row)
{
	static const char *const lines[] = {
		"",
		"q          quit",
		"i          the next instance (engine)",
		"c          the next channel of it, or all of them together",
		"w          the next window: seconds, steps, average, all since the reset",
		"l          linear or logarithmic colours (each level twice the one below)",
		"p, space   pause; what is shown stays until it is pressed again, or i c w r",
		"r          reset: losses and load are counted from now on",
		"t          the table of all channels and readers, or the load",
		"?, h       this page, and back",
		"",
		"lost       what capture lost, by cause; readers that were too slow lose alone",
		"UNEVEN     layers whose hottest expert has twice the mean, and more than chance",
		"x1.50 e7   the hottest expert of that layer, 7, has 1.5 times its mean",
		"to x3.00   the brightest cell: three times the mean of its layer",
		"BOUND      layers captured, of all that the model has",
		"",
		"Nothing that is done here is noticed by engines or other readers.",
	};

	for (uint32_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		grid_text(grid, row + i, 2, GRID_PLAIN, lines[i]);
}
