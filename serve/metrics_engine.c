/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the engines that are followed: their load, and how new it is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel/clock.h"
#include "serve/exposition.h"
#include "serve/metrics.h"

#define LAYER_TEXT 16

static const double quantiles[] = {0.5, 0.9, 0.99, 1};
static const char *const stat_names[] = {"p50", "p90", "p99", "max"};
#define QUANTILES (sizeof(quantiles) / sizeof(*quantiles))

struct layer_figures {
	char name[LAYER_TEXT];
	double ratio[QUANTILES]; /* of the mean */
	uint32_t dead;
	double gpus; /* max/mean; 0: not known */
};

/* What `gpus` is by. */
enum placement {
	PLACEMENT_UNKNOWN,
	PLACEMENT_ASSUMED, /* experts in order over the GPUs: no EPLB map is known */
	PLACEMENT_MAP,
};

/* What an engine is told with; without load, or once it has ended, of no layers. */
struct engine {
	struct served *served;
	struct engine_model *model; /* held */
	struct follower_status status;
	struct r3ring_load_accounts ever;
	double age_s;                /* of the load's newest step; below 0: none */
	struct layer_figures *layer; /* [layers] */
	uint32_t layers;
	enum placement placement;
	uint64_t map_epoch; /* PLACEMENT_MAP: of the map */
	bool epochs_differ; /* ranks' newest steps ran with different maps */
};

/* ---- figures ------------------------------------------------------------------------ */

