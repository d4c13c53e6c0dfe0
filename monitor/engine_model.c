/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/engine_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

/* A channel's layer table; none before its first schema. */
struct engine_layers {
	struct r3ring_layer_entry *entry;
	uint32_t count;
};

static void free_model(struct engine_model *model)
{
	if (model->drop)
		model->drop(model->more);
	for (uint32_t i = 0; i < model->channels; i++)
		free(model->layers[i].entry);
	free(model->layers);
	r3ring_signatures_destroy(model->signatures);
	r3ring_load_destroy(model->load);
	free(model);
}

int engine_model_create(struct engine_model **model, const struct engine_model_options *options,
			struct r3ring_error *err)
{
	struct engine_model *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for a load");
	made->holders = 1;
	r = r3ring_load_create(&made->load, &options->load, err);
	if (r == 0 && !options->load_only)
		r = r3ring_signatures_create(&made->signatures, NULL, err);
	if (r == 0 && made->signatures && options->history)
		r = r3ring_signatures_keep(made->signatures, options->history);
	if (r)
		free_model(made);
	else
		*model = made;
	return r;
}

struct engine_model *engine_model_get(struct engine_model *model)
{
	r3ring_fetch_add_u32(&model->holders, 1);
	return model;
}

/* All operations on the count are read-modify-writes, whose acquire and release order what its
 * holders did before the end. */
void engine_model_put(struct engine_model *model)
{
	if (model && r3ring_fetch_add_u32(&model->holders, UINT32_MAX) == 1)
		free_model(model);
}

int engine_model_channel(struct engine_model *model, const char *name)
{
	if (model->signatures)
		r3ring_signatures_channel(model->signatures, name);
	return r3ring_load_channel(model->load, name);
}

/* ---- which model it is ------------------------------------------------------ */

static bool same_layers(const struct engine_layers *layers, const struct r3ring_record *schema)
{
	if (layers->count != schema->u.schema.head.layers)
		return false;
	for (uint32_t i = 0; i < layers->count; i++)
		if (layers->entry[i].layer_id != schema->u.schema.layers[i].layer_id ||
		    layers->entry[i].kind != schema->u.schema.layers[i].kind)
			return false;
	return true;
}

bool engine_model_fits(const struct engine_model *model, uint32_t channel,
		       const struct r3ring_record *schema)
{
	const struct r3ring_schema_record *head = &schema->u.schema.head;

	if (!model->experts)
		return true;
	if (strncmp(model->name, head->model, sizeof(model->name)) != 0 ||
	    model->experts != head->experts || model->top_k != head->top_k)
		return false;
	return channel >= model->channels || !model->layers[channel].entry ||
	       same_layers(&model->layers[channel], schema);
}

static int make_room(struct engine_model *model, uint32_t channel)
{
	struct engine_layers *layers;

	if (channel < model->channels)
		return 0;
	layers = realloc(model->layers, (channel + 1) * sizeof(*layers));
	if (!layers)
		return -ENOMEM;
	memset(layers + model->channels, 0, (channel + 1 - model->channels) * sizeof(*layers));
	model->layers = layers;
	model->channels = channel + 1;
	return 0;
}

int engine_model_note(struct engine_model *model, uint32_t channel,
		      const struct r3ring_record *schema)
{
	const struct r3ring_schema_record *head = &schema->u.schema.head;
	size_t bytes = head->layers * sizeof(struct r3ring_layer_entry);
	struct r3ring_layer_entry *entry;

	if (make_room(model, channel))
		return -ENOMEM;
	if (!model->layers[channel].entry) {
		entry = malloc(bytes);
		if (!entry)
			return -ENOMEM;
		memcpy(entry, schema->u.schema.layers, bytes);
		model->layers[channel] = (struct engine_layers){entry, head->layers};
	}
	if (!model->experts)
		snprintf(model->name, sizeof(model->name), "%.*s", (int)sizeof(head->model) - 1,
			 head->model);
	model->experts = head->experts;
	model->top_k = head->top_k;
	if (head->rank.ep.size > model->expert_ranks)
		model->expert_ranks = head->rank.ep.size;
	return 0;
}

/* ---- one after another -------------------------------------------------------- */

void engine_model_add_accounts(struct r3ring_load_accounts *to,
			       const struct r3ring_load_accounts *from)
{
	to->counted += from->counted;
	to->gaps += from->gaps;
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		to->left_out[i] += from->left_out[i];
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		to->lost[i] += from->lost[i];
}

int engine_model_follow(struct engine_model *model, struct engine_model *former)
{
	struct r3ring_load_snapshot *snapshot;
	int r = r3ring_load_snapshot_create(&snapshot);

	if (r)
		return r;
	for (uint32_t i = 0; r3ring_load_end(former->load, i) == 0; i++)
		;
	r = r3ring_load_read(former->load, R3RING_LOAD_MERGED, R3RING_LOAD_EVER,
			     R3RING_LOAD_ANY_EPOCH, snapshot);
	if (r == 0 || r == -ENODATA) {
		model->number = former->number + 1;
		model->before = former->before;
		/* Of one that nothing was counted of they are empty. */
		engine_model_add_accounts(&model->before,
					  &r3ring_load_snapshot_info(snapshot)->accounts);
		r = 0;
	}
	r3ring_load_snapshot_free(snapshot);
	return r;
}
