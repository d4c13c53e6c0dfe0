/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "channel/clock.h"
#include "tools/json_values.h"
#include "tools/serve_wish.h"

#define NS_PER_MS 1000000.0

static bool read_predictor(struct wish *wish, const json_t *body, struct http_answer *answer)
{
	const char *name = r3ring_predictor_name(R3RING_PREDICT_AUTO);
	int found;

	if (!api_text(body, "predictor", &name, answer))
		return false;
	found = r3ring_predictor_named(name);
	if (found < 0) {
		http_refuse(
			answer, MHD_HTTP_BAD_REQUEST,
			"\"predictor\" is auto, own, similar, prefix, class, global or uniform, "
			"not \"%.32s\"",
			name);
		return false;
	}
	wish->predictor = (enum r3ring_predictor)found;
	return true;
}

static bool read_label(const json_t *body, const char *name, const char **text,
		       struct http_answer *answer)
{
	if (!api_text(body, name, text, answer))
		return false;
	if (!*text || ((*text)[0] && strlen(*text) <= R3RING_TEXT_ID_MAX))
		return true;
	http_refuse(answer, MHD_HTTP_BAD_REQUEST, "\"%s\" has 1 to %d bytes", name,
		    R3RING_TEXT_ID_MAX);
	return false;
}

bool wish_read(struct wish *wish, const json_t *body, struct http_answer *answer)
{
	return read_predictor(wish, body, answer) &&
	       api_text(body, "request", &wish->request, answer) &&
	       read_label(body, "class", &wish->labels.class_name, answer) &&
	       read_label(body, "prefix_key", &wish->labels.prefix_key, answer) &&
	       api_number(body, "tokens", 1, R3RING_DEMAND_TOKENS_MAX, &wish->tokens, answer);
}

void wish_hold(struct wish *wish)
{
	wish->model = follower_model(served_follower(wish->served));
}

bool wish_find_book(struct wish *wish, struct http_answer *answer)
{
	struct r3ring_error err = {0};
	int r;

	if (!wish->model)
		wish_hold(wish);
	r = served_book(wish->served, wish->model, &wish->book, &err);
	if (r == 0)
		return true;
	http_refuse(answer,
		    r == -ENOMEM ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_SERVICE_UNAVAILABLE,
		    "%s", err.text);
	return false;
}

bool wish_may_promise(const struct wish *wish, struct http_answer *answer)
{
	struct r3ring_error err = {0};

	if (served_promises(wish->served, wish->model, &err) == 0)
		return true;
	http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", err.text);
	return false;
}

void wish_end(struct wish *wish)
{
	engine_model_put(wish->model);
	wish->model = NULL;
}

/* ---- what is known ---------------------------------------------------------- */

/* Whether a signature is of the model that is served, and has counts at all. */
static bool is_usable(const struct r3ring_signature_info *info,
		      const struct r3ring_demand_shape *shape)
{
	return info->layers == shape->layers && info->experts == shape->experts &&
	       info->rows[R3RING_SIGNATURE_PREFILL] + info->rows[R3RING_SIGNATURE_DECODE] +
			       info->rows_in_part >
		       0;
}

static void add_signature(const struct r3ring_signature_info *info, uint32_t *counts)
{
	size_t cells = (size_t)info->layers * info->experts;

	for (size_t i = 0; i < cells; i++)
		counts[i] = (uint32_t)info->counts[R3RING_SIGNATURE_PREFILL][i] +
			    info->counts[R3RING_SIGNATURE_DECODE][i];
}

/* Looks for the request's signature where an instance runs the same model. */
static bool find_signature(const struct wish *wish, struct served *served,
			   struct r3ring_signature *signature)
{
	struct engine_model *model = follower_model(served_follower(served));
	/* Its name is known since before there was a signature. */
	bool found = r3ring_signatures_get(model->signatures, wish->request, signature) == 0 &&
		     strcmp(model->name, wish->model->name) == 0;

	engine_model_put(model);
	return found;
}

/* A request's own counts: another instance may have run its prefill. */
static void find_own(const struct wish *wish, uint32_t *counts, struct r3ring_known *known)
{
	struct r3ring_signature *signature = NULL;

	if (!wish->request || r3ring_signature_create(&signature) < 0)
		return;
	for (uint32_t i = 0; !known->own.counts && i < wish->api->count; i++) {
		const struct r3ring_signature_info *info;

		if (!find_signature(wish, wish->api->served[i], signature))
			continue;
		info = r3ring_signature_get_info(signature);
		if (!is_usable(info, &known->shape))
			continue;
		add_signature(info, counts);
		known->own = (struct r3ring_visits){counts, info->updated_ns};
	}
	r3ring_signature_free(signature);
}

