/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/ids.h"
#include "archive/export/plan.h"
#include "consumer/layers.h"

#define STAGES_TEXT 96
#define LAYERS_TEXT 32

/* ---- layers that are known ---------------------------------------------- */

static const struct r3ring_layer_entry *find(const struct r3ring_layer_entry *layer,
					     uint32_t layers,
					     const struct r3ring_layer_entry *which)
{
	return layers ? bsearch(which, layer, layers, sizeof(*layer), layers_compare) : NULL;
}

int export_layers_add(struct export_known_layers *known, const struct r3ring_layer_entry *layer,
		      uint32_t layers)
{
	int rc = layers_add(&known->layer, &known->layers, layer, layers);

	if (!rc)
		layers_sort(known->layer, known->layers);
	return rc;
}

/* ---- dtype and fills ---------------------------------------------------- */

static enum export_dtype narrowest_signed(uint32_t experts)
{
	if (experts <= INT8_MAX + 1u)
		return EXPORT_I8;
	return experts <= INT16_MAX + 1u ? EXPORT_I16 : EXPORT_I32;
}

/* By the number of experts, not by the ids that happen to come: one type an export. */
static int choose_dtype(struct export_plan *plan, struct r3ring_error *err)
{
	const struct export_format *format = plan->format;

	plan->dtype = plan->options->dtype;
	if (!plan->dtype)
		plan->dtype = format->signed_by_experts ? narrowest_signed(plan->experts)
							: format->dtype;
	if (plan->experts && plan->experts - 1 > export_dtype_most(plan->dtype))
		return r3ring_error_set(
			err, -ERANGE,
			"%s has %u experts: ids up to %u do not fit %s, which ends at %llu%s",
			plan->model, plan->experts, plan->experts - 1,
			export_dtype_name(plan->dtype),
			(unsigned long long)export_dtype_most(plan->dtype),
			format->signed_by_experts ? "; leave --dtype out"
			: format->fixed           ? "; export safetensors"
						  : "; give --dtype u16 or i32");
	return 0;
}

/* -1 as u8 is expert 255. As u16 it is 0xFFFF, which is no expert ever. */
static int check_fill(const struct export_plan *plan, const char *option, enum export_fill fill,
		      struct r3ring_error *err)
{
	if (fill == EXPORT_FILL_MINUS_ONE && plan->dtype == EXPORT_U8)
		return r3ring_error_set(err, -ERANGE,
					"%s -1: u8 has no -1, it would read as expert 255; give "
					"--dtype u16 or i16, or %s zeros or arange",
					option, option);
	if (fill == EXPORT_FILL_ARANGE && plan->top_k > plan->experts)
		return r3ring_error_set(err, -ERANGE, "%s arange: %u ids of %u experts", option,
					plan->top_k, plan->experts);
	return 0;
}

static int choose_fills(struct export_plan *plan, struct r3ring_error *err)
{
	const struct export_options *options = plan->options;
	bool pads = plan->rows == EXPORT_ROWS_FULL || plan->all == EXPORT_LAYERS_ALL;
	int rc;

	plan->missing = options->missing ? options->missing : EXPORT_FILL_ERROR;
	plan->pad = options->pad ? options->pad : plan->format->pad;
	rc = check_fill(plan, "--missing", plan->missing, err);
	return rc || !pads ? rc : check_fill(plan, "--pad", plan->pad, err);
}

/* ---- layers of the output ----------------------------------------------- */

static bool in_range(const struct export_options *options, int32_t number)
{
	return !options->layer_end ||
	       (number >= options->layer_first && number < options->layer_end);
}

static void add_layer(struct export_plan *plan, int32_t number, uint8_t kind, bool routes)
{
	plan->layer[plan->layers++] =
		(struct r3ring_layer_entry){.layer_id = number, .kind = kind, .bound = routes};
}

static const struct r3ring_layer_entry *known_at(const struct export_known_layers *known,
						 uint32_t at)
{
	return at < known->layers ? &known->layer[at] : NULL;
}

/* Model layers 0 up to the last one, with those between them that do not route. */
static void add_all(struct export_plan *plan, const struct export_known_layers *known)
{
	uint32_t next = 0;

	for (int32_t number = 0; number < (int32_t)R3RING_LAYERS_MAX; number++) {
		const struct r3ring_layer_entry *layer = known_at(known, next);
		bool routes = layer && layer->kind != R3RING_LAYER_MTP && layer->layer_id == number;

		if (!routes && (!layer || layer->kind == R3RING_LAYER_MTP) &&
		    (uint32_t)number >= plan->options->model_layers)
			break;
		if (in_range(plan->options, number))
			add_layer(plan, number, routes ? layer->kind : R3RING_LAYER_MOE, routes);
		while (layer && layer->kind != R3RING_LAYER_MTP && layer->layer_id <= number)
			layer = known_at(known, ++next);
	}
}

static void add_routing(struct export_plan *plan, const struct export_known_layers *known, bool mtp)
{
	for (uint32_t i = 0; i < known->layers; i++) {
		const struct r3ring_layer_entry *layer = &known->layer[i];

		if ((layer->kind == R3RING_LAYER_MTP) == mtp &&
		    (mtp || in_range(plan->options, layer->layer_id)))
			add_layer(plan, layer->layer_id, layer->kind, true);
	}
}

