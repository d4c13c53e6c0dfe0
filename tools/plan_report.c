/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: what it found, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/json_values.h"
#include "tools/output.h"
#include "tools/plan.h"
#include "tools/quantity.h"

static const char *const reasons[R3RING_LOAD_REASONS] = {
	[R3RING_LOAD_WARMUP] = "warmup",
	[R3RING_LOAD_PADDING] = "padding",
	[R3RING_LOAD_REJECTED] = "rejected",
	[R3RING_LOAD_RECOMPUTED] = "recomputed",
};

/* ---- JSON ----------------------------------------------------------------- */

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
	json_t *left_out = json_object(), *lost = json_object();

	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		if (accounts->left_out[i])
			json_object_set_new(left_out, reasons[i], json_u64(accounts->left_out[i]));
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		if (accounts->lost[i])
			json_object_set_new(lost, r3ring_missing_cause_name(i),
					    json_u64(accounts->lost[i]));
	return json_pack("{s:o s:o s:o s:o}", "counted", json_u64(accounts->counted), "left_out",
			 left_out, "lost", lost, "gaps", json_u64(accounts->gaps));
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

	if (!plan->today)
		return json_null();
	today = json_balance(plan->today, &plan->balance_today, plan->ratio_today);
	json_object_set_new(today, "epoch",
			    plan->captured ? json_u64(plan->today->epoch) : json_null());
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

static json_t *json_map(const struct plan_options *options, const struct plan *plan)
{
	return json_pack("{s:i s:i s:i s:i s:i s:o s:o}", "experts", (int)plan->next->experts,
			 "physical", (int)plan->next->physical, "gpus", (int)plan->next->gpus,
			 "nodes", (int)(options->place.nodes ? options->place.nodes : 1), "groups",
			 (int)(options->place.groups ? options->place.groups : 1), "layers",
			 json_layers(plan), "physical_to_logical", json_places(plan->next));
}

static int print_json(const struct plan_options *options, const struct plan *plan)
{
	const struct r3ring_load_info *info = plan->info;
	json_t *report = json_pack(
		"{s:s s:i s:i s:i s:o s:o s:o s:o s:o}", options->instance ? "instance" : "archive",
		options->instance ? options->instance : options->archive, "channels",
		(int)info->channels, "layers", (int)info->layers, "experts", (int)info->experts,
		"steps", json_u64(info->steps), "accounts", json_accounts(&info->accounts), "today",
		json_today(plan), "planned",
		json_balance(plan->next, &plan->balance_next, plan->ratio_next), "map",
		json_map(options, plan));

	if (report && options->instance)
		json_object_set_new(report, "age_ns", json_u64(info->age_ns));
	if (report && plan->damaged)
		json_object_set_new(report, "damaged", json_u64(plan->damaged));
	return output_json("r3ring plan", report);
}

/* ---- text -------------------------------------------------------------------- */

static void print_source(const struct plan_options *options, const struct plan *plan)
{
	const struct r3ring_load_info *info = plan->info;
	char age[QUANTITY_TEXT];

	printf("%u layer%s of %u experts; %" PRIu64 " step%s of %u channel%s", info->layers,
	       info->layers == 1 ? "" : "s", info->experts, info->steps,
	       info->steps == 1 ? "" : "s", info->channels, info->channels == 1 ? "" : "s");
	if (options->instance)
		printf(", the newest %s old", quantity_duration(age, info->age_ns));
	printf("\nrows x layers: %" PRIu64 " counted", info->accounts.counted);
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
		if (info->accounts.left_out[i])
			printf(", %" PRIu64 " left out (%s)", info->accounts.left_out[i],
			       reasons[i]);
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		if (info->accounts.lost[i])
			printf(", %" PRIu64 " lost (%s)", info->accounts.lost[i],
			       r3ring_missing_cause_name(i));
	puts("\n");
}

static void print_balance(const struct plan *plan, const char *which,
			  const struct r3ring_eplb_map *map,
			  const struct r3ring_eplb_balance *balance)
{
	char what[40];

	if (map == plan->today && plan->captured)
		snprintf(what, sizeof(what), "map of epoch %" PRIu64, map->epoch);
	else
		snprintf(what, sizeof(what), "%s", map == plan->next ? "" : "in order, assumed");
	printf("%-8s %8u %5u  %9.3f %9.3f  %6d %4u  %s\n", which, map->physical, map->gpus,
	       balance->average, balance->worst, plan->info->layer[balance->worst_layer].layer_id,
	       balance->worst_gpu, what);
}

static int print_text(const struct plan_options *options, const struct plan *plan)
{
	json_t *map = json_map(options, plan);

	print_source(options, plan);
	puts("tokens of a layer's GPUs, max/mean:");
	puts("         physical  GPUs    average     worst   layer  GPU");
	if (plan->today)
		print_balance(plan, "today", plan->today, &plan->balance_today);
	else
		puts("today           ?     ?  no map was captured, and the GPUs do not divide the "
		     "experts");
	print_balance(plan, "planned", plan->next, &plan->balance_next);
	putchar('\n');
	if (!map || json_dumpf(map, stdout, JSON_COMPACT) < 0) {
		json_decref(map);
		fputs("r3ring plan: no memory for the map\n", stderr);
		return TOOL_FAILED;
	}
	json_decref(map);
	putchar('\n');
	return TOOL_DONE;
}

int plan_print(const struct plan_options *options, const struct plan *plan)
{
	return options->json ? print_json(options, plan) : print_text(options, plan);
}
