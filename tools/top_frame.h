/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame of `r3ring top`: what is known at one moment, and how it is drawn. Drawing only
 * writes cells, so that the same frame goes to a terminal, a pipe, or a test.
 */
#ifndef TOOLS_TOP_FRAME_H
#define TOOLS_TOP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/daemon_picture.h"
#include "monitor/follower.h"
#include "tools/top_flow.h"
#include "tools/top_grid.h"
#include "tools/top_load.h"
#include "tools/top_losses.h"
#include "tools/top_page.h"

#define TOP_LOSING_NS (LOSSES_RECENT_S * 1000000000ull)
#define TOP_STALE_NS 3000000000ull /* load without new steps is called old then, as the page does */

enum top_page {
	TOP_MAIN,
	TOP_TABLE,  /* all channels and readers */
	TOP_LOSSES, /* each with what it means, and what to do about it */
	TOP_HELP,
};

struct top_frame {
	uint64_t now_ns;                      /* CLOCK_MONOTONIC, of all ages */
	char clock[16];                       /* "12:34:56" */
	const struct daemon_picture *picture; /* NULL: none yet */
	const struct daemon_picture *lived; /* the newest of a daemon that lived; NULL: none yet */
	const struct picture_rates *rates;  /* [picture->channel_count] */
	const struct top_losses *losses;
	uint64_t losses_since_ns; /* when they began to be counted anew; 0: never */
	const char *instance;     /* that is followed; "" none yet */
	char channel[128];        /* whose load is shown; "" all of the instance */
	struct follower_status follower;
	const struct follower_left_out *left_out; /* [left_outs] ranks of another model */
	uint32_t left_outs;
	bool ended;                  /* that channel has, or all of the instance */
	const struct top_load *load; /* NULL: none yet */
	uint64_t load_ns;            /* when it was read */
	enum top_page page;
	struct page_part *part; /* of the page, that is to be shown, and is; NULL: its beginning */
	enum top_window window;
	uint64_t window_ns, window_steps;
	bool logarithmic;
	uint64_t paused_ns; /* since when; 0: it goes on */
	bool keys;          /* there are some to be told of */
	int64_t own_pid;
};

/* Draws all of it; what has no room is left out, the least important first. */
void top_frame_draw(const struct top_frame *frame, struct grid *grid);

/* How many rows it takes without folding layers or leaving anything out. */
uint32_t top_frame_rows(const struct top_frame *frame, uint32_t columns);

/* ---- its parts ------------------------------------------------------------- */

/* top_verdict.c: in plain words, whether anything is lost and which layer is worst. */
void top_verdict(const struct top_frame *frame, struct flow *flow);

/* top_loss_lines.c: what was lost by cause; in short, and with what to do about it. */
void top_losses_brief(const struct top_frame *frame, struct flow *flow);
void top_losses_page(const struct top_frame *frame, struct page *page);

/* top_lines.c: who is looked at, whose ranks are not, what is uneven; the keys. */
void top_draw_title(const struct top_frame *frame, struct grid *grid, uint32_t row);
void top_uneven(const struct top_frame *frame, struct flow *flow);
void top_ranks(const struct top_frame *frame, struct flow *flow);
void top_draw_hottest(const struct top_frame *frame, struct grid *grid, uint32_t row);
void top_draw_gpus(const struct top_frame *frame, struct grid *grid, uint32_t row);
void top_draw_keys(const struct top_frame *frame, struct grid *grid, uint32_t row, uint32_t column);
void top_help_page(struct page *page);

/* top_words.c: "3.74x", "12.3x", "123x": how often a mean. Returns @text. */
const char *top_ratio(char text[16], double ratio);

/* "s" behind a word of which there is not one, else "". */
const char *top_plural(uint64_t count);

/* Whether the daemon is gone; whether something was lost just now; since when nothing was;
 * since when the load has not changed. */
bool top_is_gone(const struct top_frame *frame);
bool top_is_losing(const struct top_frame *frame);
uint64_t top_loss_age(const struct top_frame *frame);
uint64_t top_load_age(const struct top_frame *frame);

/* Why the load that is shown is not that of now: "ENDED", "OLD"; NULL: it is. */
const char *top_is_past(const struct top_frame *frame);

/* top_channels.c: the table; and how many rows it needs. */
void top_draw_channels(const struct top_frame *frame, struct top_space *space);
uint32_t top_channels_rows(const struct top_frame *frame);

/* top_heatmap.c */
void top_draw_heatmap(const struct top_frame *frame, struct top_space *space);

#endif
