/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/plan: where an instance's expert replicas would better be. */
#include <errno.h>
#include <string.h>

#include <microhttpd.h>

#include "tools/plan.h"
#include "tools/serve_api.h"

/* So many places an expert bound the time and the answer. */
#define PLACES_PER_EXPERT 16u

struct wanted {
	const char *instance;
	uint64_t gpus, replicas, nodes, groups; /* 0: not said */
};

static bool read_query(const struct http_request *request, struct wanted *wanted,
		       struct http_answer *answer)
{
	wanted->instance = http_query(request, "instance");
	return api_query_number(request, "gpus", 1, R3RING_EXPERTS_MAX, &wanted->gpus, answer) &&
	       api_query_number(request, "replicas", 1, R3RING_EXPERTS_MAX, &wanted->replicas,
				answer) &&
	       api_query_number(request, "nodes", 1, R3RING_EXPERTS_MAX, &wanted->nodes, answer) &&
	       api_query_number(request, "groups", 1, R3RING_EXPERTS_MAX, &wanted->groups, answer);
}

static bool read_body(const json_t *body, struct wanted *wanted, struct http_answer *answer)
{
	static const char *const known[] = {"instance", "gpus",   "replicas",
					    "nodes",    "groups", NULL};

	return api_only_fields(body, known, answer) &&
	       api_text(body, "instance", &wanted->instance, answer) &&
	       api_number(body, "gpus", 1, R3RING_EXPERTS_MAX, &wanted->gpus, answer) &&
	       api_number(body, "replicas", 1, R3RING_EXPERTS_MAX, &wanted->replicas, answer) &&
	       api_number(body, "nodes", 1, R3RING_EXPERTS_MAX, &wanted->nodes, answer) &&
	       api_number(body, "groups", 1, R3RING_EXPERTS_MAX, &wanted->groups, answer);
}

/* What was not said is as the map of now has it. */
static void complete(const struct r3ring_load *load, const struct r3ring_load_info *info,
		     struct wanted *wanted)
{
	struct r3ring_eplb_map *map = NULL;

	if (r3ring_load_map_in_force(load, R3RING_LOAD_MERGED, info->epoch, &map) == 0) {
		if (!wanted->gpus)
			wanted->gpus = map->gpus;
		if (!wanted->replicas)
			wanted->replicas = map->physical;
	}
	r3ring_eplb_map_free(map);
}

static bool check(const struct wanted *wanted, const struct r3ring_load_info *info,
		  struct http_answer *answer)
{
	uint64_t most = (uint64_t)info->experts * PLACES_PER_EXPERT;

	if (!wanted->gpus)
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "how many GPUs? no EPLB map that a step ran with is known, and the "
			    "ranks do not "
			    "tell: say so with "
			    "\"gpus\", or start r3ring serve with --gpus");
	else if (!wanted->replicas)
		http_refuse(
			answer, MHD_HTTP_BAD_REQUEST,
			"how many physical experts of a layer? no EPLB map that a step ran with is "
			"known: say so with "
			"\"replicas\"");
	else if (wanted->replicas > most)
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "\"replicas\" is at most %u for each of the %u experts",
			    PLACES_PER_EXPERT, info->experts);
	else
		return true;
	return false;
}

static void answer_plan(struct served *served, const struct r3ring_load *load,
			const struct wanted *wanted, struct plan *plan, struct http_answer *answer)
{
	const struct plan_options options = {
		.instance = served_name(served),
		.place = {.size = sizeof(options.place),
			  .physical = (uint32_t)wanted->replicas,
			  .gpus = (uint32_t)wanted->gpus,
			  .nodes = (uint32_t)wanted->nodes,
			  .groups = (uint32_t)wanted->groups},
	};
	struct r3ring_error err = {0};
	int r = plan_make(load, &options.place, plan, &err);

	if (r == 0)
		answer->json = plan_json(&options, plan);
	else
		http_refuse(answer,
			    r == -EINVAL ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s", err.text[0] ? err.text : strerror(-r));
}

/* By the load of now. */
static void plan_model(struct served *served, const struct r3ring_load *load, struct wanted *wanted,
		       struct http_answer *answer)
{
	struct r3ring_load_snapshot *snapshot = NULL;
	struct plan plan = {0};
	int r = r3ring_load_snapshot_create(&snapshot);

	if (r == 0)
		r = r3ring_load_read(load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
				     R3RING_LOAD_ANY_EPOCH, snapshot);
	if (r < 0) {
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "%s: no step was counted yet",
			    served_name(served));
	} else {
		plan.info = r3ring_load_snapshot_info(snapshot);
		complete(load, plan.info, wanted);
		if (!wanted->gpus)
			wanted->gpus = served_gpus(served);
		if (check(wanted, plan.info, answer))
			answer_plan(served, load, wanted, &plan, answer);
	}
	plan_free(&plan);
	r3ring_load_snapshot_free(snapshot);
}

void api_plan(void *context, const struct http_request *request, struct http_answer *answer)
{
	bool posted = strcmp(request->method, MHD_HTTP_METHOD_POST) == 0;
	struct wanted wanted = {0};
	struct engine_model *model;
	struct served *served;

	if (posted ? !read_body(request->body, &wanted, answer)
		   : !read_query(request, &wanted, answer))
		return;
	served = api_instance(context, wanted.instance, answer);
	if (!served || !api_engine_runs(served, answer))
		return;
	model = follower_model(served_follower(served));
	plan_model(served, model->load, &wanted, answer);
	engine_model_put(model);
}