/* What the engine as a whole was seen to do. */
static void take_global(const struct r3ring_load_info *info, uint32_t *counts,
			struct r3ring_known *known)
{
	size_t cells = (size_t)info->layers * info->experts;

	for (size_t i = 0; i < cells; i++)
		counts[i] = info->counts[i] < UINT32_MAX ? (uint32_t)info->counts[i] : UINT32_MAX;
	known->global = (struct r3ring_visits){counts, info->to_ns};
}

/* ---- demand --------------------------------------------------------------- */

/* Room for counts, [cells] each. */
struct desk {
	uint32_t *own, *global, *counts;
};

static int predict(struct wish *wish, const struct r3ring_load_info *info, const struct desk *desk,
		   struct r3ring_demand *demand)
{
	struct r3ring_known known = {
		.shape = {info->layers, info->experts, info->top_k},
		.history = wish->api->history,
		.labels = wish->labels,
		.now_ns = clock_now_ns(),
		.model = wish->model->name,
	};
	struct r3ring_evidence evidence;
	int r;

	find_own(wish, desk->own, &known);
	take_global(info, desk->global, &known);
	r = r3ring_predict(wish->predictor, &known, desk->counts, &evidence, &wish->predictor);
	return r ? r : r3ring_demand_predict(demand, &evidence, (uint32_t)wish->tokens);
}

static int make_demand(struct wish *wish, const struct r3ring_load_info *info,
		       struct r3ring_demand **demand)
{
	const struct r3ring_demand_shape shape = {info->layers, info->experts, info->top_k};
	size_t cells = (size_t)info->layers * info->experts;
	uint32_t *room = calloc(3 * cells, sizeof(*room));
	int r = room ? r3ring_demand_create(demand, &shape) : -ENOMEM;

	if (r == 0)
		r = predict(wish, info, &(struct desk){room, room + cells, room + 2 * cells},
			    *demand);
	free(room);
	return r;
}

static void refuse_demand(const struct wish *wish, int r, struct http_answer *answer)
{
	if (r == -ENODATA)
		http_refuse(
			answer, MHD_HTTP_NOT_FOUND,
			"nothing is known that %s could go by: such a request did not run here, "
			"or long ago",
			r3ring_predictor_name(wish->predictor));
	else
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s: no demand can be foretold: %s", served_name(wish->served),
			    strerror(-r));
}

struct r3ring_demand *wish_demand(struct wish *wish, struct http_answer *answer)
{
	struct r3ring_load_snapshot *snapshot = NULL;
	struct r3ring_demand *demand = NULL;
	int r = r3ring_load_snapshot_create(&snapshot);

	wish->age_ms = -1;
	wish->epochs_differ = false;
	if (r == 0)
		r = r3ring_load_read(wish->model->load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
				     R3RING_LOAD_ANY_EPOCH, snapshot);
	if (r == -ENODATA)
		r = -EAGAIN;
	if (r == 0) {
		const struct r3ring_load_info *info = r3ring_load_snapshot_info(snapshot);

		wish->age_ms = (double)info->age_ns / NS_PER_MS;
		wish->epochs_differ = info->epoch != info->epoch_oldest;
		r = make_demand(wish, info, &demand);
	}
	r3ring_load_snapshot_free(snapshot);
	if (r == 0)
		return demand;
	r3ring_demand_destroy(demand);
	refuse_demand(wish, r, answer);
	return NULL;
}

/* ---- answers -------------------------------------------------------------- */

json_t *wish_visits(int64_t units)
{
	return json_real((double)units / R3RING_DEMAND_TOKEN);
}

json_t *wish_tightest(const struct wish *wish, const struct r3ring_reserve_answer *answer)
{
	return json_pack("{s:i, s:i, s:i, s:o, s:f, s:o, s:b, s:b}", "layer",
			 (int)served_layer(wish->model, answer->layer), "gpu", (int)answer->gpu,
			 "expert", (int)answer->expert, "margin", wish_visits(answer->margin),
			 "evidence_age_ms", (double)answer->evidence_age_ns / NS_PER_MS, "epoch",
			 json_u64(answer->epoch), "assumed", answer->epoch == 0, "epochs_differ",
			 wish->epochs_differ);
}
