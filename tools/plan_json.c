/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON, for the tool and the service. */
#include <string.h>

#include "tools/json_values.h"
#include "tools/load_json.h"
#include "tools/plan.h"

static json_t *json_layers(const struct plan *plan)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < plan->info->layers; i++)
		json_array_append_new(array,
				      json_pack("{s:i s:s}", "layer", plan->info->layer[i].layer_id,
						"kind",
						r3ring_layer_kind_name(plan->info->layer[i].kind)));
	return array;
}

static json_t *json_accounts(const struct r3ring_load_accounts *accounts)
{
	return json_pack("{s:o s:o s:o s:o}", "counted", json_u64(accounts->counted), "left_out",
			 load_json_left_out(accounts), "lost", load_json_losses(accounts), "gaps",
			 json_u64(accounts->gaps));
}

static json_t *json_balance(const struct r3ring_eplb_map *map,
			    const struct r3ring_eplb_balance *balance, const double *ratio)
{
	json_t *layers = json_array();

	for (uint32_t i = 0; i < map->layers; i++)
		json_array_append_new(layers, json_real(ratio[i]));
	return json_pack("{s:i s:i s:f s:f s:i s:i s:i s:o}", "physical", (int)map->physical,
			 "gpus", (int)map->gpus, "average", balance->average, "worst",
			 balance->worst, "worst_layer", (int)balance->worst_layer, "worst_gpu",
			 (int)balance->worst_gpu, "layers_empty", (int)balance->layers_empty,
			 "max_to_mean", layers);
}

static json_t *json_today(const struct plan *plan)
{
	json_t *today;

	if (!plan->placing.today)
		return json_null();
	today = json_balance(plan->placing.today, &plan->placing.balance_today,
			     plan->placing.ratio_today);
	json_object_set_new(today, "epoch",
			    plan->placing.captured ? json_u64(plan->placing.today->epoch)
						   : json_null());
	return today;
}

/* Whose each place is, layer by layer. */
static json_t *json_places(const struct r3ring_eplb_map *map)
{
	json_t *layers = json_array();

	for (uint32_t layer = 0; layer < map->layers; layer++) {
		const uint16_t *row = map->map + (size_t)layer * map->experts * map->replicas;
		json_t *places = json_array();

		for (uint32_t p = 0; p < map->physical; p++)
			json_array_append_new(places, json_integer(-1));
		for (uint32_t i = 0; i < map->experts * map->replicas; i++)
			if (row[i] != R3RING_MISSING)
				json_array_set_new(places, row[i], json_integer(i / map->replicas));
		json_array_append_new(layers, places);
	}
	return layers;
}

json_t *plan_json_map(const struct r3ring_eplb_options *place, const struct plan *plan)
{
	return json_pack("{s:i s:i s:i s:i s:i s:o s:o}", "experts",
			 (int)plan->placing.next->experts, "physical",
			 (int)plan->placing.next->physical, "gpus", (int)plan->placing.next->gpus,
			 "nodes", (int)(place->nodes ? place->nodes : 1), "groups",
			 (int)(place->groups ? place->groups : 1), "layers", json_layers(plan),
			 "physical_to_logical", json_places(plan->placing.next));
}

json_t *plan_json(const struct plan_options *options, const struct plan *plan)
{
	const struct r3ring_load_info *info = plan->info;
	json_t *report = json_pack(
		"{s:s s:i s:i s:i s:o s:b s:b s:o s:o s:o s:o}",
		options->instance ? "instance" : "archive",
		options->instance ? options->instance : options->archive, "channels",
		(int)info->channels, "layers", (int)info->layers, "experts", (int)info->experts,
		"steps", json_u64(info->steps), "window_cut", info->window_cut, "epochs_differ",
		info->epoch != info->epoch_oldest, "accounts", json_accounts(&info->accounts),
		"today", json_today(plan), "planned",
		json_balance(plan->placing.next, &plan->placing.balance_next,
			     plan->placing.ratio_next),
		"map", plan_json_map(&options->place, plan));

	if (report && options->instance)
		json_object_set_new(report, "age_ns", json_u64(info->age_ns));
	if (report && plan->damaged)
		json_object_set_new(report, "damaged", json_u64(plan->damaged));
	return report;
}