static int check_model_layers(const struct export_plan *plan,
			      const struct export_known_layers *known, struct r3ring_error *err)
{
	const uint32_t said = plan->options->model_layers;
	int32_t last = -1;

	for (uint32_t i = 0; i < known->layers; i++)
		if (known->layer[i].kind != R3RING_LAYER_MTP && known->layer[i].layer_id > last)
			last = known->layer[i].layer_id;
	if (!said || last < (int32_t)said)
		return 0;
	return r3ring_error_set(err, -EINVAL,
				"--model-layers %u: %s has a layer %d that routes, so it has %d at "
				"least",
				said, plan->model, last, last + 1);
}

static int choose_layers(struct export_plan *plan, const struct export_known_layers *known,
			 struct r3ring_error *err)
{
	const struct export_options *options = plan->options;
	int rc = check_model_layers(plan, known, err);

	if (rc)
		return rc;
	plan->layer = calloc(R3RING_LAYERS_MAX + known->layers, sizeof(*plan->layer));
	if (!plan->layer)
		return r3ring_error_set(err, -ENOMEM, "no memory");
	if (plan->all == EXPORT_LAYERS_ALL)
		add_all(plan, known);
	else
		add_routing(plan, known, false);
	if (options->mtp)
		add_routing(plan, known, true);
	if (plan->layers)
		return 0;
	return r3ring_error_set(err, -ENOENT,
				"--layers %d:%d: %s has none of them; its layers "
				"that route are %d to %d",
				options->layer_first, options->layer_end, plan->model,
				known->layers ? known->layer[0].layer_id : 0,
				known->layers ? known->layer[known->layers - 1].layer_id : 0);
}

uint32_t export_plan_mtp_layers(const struct export_plan *plan)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->layers; i++)
		count += plan->layer[i].kind == R3RING_LAYER_MTP;
	return count;
}

/* ---- layers that nobody knows -------------------------------------------- */

static bool within_stages(const struct export_plan *plan, const struct export_stages *stages)
{
	const struct export_options *options = plan->options;

	return plan->all != EXPORT_LAYERS_ALL && options->layer_end &&
	       export_stages_cover(stages, options->layer_first, options->layer_end) &&
	       (!options->mtp || export_stages_end(stages));
}

/* The layers from the first that is in the plan to the last, where all between are known. */
static void layers_text(char text[LAYERS_TEXT], const struct export_plan *plan,
			const struct export_stages *stages)
{
	int32_t first = INT32_MAX, last = -1;

	for (uint32_t i = 0; i < plan->layers; i++) {
		const struct r3ring_layer_entry *layer = &plan->layer[i];

		if (layer->kind == R3RING_LAYER_MTP || !layer->bound)
			continue;
		first = layer->layer_id < first ? layer->layer_id : first;
		last = layer->layer_id > last ? layer->layer_id : last;
	}
	if (last >= 0 && export_stages_cover(stages, first, last + 1))
		snprintf(text, LAYERS_TEXT, "%d:%d", first, last + 1);
	else
		snprintf(text, LAYERS_TEXT, "A:B");
}

int export_plan_check_stages(const struct export_plan *plan, const struct export_stages *stages,
			     struct r3ring_error *err)
{
	char missing[STAGES_TEXT], layers[LAYERS_TEXT];

	if (export_stages_whole(stages) || within_stages(plan, stages))
		return 0;
	export_stages_missing(stages, missing, sizeof(missing));
	layers_text(layers, plan, stages);
	return r3ring_error_set(
		err, -ENODATA,
		"pipeline stage %s (counted from 0) was not recorded, and which layers it has is "
		"not "
		"known: %s; nothing is written. Record all ranks of the engine, or take the layers "
		"that are here: %s--layers %s",
		missing,
		plan->all == EXPORT_LAYERS_ALL ? "they would be padded as if they did not route"
					       : "they would be left out",
		plan->format->layers == EXPORT_LAYERS_ALL || plan->format->whole
			? "--format safetensors with "
			: "",
		layers);
}

/* ---- the plan ----------------------------------------------------------- */

int export_plan_make(struct export_plan *plan, const struct export_known_layers *known,
		     const struct r3ring_assembled_info *info, struct r3ring_error *err)
{
	const struct export_options *options = plan->options;
	int rc;

	plan->experts = info->experts;
	plan->top_k = info->top_k;
	plan->rows = options->rows ? options->rows : plan->format->rows;
	plan->all = options->layers ? options->layers : plan->format->layers;
	strncpy(plan->model, info->model, R3RING_MODEL_NAME_MAX);
	rc = choose_dtype(plan, err);
	if (!rc)
		rc = choose_fills(plan, err);
	if (!rc)
		rc = choose_layers(plan, known, err);
	plan->row_bytes = (size_t)plan->layers * plan->top_k * export_dtype_bytes(plan->dtype);
	return rc;
}

int export_plan_map(const struct export_plan *plan, const struct export_known_layers *known,
		    const struct r3ring_assembled_info *info, uint16_t *from,
		    struct r3ring_error *err)
{
	char id[EXPORT_ID_WORDS];

	for (uint32_t i = 0; i < info->layers; i++)
		if (!find(known->layer, known->layers, &info->layer[i]))
			return r3ring_error_set(
				err, -ERANGE,
				"request '%s' has a layer %d that no channel had told of when the "
				"first was written: export them apart, with --request or "
				"--instance",
				export_id_words(id, info->id), info->layer[i].layer_id);
	for (uint32_t i = 0; i < plan->layers; i++) {
		const struct r3ring_layer_entry *there =
			find(info->layer, info->layers, &plan->layer[i]);

		from[i] = there ? (uint16_t)(there - info->layer) : EXPORT_LAYER_ABSENT;
		if (!plan->layer[i].bound)
			from[i] = EXPORT_LAYER_DENSE;
	}
	return 0;
}
