/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody wants to see: keys, and what they change. */
#include <stdlib.h>
#include <string.h>

#include "channel/clock.h"
#include "tools/top.h"

#define LOOK_MS 20 /* how often the engine's records are looked for */

/* ---- another engine -------------------------------------------------------- */

void top_forget_reset(struct top *top)
{
	for (uint32_t i = 0; i < top->since_count; i++)
		since_destroy(top->since[i]);
	free(top->since);
	top->since = NULL;
	top->since_count = 0;
}

int top_follow(struct top *top, const char *instance)
{
	const struct follower_options options = {
		.instance = instance,
		.label = "top",
		.load = {.size = sizeof(options.load),
			 .window_ns = top->options->window_ns,
			 .window_steps = top->options->window_steps},
		.look_ms = LOOK_MS,
		.watch = top->watch,
		.load_only = true,
	};
	struct follower *follower;
	int r = follower_open(&follower, &options, NULL);

	if (r)
		return r;
	top_forget_reset(top);
	engine_model_put(top->model);
	follower_close(top->follower);
	top->follower = follower;
	top->model = follower_model(follower);
	top->channel = 0;
	top_load_free(top->load);
	top->load = NULL;
	return 0;
}

static size_t instance_length(const struct picture_channel *channel)
{
	return strcspn(channel->name, "/");
}

static bool is_of(const struct picture_channel *channel, const char *instance)
{
	size_t length = instance_length(channel);

	return strlen(instance) == length && strncmp(channel->name, instance, length) == 0;
}

/* The channel behind those of the present instance, which may be anywhere in the list. */
static const struct picture_channel *next_instance(const struct daemon_picture *picture,
						   const char *instance)
{
	const struct picture_channel *first = NULL;
	bool behind = false;

	for (size_t i = 0; i < picture->channel_count; i++) {
		const struct picture_channel *channel = &picture->channels[i];

		if (is_of(channel, instance)) {
			behind = true;
			continue;
		}
		if (behind)
			return channel;
		first = first ? first : channel;
	}
	return first;
}

static void follow_next(struct top *top)
{
	const struct picture_channel *channel;
	char instance[CHANNEL_NAME_TEXT];

	if (!top->now || !top->follower)
		return;
	channel = next_instance(top->now, follower_name(top->follower));
	if (!channel)
		return;
	memcpy(instance, channel->name, sizeof(instance));
	instance[instance_length(channel)] = '\0';
	top_follow(top, instance);
}

/* ---- another part or window of its load ------------------------------------ */

static uint32_t channels_of(const struct top *top)
{
	struct follower_status status;

	if (!top->follower)
		return 0;
	follower_get_status(top->follower, &status);
	return status.channels;
}

/* Of all channels together, and of each. */
static void begin_anew(struct top *top)
{
	uint32_t count = channels_of(top) + 1;
	const struct r3ring_load *load = top->model->load;

	top->since = calloc(count, sizeof(*top->since));
	for (uint32_t i = 0; top->since && i < count; i++) {
		if (since_create(&top->since[i], load, i ? i - 1 : R3RING_LOAD_MERGED, SINCE_NOW))
			return;
		top->since_count++;
	}
}

static void reset(struct top *top)
{
	top_losses_reset(&top->losses);
	top->losses_since_ns = clock_now_ns();
	top->window = TOP_SINCE;
	top_forget_reset(top);
	if (top->follower)
		begin_anew(top);
}

static void pause_or_go_on(struct top *top)
{
	top->paused_ns = top->paused_ns ? 0 : clock_now_ns();
}

static void turn_to(struct top *top, enum top_page page)
{
	top->page = top->page == page ? TOP_MAIN : page;
	top->part = (struct page_part){0};
}

/* Away from a page; returns false where there is nowhere to go back to. */
static bool turn_back(struct top *top)
{
	if (top->page == TOP_MAIN)
		return false;
	turn_to(top, TOP_MAIN);
	return true;
}

/* Of what was shown last; whoever draws knows how much there is now. */
static void scroll(struct top *top, int key)
{
	struct page_part *part = &top->part;
	uint32_t by = key == TOP_KEY_UP || key == TOP_KEY_DOWN ? 1 : part->shown;
	uint32_t last = part->all - part->shown;

	if (key == TOP_KEY_HOME || key == TOP_KEY_END)
		part->first = key == TOP_KEY_HOME ? 0 : last;
	else if (key == TOP_KEY_UP || key == TOP_KEY_PAGE_UP)
		part->first -= by < part->first ? by : part->first;
	else
		part->first += by < last - part->first ? by : last - part->first;
}

/* What asks for other figures than those that are shown ends a pause. */
bool top_key(struct top *top, int key)
{
	if (key > 0 && key < 128 && strchr("icwr", key))
		top->paused_ns = 0;
	switch (key) {
	case 'q':
		return turn_back(top);
	case TOP_KEY_ESCAPE:
		turn_back(top);
		break;
	case 'i':
		follow_next(top);
		break;
	case 'c':
		top->channel = top->channel < channels_of(top) ? top->channel + 1 : 0;
		break;
	case 'w':
		top->window = (top->window + 1) % TOP_WINDOWS;
		break;
	case 'l':
		top->logarithmic = !top->logarithmic;
		break;
	case 'p':
	case ' ':
		pause_or_go_on(top);
		break;
	case 'r':
		reset(top);
		break;
	case 'd':
		turn_to(top, TOP_LOSSES);
		break;
	case 't':
		turn_to(top, TOP_TABLE);
		break;
	case '?':
	case 'h':
		turn_to(top, TOP_HELP);
		break;
	case TOP_KEY_UP ... TOP_KEY_END:
		scroll(top, key);
		break;
	default:
		break;
	}
	return true;
}
