/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `r3ring top` knows and shows, from frame to frame. Belongs to one thread; the daemon is
 * asked, and the engine followed, by others.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include "monitor/daemon_watch.h"
#include "tools/top_frame.h"

struct top_options {
	const char *instance; /* NULL: the first that is there */
	uint64_t interval_ns;
	enum top_window window; /* that is shown first */
	uint64_t window_ns, window_steps;
	bool logarithmic;
	bool counts;            /* JSON with each expert's */
	uint64_t count;         /* JSON lines; 0: without end */
	uint32_t rows, columns; /* of --once; 0: what it needs, 80 */
};

struct top {
	const struct top_options *options;
	struct daemon_watch *watch;
	struct daemon_picture *before, *now; /* as daemon_watch_look() */
	struct daemon_picture *counted;      /* the newest live one that `losses` has */
	struct picture_rates *rates;         /* [now->channel_count] */
	struct top_losses losses;
	uint64_t losses_since_ns;
	struct follower *follower;          /* NULL: nobody yet */
	struct engine_model *model;         /* of it, held: what is shown */
	uint32_t channel;                   /* of it, + 1; 0: all */
	struct follower_left_out *left_out; /* [left_outs] of the follower's */
	uint32_t left_outs;
	struct top_load *load;
	uint64_t load_ns;
	struct since **since; /* [since_count] the reset, by `channel` */
	uint32_t since_count;
	enum top_page page;
	struct page_part part; /* of it, that was shown last, or is to be */
	enum top_window window;
	bool logarithmic;
	uint64_t paused_ns;
};

/* Returns 0 or a negative errno, with a message. Pairs with top_close(). */
int top_open(struct top *top, const struct top_options *options, struct r3ring_error *err);
void top_close(struct top *top);

/* Takes in what is new; nothing while paused. */
void top_look(struct top *top);

/* Points into @top, until the next call that changes it. */
void top_frame_of(const struct top *top, struct top_frame *frame);

/* ---- what somebody wants to see (top_wishes.c) ------------------------------ */

#define TOP_KEY_ESCAPE 27

/* Keys that are no characters. */
enum {
	TOP_KEY_UP = 1 << 16,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
};

/* Does what a key says. Returns false when that is to end. */
bool top_key(struct top *top, int key);

/* Forgets since when load was counted anew; before the follower is closed. */
void top_forget_reset(struct top *top);

/* Follows an instance from now on. Returns 0 or a negative errno. */
int top_follow(struct top *top, const char *instance);

/* ---- ways to show it: each returns the exit code ---------------------------- */

int top_once(struct top *top);  /* top_print.c */
int top_lines(struct top *top); /* top_print.c: JSON */
int top_live(struct top *top);  /* top_live.c */

/* One snapshot (top_json.c): a new reference, or NULL without memory. */
json_t *top_json(const struct top_frame *frame, bool counts);

#endif
