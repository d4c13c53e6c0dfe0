/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <microhttpd.h>

#include "tools/json_values.h"
#include "tools/serve_wish.h"

#define NS_PER_MS 1000000.0

static const char *const predictors[] = {"auto", "own", "global", "uniform", NULL};

bool wish_read(struct wish *wish, const json_t *body, struct http_answer *answer)
{
	const char *const *known = predictors;

	if (!api_text(body, "predictor", &wish->predictor, answer) ||
	    !api_text(body, "request", &wish->request, answer) ||
	    !api_number(body, "tokens", 1, R3RING_DEMAND_TOKENS_MAX, &wish->tokens, answer))
		return false;
	if (!wish->predictor)
		wish->predictor = predictors[0];
	while (*known && strcmp(*known, wish->predictor) != 0)
		known++;
	if (*known)
		return true;
	http_refuse(answer, MHD_HTTP_BAD_REQUEST,
		    "\"predictor\" is auto, own, global or uniform, not \"%.32s\"",
		    wish->predictor);
	return false;
}

bool wish_find_book(struct wish *wish, struct http_answer *answer)
{
	struct r3ring_error err = {0};
	int r = served_book(wish->served, &wish->book, &err);

	if (r == 0)
		return true;
	http_refuse(answer,
		    r == -ENOMEM ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_SERVICE_UNAVAILABLE,
		    "%s", err.text);
	return false;
}

/* ---- evidence ------------------------------------------------------------- */

/* Counts of visits, and how old they are. */
struct evidence {
	struct r3ring_demand_shape shape;
	uint32_t *counts; /* NULL: none */
	uint64_t age_ns;
};

static uint64_t age_since(uint64_t then_ns)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Whether a signature is of the model that is served, and has counts at all. */
static bool is_usable(const struct r3ring_signature_info *info, const struct evidence *of)
{
	return info->layers == of->shape.layers && info->experts == of->shape.experts &&
	       info->rows[R3RING_SIGNATURE_PREFILL] + info->rows[R3RING_SIGNATURE_DECODE] > 0;
}

static bool add_signature(const struct r3ring_signature_info *info, struct evidence *to)
{
	size_t cells = (size_t)info->layers * info->experts;

	to->counts = calloc(cells, sizeof(*to->counts));
	for (size_t i = 0; to->counts && i < cells; i++)
		to->counts[i] = (uint32_t)info->counts[R3RING_SIGNATURE_PREFILL][i] +
				info->counts[R3RING_SIGNATURE_DECODE][i];
	to->age_ns = age_since(info->updated_ns);
	return to->counts != NULL;
}

/* A request's own counts: another instance may have run its prefill. */
static bool find_own(const struct wish *wish, struct evidence *to)
{
	struct r3ring_signature *signature = NULL;
	bool found = false;

	if (!wish->request || r3ring_signature_create(&signature) < 0)
		return false;
	for (uint32_t i = 0; !found && i < wish->api->count; i++) {
		if (r3ring_signatures_get(
			    follower_signatures(served_follower(wish->api->served[i])),
			    wish->request, signature) == 0 &&
		    is_usable(r3ring_signature_get_info(signature), to))
			found = add_signature(r3ring_signature_get_info(signature), to);
	}
	r3ring_signature_free(signature);
	return found;
}

/* What the engine as a whole was seen to do. */
static bool take_global(const struct r3ring_load_info *info, struct evidence *to)
{
	size_t cells = (size_t)info->layers * info->experts;

	to->counts = calloc(cells, sizeof(*to->counts));
	for (size_t i = 0; to->counts && i < cells; i++)
		to->counts[i] = info->counts[i] < UINT32_MAX ? (uint32_t)info->counts[i]
							     : UINT32_MAX;
	to->age_ns = info->age_ns;
	return to->counts != NULL;
}

/* Returns 0; -ENODATA (nothing is known of the request); -ENOMEM. */
static int gather(struct wish *wish, const struct r3ring_load_info *info, struct evidence *to)
{
	bool automatic = strcmp(wish->predictor, "auto") == 0;

	if (strcmp(wish->predictor, "uniform") == 0)
		return 0;
	if (automatic || strcmp(wish->predictor, "own") == 0) {
		if (find_own(wish, to)) {
			wish->predictor = "own";
			return 0;
		}
		if (!automatic)
			return -ENODATA;
	}
	wish->predictor = "global";
	return take_global(info, to) ? 0 : -ENOMEM;
}

/* ---- demand --------------------------------------------------------------- */

static int predict(struct wish *wish, const struct r3ring_load_info *info,
		   struct r3ring_demand **demand)
{
	struct evidence evidence = {.shape = {info->layers, info->experts, info->top_k}};
	int r = gather(wish, info, &evidence);

	if (r == 0)
		r = r3ring_demand_create(demand, &evidence.shape);
	if (r == 0)
		r = r3ring_demand_predict(*demand,
					  &(struct r3ring_evidence){.counts = evidence.counts,
								    .age_ns = evidence.age_ns},
					  (uint32_t)wish->tokens);
	free(evidence.counts);
	return r;
}

struct r3ring_demand *wish_demand(struct wish *wish, struct http_answer *answer)
{
	struct r3ring_load_snapshot *snapshot = NULL;
	struct r3ring_demand *demand = NULL;
	int r = r3ring_load_snapshot_create(&snapshot);

	if (r == 0)
		r = r3ring_load_read(follower_load(served_follower(wish->served)),
				     R3RING_LOAD_MERGED, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				     snapshot);
	if (r == 0)
		r = predict(wish, r3ring_load_snapshot_info(snapshot), &demand);
	r3ring_load_snapshot_free(snapshot);
	if (r == 0)
		return demand;
	r3ring_demand_destroy(demand);
	if (r == -ENODATA)
		http_refuse(
			answer, MHD_HTTP_NOT_FOUND,
			"no routes of request %.64s are known: it did not run here, or long ago",
			wish->request ? wish->request : "\"\"");
	else
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s: no demand can be foretold: %s", served_name(wish->served),
			    strerror(-r));
	return NULL;
}

/* ---- answers -------------------------------------------------------------- */

json_t *wish_visits(int64_t units)
{
	return json_real((double)units / R3RING_DEMAND_TOKEN);
}

json_t *wish_tightest(const struct r3ring_reserve_answer *answer)
{
	return json_pack("{s:i, s:i, s:i, s:o, s:f, s:o}", "layer", (int)answer->layer, "gpu",
			 (int)answer->gpu, "expert", (int)answer->expert, "margin",
			 wish_visits(answer->margin), "evidence_age_ms",
			 (double)answer->evidence_age_ns / NS_PER_MS, "epoch",
			 json_u64(answer->epoch));
}
