/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at what a follower has, while its thread goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/follower_internal.h"

const char *follower_name(const struct follower *follower)
{
	return tail_name(follower->tail);
}

struct engine_model *follower_model(struct follower *follower)
{
	struct engine_model *model;

	pthread_mutex_lock(&follower->lock);
	model = engine_model_get(follower->now);
	pthread_mutex_unlock(&follower->lock);
	return model;
}

bool follower_counts(struct follower *follower, const struct engine_model *model)
{
	bool now;

	pthread_mutex_lock(&follower->lock);
	now = follower->now == model;
	pthread_mutex_unlock(&follower->lock);
	return now;
}

static bool is_left_out(const struct followed *channel)
{
	return channel->other_model && !channel->ended;
}

void follower_get_status(struct follower *follower, struct follower_status *status)
{
	*status = (struct follower_status){0};
	tail_get_status(follower->tail, &status->tail);
	pthread_mutex_lock(&follower->lock);
	status->channels = follower->channels;
	status->expert_ranks = follower->now->expert_ranks;
	status->models = follower->now->number + 1;
	memcpy(status->model, follower->now->name, sizeof(status->model));
	for (uint32_t i = 0; i < follower->channels; i++) {
		status->other_model |= is_left_out(&follower->channel[i]);
		status->ends_unfollowed += follower->channel[i].ends_unfollowed;
	}
	status->signatures = follower->signatures_stats;
	follower_add_signatures(&status->signatures, &follower->signatures_before);
	pthread_mutex_unlock(&follower->lock);
}

void follower_channel_name(struct follower *follower, uint32_t channel, char name[128])
{
	pthread_mutex_lock(&follower->lock);
	snprintf(name, 128, "%s",
		 channel < follower->channels ? follower->channel[channel].name : "");
	pthread_mutex_unlock(&follower->lock);
}

bool follower_channel_ended(struct follower *follower, uint32_t channel)
{
	bool ended;

	pthread_mutex_lock(&follower->lock);
	ended = channel < follower->channels && follower->channel[channel].ended;
	pthread_mutex_unlock(&follower->lock);
	return ended;
}

int follower_left_out(struct follower *follower, struct follower_left_out **list)
{
	struct follower_left_out *made;
	int count = 0;

	*list = NULL;
	pthread_mutex_lock(&follower->lock);
	made = calloc(follower->channels + 1, sizeof(*made));
	for (uint32_t i = 0; made && i < follower->channels; i++) {
		const struct followed *channel = &follower->channel[i];

		if (!is_left_out(channel))
			continue;
		memcpy(made[count].channel, channel->name, sizeof(channel->name));
		memcpy(made[count++].model, channel->model, sizeof(channel->model));
	}
	pthread_mutex_unlock(&follower->lock);
	if (made && count)
		*list = made;
	else
		free(made);
	return made ? count : -ENOMEM;
}

bool follower_runs(struct follower *follower, const char *id)
{
	for (uint32_t i = 0; i < follower->named; i++)
		if (!follower->heard[i].follows && !follower_channel_ended(follower, i) &&
		    r3ring_requests_runs(follower->heard[i].names, id))
			return true;
	return false;
}

int follower_load_channel(struct follower *follower, const char *name)
{
	int found = -ENOENT;

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; found == -ENOENT && i < follower->channels; i++) {
		if (strcmp(follower->channel[i].name, name) == 0)
			found = follower->channel[i].load;
	}
	pthread_mutex_unlock(&follower->lock);
	return found;
}
