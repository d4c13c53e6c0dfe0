/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's expected routes, computed by the slow reference.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "producer/reference/models.h"
#include "tests/demo/expected.h"
#include "tests/support/slow_moe.h"

#define WORKERS_MAX 16

/* Workers take one request after the other. */
struct computation {
	struct expected *expected;
	const struct demo_plan *plan;
	uint32_t next_request;
	uint32_t failed;
};

static uint16_t *routes_of(const struct expected *expected, struct slow_moe *moe,
			   const struct workload_request *request)
{
	size_t row_ids = (size_t)expected->layers * expected->top_k;
	uint16_t *routes = calloc(request->rows * row_ids, sizeof(*routes));
	int32_t *tokens = calloc(request->rows, sizeof(*tokens));

	for (uint32_t row = 0; tokens && row < request->rows; row++)
		tokens[row] =
			workload_token(&expected->workload, request, request->first_position + row);
	if (routes && tokens)
		slow_moe_routes(moe, tokens, request->first_position, request->rows, routes);
	if (!tokens) {
		free(routes);
		routes = NULL;
	}
	free(tokens);
	return routes;
}

static void *work(void *ctx)
{
	struct computation *computation = ctx;
	struct expected *expected = computation->expected;
	struct slow_moe *moe = slow_moe_create(computation->plan->model, computation->plan->hidden,
					       computation->plan->seed);
	uint32_t request;

	while (moe && (request = r3ring_fetch_add_u32(&computation->next_request, 1)) <
			      expected->workload.count) {
		expected->routes[request] =
			routes_of(expected, moe, &expected->workload.requests[request]);
		if (!expected->routes[request])
			r3ring_store_relaxed_u32(&computation->failed, 1);
	}
	if (!moe)
		r3ring_store_relaxed_u32(&computation->failed, 1);
	slow_moe_free(moe);
	return NULL;
}

/* The calling thread is one of the workers, so that it works without others. */
static int compute_routes(struct expected *expected, const struct demo_plan *plan)
{
	struct computation computation = {.expected = expected, .plan = plan};
	pthread_t threads[WORKERS_MAX];
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int started = 0;

	while (started < WORKERS_MAX && started + 1 < processors &&
	       !pthread_create(&threads[started], NULL, work, &computation))
		started++;
	work(&computation);
	while (started)
		pthread_join(threads[--started], NULL);
	return computation.failed ? -ENOMEM : 0;
}

static int describe_model(struct expected *expected, const struct demo_plan *plan)
{
	struct slow_moe *moe = slow_moe_create(plan->model, plan->hidden, plan->seed);

	if (!moe)
		return -ENOMEM;
	expected->layers = slow_moe_layers(moe);
	expected->experts = slow_moe_experts(moe);
	expected->top_k = slow_moe_top_k(moe);
	expected->layer_ids = calloc(expected->layers, sizeof(*expected->layer_ids));
	for (uint32_t layer = 0; expected->layer_ids && layer < expected->layers; layer++)
		expected->layer_ids[layer] = slow_moe_layer_id(moe, layer);
	slow_moe_free(moe);
	return expected->layer_ids ? 0 : -ENOMEM;
}

int expected_compute(struct expected *expected, const struct demo_plan *plan,
		     struct r3ring_error *err)
{
	const struct moe_model *model = moe_model_find(plan->model, err);
	int code;

	if (!model)
		return -EINVAL;
	code = tokens_read(&expected->tokens, plan->text_path, model->vocabulary, err);
	if (!code)
		code = workload_from_text(&expected->workload, &expected->tokens, plan->requests,
					  plan->seed, err);
	if (code)
		return code;
	expected->routes = calloc(expected->workload.count, sizeof(*expected->routes));
	code = expected->routes ? describe_model(expected, plan) : -ENOMEM;
	if (!code)
		code = compute_routes(expected, plan);
	if (code)
		r3ring_error_set(err, code, "%s: no memory for the expected routes", plan->model);
	return code;
}

void expected_free(struct expected *expected)
{
	for (uint32_t i = 0; expected->routes && i < expected->workload.count; i++)
		free(expected->routes[i]);
	free(expected->routes);
	free(expected->layer_ids);
	workload_free(&expected->workload);
	tokens_free(&expected->tokens);
}

int32_t expected_find(const struct expected *expected, const char *id)
{
	for (uint32_t i = 0; i < expected->workload.count; i++) {
		if (!strcmp(expected->workload.requests[i].id, id))
			return (int32_t)i;
	}
	return -1;
}

uint32_t expected_rows(const struct expected *expected, uint32_t request, uint32_t attempt)
{
	const struct workload_request *one = &expected->workload.requests[request];

	if (attempt == 0)
		return one->preempt_after ? one->preempt_after : one->rows;
	return attempt == 1 && one->preempt_after ? one->rows : 0;
}

uint64_t expected_total_rows(const struct expected *expected)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < expected->workload.count; i++) {
		for (uint32_t attempt = 0; attempt < EXPECTED_ATTEMPTS; attempt++)
			rows += expected_rows(expected, i, attempt);
	}
	return rows;
}

const uint16_t *expected_route(const struct expected *expected, uint32_t request, uint32_t row,
			       uint32_t layer)
{
	size_t row_ids = (size_t)expected->layers * expected->top_k;

	return expected->routes[request] + row * row_ids + (size_t)layer * expected->top_k;
}
