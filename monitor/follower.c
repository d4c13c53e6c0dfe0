/* SPDX-License-Identifier: Apache-2.0 */
/* Following an engine's channels: which model each is of, and what they say counted in it. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/socket.h"
#include "monitor/follower_internal.h"

/* ---- models --------------------------------------------------------------- */

static struct engine_model *model_of(const struct follower *follower, const struct heard *heard)
{
	if (heard->counts == COUNTS_NOW)
		return follower->now;
	return heard->counts == COUNTS_NEXT ? follower->next : NULL;
}

static void end_load(struct follower *follower, uint32_t channel)
{
	struct engine_model *model = model_of(follower, &follower->heard[channel]);
	int load = channel < follower->channels ? follower->channel[channel].load : -ENOMEM;

	if (model && load >= 0)
		r3ring_load_end(model->load, (uint32_t)load);
}

static void count_in(struct follower *follower, uint32_t channel, enum counts_in counts)
{
	follower->heard[channel].counts = counts;
	pthread_mutex_lock(&follower->lock);
	if (channel < follower->channels)
		follower->channel[channel].other_model = counts != COUNTS_NOW;
	pthread_mutex_unlock(&follower->lock);
}

static void drop_next(struct follower *follower)
{
	for (uint32_t i = 0; i < follower->named; i++)
		if (follower->heard[i].counts == COUNTS_NEXT)
			count_in(follower, i, COUNTS_NOWHERE);
	engine_model_put(follower->next);
	follower->next = NULL;
}

/* Whether any channel but this one is of the next model. */
static bool others_have_next(const struct follower *follower, uint32_t but)
{
	for (uint32_t i = 0; i < follower->named; i++)
		if (i != but && follower->heard[i].counts == COUNTS_NEXT)
			return true;
	return false;
}

/* Their indices in its load are those that they have in the other's. */
static bool announce_all(struct follower *follower, struct engine_model *model)
{
	bool same = true;

	for (uint32_t i = 0; same && i < follower->channels; i++)
		same = engine_model_channel(model, follower->channel[i].name) ==
		       follower->channel[i].load;
	return same;
}

/* Makes a model for the channel's SCHEMA to begin; without memory there is none. */
static void make_next(struct follower *follower)
{
	if (engine_model_create(&follower->next, &follower->model, NULL)) {
		follower->next = NULL;
		return;
	}
	if (!announce_all(follower, follower->next))
		drop_next(follower);
}

/* Whose SCHEMA does not fit what is counted now is of an engine that has come back with another
 * model, or with its layers elsewhere. */
static enum counts_in choose_model(struct follower *follower, uint32_t channel,
				   const struct r3ring_record *schema)
{
	if (engine_model_fits(follower->now, channel, schema))
		return COUNTS_NOW;
	if (follower->next && !engine_model_fits(follower->next, channel, schema) &&
	    !others_have_next(follower, channel))
		drop_next(follower);
	if (!follower->next)
		make_next(follower);
	return follower->next && engine_model_fits(follower->next, channel, schema)
		       ? COUNTS_NEXT
		       : COUNTS_NOWHERE;
}

/* Counters go on; what is kept now is of the new model alone. */
void follower_add_signatures(struct r3ring_signatures_stats *to,
			     const struct r3ring_signatures_stats *from)
{
	to->evicted += from->evicted;
	to->forgotten += from->forgotten;
	to->rows += from->rows;
	to->rows_inherited += from->rows_inherited;
	to->rows_missing += from->rows_missing;
	to->rows_recomputed += from->rows_recomputed;
	to->rows_unkept += from->rows_unkept;
	to->rows_unattributed += from->rows_unattributed;
	to->keys_forgotten += from->keys_forgotten;
}

/* Whether channels of the next model are all that has not ended. */
static bool next_is_alone(struct follower *follower)
{
	bool alone = follower->next && others_have_next(follower, UINT32_MAX);

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; i < follower->named && i < follower->channels; i++)
		alone &= follower->channel[i].ended || follower->heard[i].counts == COUNTS_NEXT;
	pthread_mutex_unlock(&follower->lock);
	return alone;
}

/* Once nothing of the engine that was is left. Whoever looks at its model still holds it. */
static void replace_model(struct follower *follower)
{
	struct engine_model *former = follower->now;
	struct r3ring_signatures_stats stats = {0};

	if (!next_is_alone(follower) || engine_model_follow(follower->next, former))
		return;
	if (former->signatures)
		r3ring_signatures_get_stats(former->signatures, &stats);
	pthread_mutex_lock(&follower->lock);
	follower->now = follower->next;
	follower_add_signatures(&follower->signatures_before, &stats);
	follower->signatures_stats = (struct r3ring_signatures_stats){0};
	pthread_mutex_unlock(&follower->lock);
	follower->next = NULL;
	for (uint32_t i = 0; i < follower->named; i++)
		count_in(follower, i, COUNTS_NOW);
	if (follower->hooks.model)
		follower->hooks.model(follower->hooks.context, former, follower->now);
	engine_model_put(former);
}