double metrics_quantile(const double *ascending, uint32_t count, double quantile)
{
	uint32_t rank = 1;

	while (rank < count && (double)rank < quantile * count)
		rank++;
	return ascending[rank - 1];
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* @sorted: room for the layer's counts. */
static void measure(struct layer_figures *layer, const double *counts, uint32_t experts,
		    double *sorted)
{
	double sum = 0;

	memcpy(sorted, counts, experts * sizeof(*sorted));
	qsort(sorted, experts, sizeof(*sorted), ascending);
	for (uint32_t e = 0; e < experts; e++) {
		sum += sorted[e];
		layer->dead += sorted[e] <= 0;
	}
	for (size_t i = 0; sum > 0 && i < QUANTILES; i++)
		layer->ratio[i] = metrics_quantile(sorted, experts, quantiles[i]) * experts / sum;
}

static void name_layer(struct layer_figures *layer, const struct r3ring_layer_entry *entry)
{
	snprintf(layer->name, sizeof(layer->name), "%s%d",
		 entry->kind == R3RING_LAYER_MTP ? "mtp" : "", entry->layer_id);
}

/* Experts in order over the GPUs only where no map is known at all. */
static struct r3ring_eplb_map *find_map(struct engine *engine, const struct r3ring_load_info *info)
{
	struct r3ring_eplb_map *map = NULL;
	uint32_t gpus = served_gpus(engine->served);

	engine->epochs_differ = info->epoch != info->epoch_oldest;
	r3ring_load_map_in_force(engine->model->load, R3RING_LOAD_MERGED, info->epoch, &map);
	if (map) {
		engine->placement = PLACEMENT_MAP;
		engine->map_epoch = map->epoch;
	} else if (gpus > 1) {
		r3ring_eplb_map_plain(&map, info->layers, info->experts, gpus, NULL);
		engine->placement = map ? PLACEMENT_ASSUMED : PLACEMENT_UNKNOWN;
	}
	return map;
}

static void measure_gpus(struct engine *engine, const struct r3ring_load_info *info)
{
	double *ratio = calloc(info->layers, sizeof(*ratio));
	struct r3ring_eplb_map *map = find_map(engine, info);
	struct r3ring_eplb_balance balance;

	if (map && ratio && map->layers == info->layers && map->experts == info->experts &&
	    r3ring_eplb_evaluate(map, info->counts, &balance, ratio) == 0)
		for (uint32_t i = 0; i < info->layers; i++)
			engine->layer[i].gpus = ratio[i];
	r3ring_eplb_map_free(map);
	free(ratio);
}

static int take_layers(struct engine *engine, const struct r3ring_load_info *info)
{
	double *sorted = malloc(info->experts * sizeof(*sorted));

	engine->layer = calloc(info->layers, sizeof(*engine->layer));
	if (!engine->layer || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	engine->layers = info->layers;
	for (uint32_t i = 0; i < info->layers; i++) {
		name_layer(&engine->layer[i], &info->layer[i]);
		measure(&engine->layer[i], info->counts + (size_t)i * info->experts, info->experts,
			sorted);
	}
	free(sorted);
	measure_gpus(engine, info);
	return 0;
}

static int look(struct engine *engine, struct served *served, struct r3ring_load_snapshot *snapshot)
{
	struct engine_model *model = follower_model(served_follower(served));
	const struct r3ring_load *load = model->load;
	const struct r3ring_load_info *info = r3ring_load_snapshot_info(snapshot);
	int r;

	*engine = (struct engine){
		.served = served, .model = model, .ever = model->before, .age_s = -1};
	follower_get_status(served_follower(served), &engine->status);
	r = r3ring_load_read(load, R3RING_LOAD_MERGED, R3RING_LOAD_EVER, R3RING_LOAD_ANY_EPOCH,
			     snapshot);
	if (r == 0) {
		engine_model_add_accounts(&engine->ever, &info->accounts);
		engine->age_s = (double)info->age_ns / 1e9;
		r = r3ring_load_read(load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
				     R3RING_LOAD_ANY_EPOCH, snapshot);
	}
	/* The load of now, of an engine that has ended, is none. */
	if (r == 0 && engine->status.tail.state != TAIL_ENDED)
		r = take_layers(engine, info);
	return r == -ENODATA ? 0 : r;
}

/* ---- telling -------------------------------------------------------------------------- */

static void tell_state(FILE *out, const struct engine *engines, uint32_t count)
{
	metric_begin(out, "r3ring_engine_live", METRIC_GAUGE,
		     "1 while the engine runs and is followed; 0: it ended, or nobody knows.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		metric_count(out, "r3ring_engine_live",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.tail.state == TAIL_LIVE);
	}
	metric_begin(out, "r3ring_engine_records_total", METRIC_COUNTER,
		     "Records of the engine that were read here.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		metric_count(out, "r3ring_engine_records_total",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.tail.records);
	}
	metric_begin(out, "r3ring_engine_gaps_total", METRIC_COUNTER,
		     "Times that records were gone before they were read here.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		metric_count(out, "r3ring_engine_gaps_total",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.tail.gaps);
	}
	metric_begin(out, "r3ring_engine_ends_unfollowed", METRIC_GAUGE,
		     "Ends of generations behind which only the engine knows what it ran: more may "
		     "be lost.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		metric_count(out, "r3ring_engine_ends_unfollowed",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.ends_unfollowed);
	}
}

/* Returns 0 or -ENOMEM. */
static int tell_left_out(FILE *out, const struct engine *engine)
{
	struct follower_left_out *list;
	int count = follower_left_out(served_follower(engine->served), &list);

	for (int i = 0; i < count; i++)
		metric_count(out, "r3ring_engine_channel_left_out",
			     METRIC_LABELS({"engine", served_name(engine->served)},
					   {"channel", list[i].channel}, {"model", list[i].model}),
			     1);
	free(list);
	return count < 0 ? count : 0;
}

static int tell_models(FILE *out, const struct engine *engines, uint32_t count)
{
	int r = 0;

	metric_begin(out, "r3ring_engine_model_info", METRIC_GAUGE,
		     "1: the model that the engine's load is of.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		if (engine->status.model[0])
			metric_count(out, "r3ring_engine_model_info",
				     METRIC_LABELS({"engine", served_name(engine->served)},
						   {"model", engine->status.model}),
				     1);
	metric_begin(out, "r3ring_engine_channel_left_out", METRIC_GAUGE,
		     "1: the channel runs another model than that, and is not in the load.");
	for (const struct engine *engine = engines; r == 0 && engine < engines + count; engine++)
		r = tell_left_out(out, engine);
	return r;
}

static void tell_cells(FILE *out, const struct engine *engines, uint32_t count)
{
	static const char *const reasons[R3RING_LOAD_REASONS] = {"warmup", "padding", "rejected",
								 "recomputed"};

	metric_begin(out, "r3ring_load_cells_total", METRIC_COUNTER,
		     "Cells (rows x layers) counted as load.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		metric_count(out, "r3ring_load_cells_total",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->ever.counted);
	}
	metric_begin(out, "r3ring_load_left_out_cells_total", METRIC_COUNTER,
		     "Cells that are no load, by reason.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++)
			metric_count(out, "r3ring_load_left_out_cells_total",
				     METRIC_LABELS({"engine", served_name(engine->served)},
						   {"reason", reasons[i]}),
				     engine->ever.left_out[i]);
	}
}

static bool is_cause(uint32_t cause)
{
	return (cause && cause < R3RING_CAUSE_COUNT) || cause >= R3RING_MISSING_GAP;
}

static void tell_lost(FILE *out, const struct engine *engines, uint32_t count)
{
	metric_begin(out, "r3ring_load_lost_cells_total", METRIC_COUNTER,
		     "Cells that the load lacks, by cause.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
			if (is_cause(cause))
				metric_count(
					out, "r3ring_load_lost_cells_total",
					METRIC_LABELS({"engine", served_name(engine->served)},
						      {"cause", r3ring_missing_cause_name(cause)}),
					engine->ever.lost[cause]);
	}
	metric_begin(out, "r3ring_load_age_seconds", METRIC_GAUGE,
		     "Since the newest step of the load was published.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		if (engine->age_s >= 0)
			metric_value(out, "r3ring_load_age_seconds",
				     METRIC_LABELS({"engine", served_name(engine->served)}),
				     engine->age_s);
	}
}

/* A metric of requests that run and of those that have ended. */
static void tell_both(FILE *out, const char *name, const struct engine *engine, uint64_t live,
		      uint64_t ended)
{
	const char *engine_name = served_name(engine->served);

	metric_count(out, name, METRIC_LABELS({"engine", engine_name}, {"state", "live"}), live);
	metric_count(out, name, METRIC_LABELS({"engine", engine_name}, {"state", "ended"}), ended);
}

static void tell_signatures(FILE *out, const struct engine *engines, uint32_t count)
{
	metric_begin(out, "r3ring_signatures", METRIC_GAUGE,
		     "Requests whose routing is kept, by whether they run or have ended.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		tell_both(out, "r3ring_signatures", engine, engine->status.signatures.live,
			  engine->status.signatures.ended);
	metric_begin(out, "r3ring_signatures_evicted_total", METRIC_COUNTER,
		     "Requests whose routing had to go for others, likewise.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		tell_both(out, "r3ring_signatures_evicted_total", engine,
			  engine->status.signatures.evicted, engine->status.signatures.forgotten);
	metric_begin(out, "r3ring_signature_rows_unkept_total", METRIC_COUNTER,
		     "Rows of requests that had to go, or found no room.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		metric_count(out, "r3ring_signature_rows_unkept_total",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.signatures.rows_unkept);
	metric_begin(out, "r3ring_signature_keys_evicted_total", METRIC_COUNTER,
		     "Prefix cache keys that were forgotten for want of room.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		metric_count(out, "r3ring_signature_keys_evicted_total",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.signatures.keys_forgotten);
	metric_begin(out, "r3ring_signature_bytes", METRIC_GAUGE,
		     "Memory of requests' routing, with that of rows behind prefix cache keys.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		metric_count(out, "r3ring_signature_bytes",
			     METRIC_LABELS({"engine", served_name(engine->served)}),
			     engine->status.signatures.bytes + engine->status.signatures.key_bytes);
}

static void tell_ratios(FILE *out, const struct engine *engine)
{
	for (uint32_t i = 0; i < engine->layers; i++)
		for (size_t q = 0; q < QUANTILES; q++)
			metric_value(out, "r3ring_layer_expert_load_ratio",
				     METRIC_LABELS({"engine", served_name(engine->served)},
						   {"layer", engine->layer[i].name},
						   {"stat", stat_names[q]}),
				     engine->layer[i].ratio[q]);
}

static void tell_layers(FILE *out, const struct engine *engines, uint32_t count)
{
	metric_begin(out, "r3ring_layer_expert_load_ratio", METRIC_GAUGE,
		     "Load of experts over the mean of their layer, by percentile over experts.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		tell_ratios(out, engine);
	metric_begin(out, "r3ring_layer_experts_without_load", METRIC_GAUGE,
		     "Experts of the layer that had no token.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		for (uint32_t i = 0; i < engine->layers; i++)
			metric_count(out, "r3ring_layer_experts_without_load",
				     METRIC_LABELS({"engine", served_name(engine->served)},
						   {"layer", engine->layer[i].name}),
				     engine->layer[i].dead);
	}
	metric_begin(out, "r3ring_layer_gpu_load_ratio", METRIC_GAUGE,
		     "Load of the layer's most loaded GPU over their mean.");
	for (const struct engine *engine = engines; engine < engines + count; engine++) {
		for (uint32_t i = 0; i < engine->layers; i++)
			if (engine->layer[i].gpus > 0)
				metric_value(out, "r3ring_layer_gpu_load_ratio",
					     METRIC_LABELS({"engine", served_name(engine->served)},
							   {"layer", engine->layer[i].name}),
					     engine->layer[i].gpus);
	}
}

/* What the ratios of GPUs are by. */
static void tell_placement(FILE *out, const struct engine *engines, uint32_t count)
{
	metric_begin(out, "r3ring_placement_assumed", METRIC_GAUGE,
		     "1: no EPLB map is known, experts in order over the GPUs are assumed; 0: by a "
		     "map.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		if (engine->placement != PLACEMENT_UNKNOWN)
			metric_count(out, "r3ring_placement_assumed",
				     METRIC_LABELS({"engine", served_name(engine->served)}),
				     engine->placement == PLACEMENT_ASSUMED);
	metric_begin(out, "r3ring_eplb_epoch", METRIC_GAUGE,
		     "Epoch of the EPLB map that the load of GPUs is by.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		if (engine->placement == PLACEMENT_MAP)
			metric_count(out, "r3ring_eplb_epoch",
				     METRIC_LABELS({"engine", served_name(engine->served)}),
				     engine->map_epoch);
	metric_begin(out, "r3ring_eplb_epochs_differ", METRIC_GAUGE,
		     "1: the newest steps of the engine's ranks ran with different EPLB maps.");
	for (const struct engine *engine = engines; engine < engines + count; engine++)
		if (engine->layers)
			metric_count(out, "r3ring_eplb_epochs_differ",
				     METRIC_LABELS({"engine", served_name(engine->served)}),
				     engine->epochs_differ);
}

static void tell_latency(FILE *out, const struct engine *engine)
{
	const char *name = served_name(engine->served);
	struct latency latency;
	uint64_t below = 0;
	char bound[32];

	latency_read(served_latency(engine->served), &latency);
	for (uint32_t i = 0; i < LATENCY_BOUNDS; i++) {
		below += latency.bucket[i];
		snprintf(bound, sizeof(bound), "%g", (double)latency_bound_ns[i] / 1e9);
		metric_count(out, "r3ring_load_latency_seconds_bucket",
			     METRIC_LABELS({"engine", name}, {"le", bound}), below);
	}
	below += latency.bucket[LATENCY_BOUNDS];
	metric_count(out, "r3ring_load_latency_seconds_bucket",
		     METRIC_LABELS({"engine", name}, {"le", "+Inf"}), below);
	metric_value(out, "r3ring_load_latency_seconds_sum", METRIC_LABELS({"engine", name}),
		     (double)latency.sum_ns / 1e9);
	metric_count(out, "r3ring_load_latency_seconds_count", METRIC_LABELS({"engine", name}),
		     below);
}

int metrics_of_engines(FILE *out, struct served *const *served, uint32_t count)
{
	struct engine *engines = calloc(count ? count : 1, sizeof(*engines));
	struct r3ring_load_snapshot *snapshot = NULL;
	int r = engines ? r3ring_load_snapshot_create(&snapshot) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = look(&engines[i], served[i], snapshot);
	if (r == 0) {
		tell_state(out, engines, count);
		r = tell_models(out, engines, count);
	}
	if (r == 0) {
		tell_cells(out, engines, count);
		tell_lost(out, engines, count);
		tell_signatures(out, engines, count);
		tell_layers(out, engines, count);
		tell_placement(out, engines, count);
		metric_begin(out, "r3ring_load_latency_seconds", METRIC_HISTOGRAM,
			     "From a step's end in the ring to the load that has it.");
		for (const struct engine *engine = engines; engine < engines + count; engine++)
			tell_latency(out, engine);
		metrics_of_routes(out, served, count);
	}
	for (uint32_t i = 0; engines && i < count; i++) {
		free(engines[i].layer);
		engine_model_put(engines[i].model);
	}
	free(engines);
	r3ring_load_snapshot_free(snapshot);
	return r;
}
