/* SPDX-License-Identifier: Apache-2.0 */
/* What an output holds: options and what is known of the model, checked and joined. */
#ifndef ARCHIVE_EXPORT_PLAN_H
#define ARCHIVE_EXPORT_PLAN_H

#include "archive/export/format.h"
#include "archive/export/stages.h"

/* Layers that channels have told of, by kind and model layer number. */
struct export_known_layers {
	struct r3ring_layer_entry *layer;
	uint32_t layers;
};

/* Returns 0, -ENOMEM. */
int export_layers_add(struct export_known_layers *known, const struct r3ring_layer_entry *layer,
		      uint32_t layers);

/* Checks what can be checked before a model is known. Returns 0 or -EINVAL. */
int export_options_check(const struct export_options *options, const struct export_format *format,
			 struct r3ring_error *err);

/*
 * Fills the plan for a model.
 * Returns 0, -ERANGE (the ids do not fit the dtype), -EINVAL (no such layers), -ENOMEM.
 */
int export_plan_make(struct export_plan *plan, const struct export_known_layers *known,
		     const struct r3ring_assembled_info *info, struct r3ring_error *err);

/*
 * Of a stage that was not recorded nobody knows the layers: they would be lacking, or be padded as
 * ones that do not route.
 * Returns 0 where none of them can be in the output, or -ENODATA.
 */
int export_plan_check_stages(const struct export_plan *plan, const struct export_stages *stages,
			     struct r3ring_error *err);

/* How many of its layers are of multi-token prediction. */
uint32_t export_plan_mtp_layers(const struct export_plan *plan);

#define EXPORT_LAYER_DENSE UINT16_MAX         /* routes nothing */
#define EXPORT_LAYER_ABSENT (UINT16_MAX - 1u) /* the request has no such layer */

/*
 * Where a request's layers lie: from[plan->layers].
 * Returns 0, -ERANGE: a layer of it was not known when the plan was made.
 */
int export_plan_map(const struct export_plan *plan, const struct export_known_layers *known,
		    const struct r3ring_assembled_info *info, uint16_t *from,
		    struct r3ring_error *err);

#endif
