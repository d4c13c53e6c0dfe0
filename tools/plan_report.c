/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: what it found, as text or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/load_json.h"
#include "tools/output.h"
#include "tools/plan.h"
#include "tools/quantity.h"

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
			       load_left_out_name(i));
	for (uint32_t i = 0; i < R3RING_MISSING_CAUSES; i++)
		if (info->accounts.lost[i])
			printf(", %" PRIu64 " %s (%s)", info->accounts.lost[i],
			       i == R3RING_MISSING_NOT_RECORDED ? "left out" : "lost",
			       r3ring_missing_cause_name(i));
	if (info->window_cut)
		fputs("\nthe oldest steps are left out: there are more ids than 32 bits count",
		      stdout);
	puts("\n");
}

static void print_balance(const struct plan *plan, const char *which,
			  const struct r3ring_eplb_map *map,
			  const struct r3ring_eplb_balance *balance, const char *what)
{
	printf("%-8s %8u %5u  %9.3f %9.3f  %6d %4u  %s\n", which, map->physical, map->gpus,
	       balance->average, balance->worst, plan->info->layer[balance->worst_layer].layer_id,
	       balance->worst_gpu, what);
}

static void print_today(const struct plan *plan)
{
	const struct r3ring_eplb_map *today = plan->placing.today;
	const struct r3ring_load_info *info = plan->info;
	char what[96] = "in order, assumed";

	if (!today) {
		puts("today           ?     ?  no map was captured, and the GPUs do not divide the "
		     "experts");
		return;
	}
	if (plan->placing.captured && info->epoch != info->epoch_oldest)
		snprintf(what, sizeof(what),
			 "map of epoch %" PRIu64 ", ranks at %" PRIu64 " to %" PRIu64, today->epoch,
			 info->epoch_oldest, info->epoch);
	else if (plan->placing.captured)
		snprintf(what, sizeof(what), "map of epoch %" PRIu64, today->epoch);
	print_balance(plan, "today", today, &plan->placing.balance_today, what);
}

/* Many KiB in a line: for a file or a program, not for a terminal. */
static int print_map(const struct plan_options *options, const struct plan *plan)
{
	json_t *map;

	if (isatty(STDOUT_FILENO)) {
		puts("the map, as JSON, is for a file or a pipe: send this there (> FILE), or all "
		     "of it with --json");
		return TOOL_DONE;
	}
	map = plan_json_map(&options->place, plan);
	if (!map || json_dumpf(map, stdout, JSON_COMPACT) < 0) {
		json_decref(map);
		fputs("r3ring plan: no memory for the map\n", stderr);
		return TOOL_FAILED;
	}
	json_decref(map);
	putchar('\n');
	return TOOL_DONE;
}

static int print_text(const struct plan_options *options, const struct plan *plan)
{
	print_source(options, plan);
	puts("tokens of a layer's GPUs, max/mean:");
	puts("         physical  GPUs    average     worst   layer  GPU");
	print_today(plan);
	print_balance(plan, "planned", plan->placing.next, &plan->placing.balance_next, "");
	putchar('\n');
	return print_map(options, plan);
}

int plan_print(const struct plan_options *options, const struct plan *plan)
{
	return options->json ? output_json("r3ring plan", plan_json(options, plan))
			     : print_text(options, plan);
}
