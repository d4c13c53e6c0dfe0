/* SPDX-License-Identifier: Apache-2.0 */
/* Looking: at the daemon's newest picture, and at the load. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "channel/clock.h"
#include "tools/top.h"

int top_open(struct top *top, const struct top_options *options, struct r3ring_error *err)
{
	int r;

	*top = (struct top){
		.options = options,
		.window = options->window,
		.logarithmic = options->logarithmic,
	};
	r = daemon_watch_start(&top->watch, NULL, (uint32_t)(options->interval_ns / 1000000), err);
	if (r == 0 && options->instance)
		r = top_follow(top, options->instance);
	if (r)
		top_close(top);
	return r;
}

void top_close(struct top *top)
{
	top_forget_reset(top);
	engine_model_put(top->model);
	follower_close(top->follower);
	daemon_watch_stop(top->watch);
	daemon_picture_put(top->before);
	daemon_picture_put(top->now);
	daemon_picture_put(top->counted);
	top_load_free(top->load);
	free(top->left_out);
	free(top->rates);
	*top = (struct top){0};
}

/* ---- the daemon ------------------------------------------------------------ */

static void count_losses(struct top *top)
{
	if (top->now->state != PICTURE_LIVE || top->now == top->counted)
		return;
	top_losses_add(&top->losses, top->counted, top->now);
	daemon_picture_put(top->counted);
	top->counted = daemon_picture_get(top->now);
}

static void look_at_daemon(struct top *top)
{
	struct daemon_picture *before, *now;
	struct picture_rates *rates;

	daemon_watch_look(top->watch, &before, &now);
	rates = calloc(now ? now->channel_count + 1 : 1, sizeof(*rates));
	if (!now || !rates) {
		daemon_picture_put(before);
		daemon_picture_put(now);
		free(rates);
		return;
	}
	for (size_t i = 0; i < now->channel_count; i++)
		picture_rates(before, now, &now->channels[i], &rates[i]);
	daemon_picture_put(top->before);
	daemon_picture_put(top->now);
	free(top->rates);
	top->before = before;
	top->now = now;
	top->rates = rates;
	count_losses(top);
}

/* ---- the load -------------------------------------------------------------- */

/* The first that runs, else the first that there is. */
static const struct picture_channel *some_channel(const struct daemon_picture *picture)
{
	for (size_t i = 0; i < picture->channel_count; i++) {
		if (strcmp(picture->channels[i].state, "live") == 0)
			return &picture->channels[i];
	}
	return picture->channel_count ? &picture->channels[0] : NULL;
}

static void follow_somebody(struct top *top)
{
	const struct picture_channel *channel = top->now ? some_channel(top->now) : NULL;
	char instance[CHANNEL_NAME_TEXT];
	char *slash;

	if (!channel)
		return;
	memcpy(instance, channel->name, sizeof(instance));
	slash = strchr(instance, '/');
	if (slash)
		*slash = '\0';
	top_follow(top, instance);
}

static void look_at_load(struct top *top)
{
	uint32_t channel = top->channel ? top->channel - 1 : R3RING_LOAD_MERGED;
	struct since *since = NULL;
	struct top_load *load;

	if (!top->follower)
		return;
	if (top->channel < top->since_count)
		since = top->since[top->channel];
	load = top_load_read(top->model->load, channel, top->window, since);
	if (!load)
		return;
	top_load_free(top->load);
	top->load = load;
	top->load_ns = clock_now_ns();
}

static void look_at_ends(struct top *top)
{
	struct follower_status status = {0};

	if (top->follower)
		follower_get_status(top->follower, &status);
	top_losses_ends(&top->losses, status.ends_unfollowed);
}

/* An engine that came back with another model has another load. */
static void take_its_model(struct top *top)
{
	struct engine_model *model = follower_model(top->follower);

	if (model == top->model) {
		engine_model_put(model);
		return;
	}
	top_forget_reset(top);
	engine_model_put(top->model);
	top->model = model;
	top_load_free(top->load);
	top->load = NULL;
}

/* Without memory the former list stays. */
static void list_left_out(struct top *top)
{
	struct follower_left_out *list;
	int count = top->follower ? follower_left_out(top->follower, &list) : -ENODATA;

	if (count < 0)
		return;
	free(top->left_out);
	top->left_out = list;
	top->left_outs = (uint32_t)count;
}

void top_look(struct top *top)
{
	if (top->paused_ns)
		return;
	look_at_daemon(top);
	if (!top->follower)
		follow_somebody(top);
	else
		take_its_model(top);
	look_at_load(top);
	look_at_ends(top);
	list_left_out(top);
}

/* ---- a frame --------------------------------------------------------------- */

static void write_clock(char text[16])
{
	time_t now = time(NULL);
	struct tm parts;

	localtime_r(&now, &parts);
	strftime(text, 16, "%H:%M:%S", &parts);
}

void top_frame_of(const struct top *top, struct top_frame *frame)
{
	*frame = (struct top_frame){
		.now_ns = clock_now_ns(),
		.picture = top->now,
		.lived = top->counted,
		.rates = top->rates,
		.losses = &top->losses,
		.losses_since_ns = top->losses_since_ns,
		.instance = top->follower ? follower_name(top->follower) : "",
		.left_out = top->left_out,
		.left_outs = top->left_outs,
		.load = top->load,
		.load_ns = top->load_ns,
		.page = top->page,
		.window = top->window,
		.window_ns = top->options->window_ns,
		.window_steps = top->options->window_steps,
		.logarithmic = top->logarithmic,
		.paused_ns = top->paused_ns,
		.own_pid = getpid(),
	};
	write_clock(frame->clock);
	if (top->follower) {
		follower_get_status(top->follower, &frame->follower);
		frame->ended = frame->follower.tail.state == TAIL_ENDED;
	}
	if (top->follower && top->channel) {
		follower_channel_name(top->follower, top->channel - 1, frame->channel);
		frame->ended = follower_channel_ended(top->follower, top->channel - 1);
	}
}