static void note_name(struct follower *follower, uint32_t channel, const char *model)
{
	pthread_mutex_lock(&follower->lock);
	if (channel < follower->channels)
		snprintf(follower->channel[channel].model, sizeof(follower->channel->model), "%s",
			 model);
	pthread_mutex_unlock(&follower->lock);
}

/* It is told apart before anything is fed: what it had in the other model has ended. */
static void take_schema(struct follower *follower, uint32_t channel,
			const struct r3ring_record *schema)
{
	enum counts_in counts = choose_model(follower, channel, schema);
	struct engine_model *model = counts == COUNTS_NEXT ? follower->next : follower->now;
	bool noted;

	note_name(follower, channel, schema->u.schema.head.model);
	if (counts != follower->heard[channel].counts)
		end_load(follower, channel);
	count_in(follower, channel, counts);
	if (follower->next && !others_have_next(follower, UINT32_MAX))
		drop_next(follower);
	if (counts == COUNTS_NOWHERE)
		return;
	pthread_mutex_lock(&follower->lock);
	noted = engine_model_note(model, channel, schema) == 0;
	pthread_mutex_unlock(&follower->lock);
	if (!noted)
		count_in(follower, channel, COUNTS_NOWHERE);
	replace_model(follower);
}

/* ---- following ------------------------------------------------------------ */

/* A load numbers channels as they are announced: as the reader does. So all models' do. */
static int announce(struct follower *follower, const char *name)
{
	int load = engine_model_channel(follower->now, name);

	if (follower->next && engine_model_channel(follower->next, name) != load)
		drop_next(follower);
	return load;
}

static void note_channel(struct follower *follower, uint32_t channel, const char *name)
{
	int load = announce(follower, name);
	struct followed *channels;

	pthread_mutex_lock(&follower->lock);
	channels = realloc(follower->channel, (channel + 1) * sizeof(*channels));
	if (channels) {
		follower->channel = channels;
		channels[channel] = (struct followed){.load = load};
		snprintf(channels[channel].name, sizeof(channels->name), "%s", name);
		follower->channels = channel + 1;
	}
	pthread_mutex_unlock(&follower->lock);
}

static bool is_draft(const char *name)
{
	struct r3ring_channel_name parsed;

	return channel_name_parse(&parsed, name, NULL) == 0 && parsed.draft;
}

static int take_channel(void *context, uint32_t channel, const char *name)
{
	struct follower *follower = context;
	struct heard *heard = realloc(follower->heard, (channel + 1) * sizeof(*heard));

	if (!heard)
		return -ENOMEM;
	follower->heard = heard;
	heard[channel] =
		(struct heard){.names = r3ring_requests_create(), .follows = is_draft(name)};
	if (!heard[channel].names)
		return -ENOMEM;
	follower->named = channel + 1;
	note_channel(follower, channel, name);
	return 0;
}

/* By whatever record: who was lapped may not have the generation's first one. What has begun
 * anew has not ended, whatever was judged before. */
static void note_generation(struct follower *follower, uint32_t channel,
			    const struct r3ring_view *view)
{
	struct heard *heard = &follower->heard[channel];

	if (heard->generation == view->generation)
		return;
	heard->generation = view->generation;
	channel_losses_generation(&heard->losses, view->generation, view->seq == 1);
	pthread_mutex_lock(&follower->lock);
	if (channel < follower->channels)
		follower->channel[channel].ended = false;
	pthread_mutex_unlock(&follower->lock);
}

static void note_losses(struct follower *follower, uint32_t channel, const struct r3ring_view *view,
			const struct r3ring_record *record)
{
	struct channel_losses *losses = &follower->heard[channel].losses;

	if (!channel_losses_takes(record->type) || view->flags & R3RING_DESC_REPEATED)
		return;
	channel_losses_record(losses, record, true);
	pthread_mutex_lock(&follower->lock);
	if (channel < follower->channels)
		follower->channel[channel].ends_unfollowed = losses->account.unfollowed;
	pthread_mutex_unlock(&follower->lock);
}

/* What is out of memory is lost to those that are fed, which say so. A ring's end is not its
 * engine's, which may go on under the next daemon. */
