/* SPDX-License-Identifier: Apache-2.0 */
/* SCHEMA and EPLB: what a model is made of and where its experts are. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

#define CLOCK_OF_RECORDS 1u /* CLOCK_MONOTONIC */

/* ---- SCHEMA ---- */

static int schema_check_sizes(const struct r3ring_schema_record *head, struct r3ring_error *err)
{
	if (head->layers == 0)
		return RECORD_REFUSE(err, "SCHEMA record: no MoE layer; such a model has no routes "
					  "to capture");
	if (head->layers > R3RING_LAYERS_MAX)
		return RECORD_REFUSE(err, "SCHEMA record: %u layers, at most %u", head->layers,
				     R3RING_LAYERS_MAX);
	if (head->experts == 0 || head->experts > R3RING_EXPERTS_MAX)
		return RECORD_REFUSE(err, "SCHEMA record: %u experts, allowed are 1 to %u",
				     head->experts, R3RING_EXPERTS_MAX);
	if (head->top_k == 0 || head->top_k > R3RING_TOP_K_MAX || head->top_k > head->experts)
		return RECORD_REFUSE(err,
				     "SCHEMA record: top_k %u, allowed are 1 to %u and at most the "
				     "%u experts",
				     head->top_k, R3RING_TOP_K_MAX, head->experts);
	if (head->max_rows == 0 || head->max_rows > R3RING_ROWS_MAX)
		return RECORD_REFUSE(err, "SCHEMA record: max_rows %u, allowed are 1 to %u",
				     head->max_rows, R3RING_ROWS_MAX);
	return 0;
}

static int schema_check_rank(const struct r3ring_coordinates *rank, struct r3ring_error *err)
{
	const struct {
		const char *name;
		struct r3ring_coordinate at;
	} dimensions[] = {
		{"dp", rank->dp}, {"tp", rank->tp}, {"sp", rank->sp},
		{"pp", rank->pp}, {"ep", rank->ep}, {"cp", rank->cp},
	};

	for (size_t i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); i++) {
		uint16_t size = dimensions[i].at.size ? dimensions[i].at.size : 1;

		if (dimensions[i].at.index >= size)
			return RECORD_REFUSE(err, "SCHEMA record: %s index %u of a size of %u",
					     dimensions[i].name, dimensions[i].at.index, size);
	}
	return 0;
}

static int schema_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_schema_record *head = &record->u.schema.head;
	int rc = schema_check_sizes(head, err);

	if (rc)
		return rc;
	if (head->id_space != R3RING_IDS_LOGICAL)
		return RECORD_REFUSE(err,
				     "SCHEMA record: id space %u; only logical ids (0), taken "
				     "before load balancing, are carried",
				     head->id_space);
	if (head->clock != CLOCK_OF_RECORDS)
		return RECORD_REFUSE(err, "SCHEMA record: clock %u, known is CLOCK_MONOTONIC (1)",
				     head->clock);
	if (head->captures_rows > 1)
		return RECORD_REFUSE(err, "SCHEMA record: captures_rows is %u, allowed are 0 and 1",
				     head->captures_rows);
	if (!memchr(head->model, 0, sizeof(head->model)))
		return RECORD_REFUSE(err,
				     "SCHEMA record: the model name has no end within %zu bytes",
				     sizeof(head->model));
	return schema_check_rank(&head->rank, err);
}

static unsigned int schema_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	arrays[0] = (struct record_array){
		RECORD_POINTER(schema.layers),
		record->u.schema.head.layers * (uint64_t)sizeof(struct r3ring_layer_entry),
		"layers",
	};
	return 1;
}

