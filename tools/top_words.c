/* SPDX-License-Identifier: Apache-2.0 */
/* Words and ages that several parts of a frame have. */
#include "tools/top_frame.h"

const char *top_ratio(char text[16], double ratio)
{
	int digits = ratio < 9.995 ? 2 : ratio < 99.95;

	snprintf(text, 16, "%.*fx", digits, ratio);
	return text;
}

const char *top_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

bool top_is_gone(const struct top_frame *frame)
{
	return frame->picture && frame->picture->state != PICTURE_LIVE;
}

uint64_t top_loss_age(const struct top_frame *frame)
{
	uint64_t newest = frame->losses->newest_ns;

	return frame->now_ns > newest ? frame->now_ns - newest : 0;
}

bool top_is_losing(const struct top_frame *frame)
{
	return frame->losses->newest_ns && top_loss_age(frame) < TOP_LOSING_NS;
}

uint64_t top_load_age(const struct top_frame *frame)
{
	return frame->load->info.age_ns +
	       (frame->now_ns > frame->load_ns ? frame->now_ns - frame->load_ns : 0);
}

const char *top_is_past(const struct top_frame *frame)
{
	if (frame->ended)
		return "ENDED";
	return top_load_age(frame) > TOP_STALE_NS ? "OLD" : NULL;
}