static void count(struct engine_model *model, const char *name, const struct r3ring_view *view,
		  const struct r3ring_record *record)
{
	int index = r3ring_load_channel(model->load, name);

	if (index >= 0 && record->type != R3RING_CLOSED)
		r3ring_load_feed(model->load, (uint32_t)index, view, record);
	if (model->signatures)
		index = r3ring_signatures_channel(model->signatures, name);
	if (model->signatures && index >= 0)
		r3ring_signatures_feed(model->signatures, (uint32_t)index, view, record);
}

static void take_record(void *context, uint32_t channel, const char *name,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct follower *follower = context;
	struct heard *heard = &follower->heard[channel];
	struct engine_model *model;

	note_generation(follower, channel, view);
	note_losses(follower, channel, view, record);
	if (record->type == R3RING_SCHEMA) {
		take_schema(follower, channel, record);
		heard->follows = is_draft(name) || record->u.schema.head.replica != 0;
	}
	model = model_of(follower, heard);
	if (model)
		count(model, name, view, record);
	r3ring_requests_feed(heard->names, view, record);
	if (follower->hooks.record)
		follower->hooks.record(follower->hooks.context, heard->names, view, record);
}

/* Of generations that were passed over the records' own numbers tell nothing. */
static void count_gap(struct engine_model *model, const char *name)
{
	int index = r3ring_load_channel(model->load, name);

	if (index >= 0)
		r3ring_load_gap(model->load, (uint32_t)index);
	if (model->signatures)
		index = r3ring_signatures_channel(model->signatures, name);
	if (model->signatures && index >= 0)
		r3ring_signatures_gap(model->signatures, (uint32_t)index);
}

static void take_gap(void *context, uint32_t channel)
{
	struct follower *follower = context;
	struct engine_model *model = model_of(follower, &follower->heard[channel]);
	char name[sizeof(follower->channel->name)];

	follower_channel_name(follower, channel, name);
	if (model && name[0])
		count_gap(model, name);
	r3ring_requests_gap(follower->heard[channel].names);
}

/* Nothing is left to be looked at where the load has none of those that ended last. */
static void end_loads(struct follower *follower)
{
	bool any_runs = false;

	for (uint32_t i = 0; i < follower->channels; i++)
		any_runs |= !follower->channel[i].ended;
	for (uint32_t i = 0; any_runs && i < follower->channels; i++) {
		if (follower->channel[i].ended)
			end_load(follower, i);
	}
}

static void take_ends(void *context, const bool *ended, uint32_t channels)
{
	struct follower *follower = context;

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; i < channels && i < follower->channels; i++)
		follower->channel[i].ended = ended[i];
	end_loads(follower);
	pthread_mutex_unlock(&follower->lock);
	replace_model(follower);
	if (follower->hooks.ends)
		follower->hooks.ends(follower->hooks.context);
}

/* They are the feeding thread's to read. */
static void note_signatures(void *context)
{
	struct follower *follower = context;
	struct r3ring_signatures_stats stats;

	r3ring_signatures_get_stats(follower->now->signatures, &stats);
	pthread_mutex_lock(&follower->lock);
	follower->signatures_stats = stats;
	pthread_mutex_unlock(&follower->lock);
}

static void take_turn(void *context)
{
	const struct follower *follower = context;

	follower->hooks.turn(follower->hooks.context);
}

/* ---- opening and closing -------------------------------------------------- */

static void free_follower(struct follower *follower)
{
	tail_close(follower->tail);
	for (uint32_t i = 0; i < follower->named; i++)
		r3ring_requests_destroy(follower->heard[i].names);
	free(follower->heard);
	free(follower->channel);
	engine_model_put(follower->next);
	engine_model_put(follower->now);
	pthread_mutex_destroy(&follower->lock);
	free(follower);
}

int follower_open(struct follower **follower, const struct follower_options *options,
		  struct r3ring_error *err)
{
	struct follower *made = calloc(1, sizeof(*made));
	const struct tail_options tail = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.label = options->label,
		.look_ms = options->look_ms,
		.watch = options->watch,
		.hooks = {.context = made,
			  .channel = take_channel,
			  .record = take_record,
			  .gap = take_gap,
			  .ends = take_ends,
			  .read = options->load_only ? NULL : note_signatures,
			  .turn = options->hooks.turn ? take_turn : NULL},
	};
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->hooks = options->hooks;
	made->model = (struct engine_model_options){
		.load = options->load,
		.load_only = options->load_only,
		.history = options->history,
	};
	r = engine_model_create(&made->now, &made->model, err);
	if (r)
		r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
				 strerror(-r));
	/* Hooks may be called from then on. */
	*follower = made;
	if (r == 0)
		r = tail_open(&made->tail, &tail, err);
	if (r) {
		*follower = NULL;
		free_follower(made);
	}
	return r;
}

void follower_close(struct follower *follower)
{
	if (follower)
		free_follower(follower);
}