/* Number and kind together are a layer's identity: MTP layers count anew. */
static int schema_check_unique(const struct r3ring_layer_entry *layers, uint32_t before,
			       const struct r3ring_layer_entry *layer, struct r3ring_error *err)
{
	for (uint32_t i = 0; i < before; i++)
		if (layers[i].layer_id == layer->layer_id && layers[i].kind == layer->kind)
			return RECORD_REFUSE(err,
					     "SCHEMA record: layer %d of kind %s stands twice, at "
					     "places %u and %u of the layer table",
					     layer->layer_id, r3ring_layer_kind_name(layer->kind),
					     i, before);
	return 0;
}

static int schema_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_layer_entry *layers = record->u.schema.layers;

	for (uint32_t i = 0; i < record->u.schema.head.layers; i++) {
		struct r3ring_layer_entry layer;
		int rc;

		memcpy(&layer, &layers[i], sizeof(layer));
		rc = record_check_layer_kind("SCHEMA", layer.layer_id, layer.kind, err);
		if (rc)
			return rc;
		if (layer.bound > 1)
			return RECORD_REFUSE(err,
					     "SCHEMA record: layer %d has bound %u, allowed are 0 "
					     "and 1",
					     layer.layer_id, layer.bound);
		rc = schema_check_unique(layers, i, &layer, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void schema_clear_arrays(const struct r3ring_record *record, void *arrays)
{
	struct r3ring_layer_entry *layers = arrays;

	for (uint32_t i = 0; i < record->u.schema.head.layers; i++)
		layers[i].reserved = 0;
}

const struct record_type record_schema = {
	.head_bytes = sizeof(struct r3ring_schema_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = schema_check_head,
	.arrays = schema_arrays,
	.check_arrays = schema_check_arrays,
	.clear_arrays = schema_clear_arrays,
};

/* ---- EPLB ---- */

static int eplb_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;

	if (head->layers == 0 || (uint64_t)head->first_layer + head->layers > R3RING_LAYERS_MAX)
		return RECORD_REFUSE(err,
				     "EPLB record: %u layers from place %u on, the table has "
				     "1 to %u",
				     head->layers, head->first_layer, R3RING_LAYERS_MAX);
	if (head->experts == 0 || head->experts > R3RING_EXPERTS_MAX)
		return RECORD_REFUSE(err, "EPLB record: %u experts, allowed are 1 to %u",
				     head->experts, R3RING_EXPERTS_MAX);
	if (head->physical == 0 || head->physical > R3RING_EXPERTS_MAX)
		return RECORD_REFUSE(err, "EPLB record: %u physical experts, allowed are 1 to %u",
				     head->physical, R3RING_EXPERTS_MAX);
	if (head->replicas == 0 || head->replicas > head->physical)
		return RECORD_REFUSE(err,
				     "EPLB record: %u replicas of an expert among %u physical ones",
				     head->replicas, head->physical);
	if (head->gpus == 0 || head->physical % head->gpus)
		return RECORD_REFUSE(
			err,
			"EPLB record: %u physical experts cannot be spread evenly over "
			"%u GPUs",
			head->physical, head->gpus);
	return 0;
}

static unsigned int eplb_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;

	arrays[0] = (struct record_array){
		RECORD_POINTER(eplb.map),
		(uint64_t)head->layers * head->experts * head->replicas * sizeof(uint16_t),
		"map",
	};
	return 1;
}

static int eplb_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;
	uint64_t n = (uint64_t)head->layers * head->experts * head->replicas;

	for (uint64_t i = 0; i < n; i++) {
		uint16_t physical;

		memcpy(&physical, &record->u.eplb.map[i], sizeof(physical));
		if (physical != R3RING_MISSING && physical >= head->physical)
			return RECORD_REFUSE(err,
					     "EPLB record: entry %llu of the map names physical "
					     "expert %u of %u",
					     (unsigned long long)i, physical, head->physical);
	}
	return 0;
}

const struct record_type record_eplb = {
	.head_bytes = sizeof(struct r3ring_eplb_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = eplb_check_head,
	.arrays = eplb_arrays,
	.check_arrays = eplb_check_arrays,
};
