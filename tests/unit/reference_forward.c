/* SPDX-License-Identifier: Apache-2.0 */
/* The reference model against its slow twin, and the table of models. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/dot.h"
#include "producer/reference/forward.h"
#include "producer/reference/weights.h"
#include "tests/support/slow_moe.h"

#define TOKENS 12u
#define FIRST_POSITION 1000u

static int32_t some_token(uint32_t i)
{
	return (int32_t)(weight_word(99, i) % 100000);
}

/* [TOKENS][layers][top_k] as the fast forward has them; caller frees. */
static uint16_t *forward_routes(const struct moe_model *model, uint32_t hidden, uint64_t seed)
{
	uint32_t layers = moe_model_layers(model);
	size_t top_k = model->top_k;
	uint16_t *all = calloc(TOKENS * layers * top_k, sizeof(*all));
	uint16_t *ids = calloc(TOKENS * top_k, sizeof(*ids));
	int32_t tokens[TOKENS], positions[TOKENS];
	struct r3ring_error err;
	struct forward *forward;

	for (uint32_t t = 0; t < TOKENS; t++) {
		tokens[t] = some_token(t);
		positions[t] = (int32_t)(FIRST_POSITION + t);
	}
	cr_assert_eq(forward_create(&forward, model, hidden, seed, TOKENS, &err), 0);
	forward_embed(forward, tokens, positions, TOKENS);
	for (uint32_t l = 0; l < layers; l++) {
		forward_layer(forward, l, tokens, TOKENS, ids);
		for (uint32_t t = 0; t < TOKENS; t++)
			memcpy(all + (t * layers + l) * top_k, ids + t * top_k,
			       top_k * sizeof(*ids));
	}
	forward_free(forward);
	free(ids);
	return all;
}

static void expect_slow_routes(const char *name, uint32_t hidden, uint64_t seed)
{
	const struct moe_model *model = moe_model_find(name, NULL);
	struct slow_moe *slow = slow_moe_create(name, hidden, seed);
	uint16_t *routes = forward_routes(model, hidden, seed);
	size_t cells = (size_t)TOKENS * moe_model_layers(model) * model->top_k;
	uint16_t *expected = calloc(cells, sizeof(*expected));
	int32_t tokens[TOKENS];

	for (uint32_t t = 0; t < TOKENS; t++)
		tokens[t] = some_token(t);
	slow_moe_routes(slow, tokens, FIRST_POSITION, TOKENS, expected);
	for (size_t i = 0; i < cells; i++)
		cr_assert_eq(routes[i], expected[i], "%s, hidden %u, seed %llu, id %zu", name,
			     hidden, (unsigned long long)seed, i);
	free(routes);
	free(expected);
	slow_moe_free(slow);
}

Test(reference_forward, deepseek_v4_routes_agree_with_the_slow_reference)
{
	expect_slow_routes("deepseek-v4-flash", 64, 1);
	expect_slow_routes("deepseek-v4-pro", 48, 2);
}

Test(reference_forward, kimi_routes_agree_with_the_slow_reference)
{
	expect_slow_routes("kimi-k3", 64, 3);
	expect_slow_routes("kimi-k2", 16, 4);
}

Test(reference_forward, group_limited_routes_agree_with_the_slow_reference)
{
	expect_slow_routes("deepseek-v3", 64, 5);
	expect_slow_routes("deepseek-v3", 80, 6);
}

Test(reference_forward, softmax_routes_agree_with_the_slow_reference)
{
	expect_slow_routes("qwen3-235b", 64, 7);
	expect_slow_routes("gpt-oss-20b", 256, 8);
}

Test(reference_forward, failure_34_layers_have_the_models_own_numbers)
{
	struct r3ring_error err;

	for (size_t m = 0; moe_model_at(m); m++) {
		const struct moe_model *model = moe_model_at(m);
		struct slow_moe *slow = slow_moe_create(model->name, 16, 1);

		cr_assert_eq(moe_model_find(model->name, &err), model);
		cr_assert_eq(moe_model_layers(model), slow_moe_layers(slow), "%s", model->name);
		cr_assert_eq(model->experts, slow_moe_experts(slow), "%s", model->name);
		cr_assert_eq(model->top_k, slow_moe_top_k(slow), "%s", model->name);
		for (uint32_t l = 0; l < moe_model_layers(model); l++) {
			struct r3ring_layer_entry entry = moe_model_layer(model, l);

			cr_assert_eq(entry.layer_id, slow_moe_layer_id(slow, l));
			cr_assert_eq(entry.kind == R3RING_LAYER_HASH,
				     slow_moe_layer_is_hash(slow, l));
		}
		slow_moe_free(slow);
	}
}

Test(reference_forward, an_unknown_model_is_refused_with_the_known_ones)
{
	struct r3ring_error err;

	cr_assert_null(moe_model_find("gpt-9", &err));
	cr_assert(strstr(err.text, "gpt-9"));
	for (size_t m = 0; moe_model_at(m); m++)
		cr_assert(strstr(err.text, moe_model_at(m)->name), "%s", err.text);
}

Test(reference_forward, hash_layers_follow_the_token_and_not_the_position)
{
	const struct moe_model *model = moe_model_find("deepseek-v4-flash", NULL);
	int32_t tokens[] = {77, 77, 78};
	int32_t positions[] = {3, 900, 3};
	uint16_t hash[18], scored[18];
	struct forward *forward;

	cr_assert_eq(forward_create(&forward, model, 64, 1, 3, NULL), 0);
	forward_embed(forward, tokens, positions, 3);
	for (uint32_t l = 0; l < 3; l++)
		forward_layer(forward, l, tokens, 3, hash);
	forward_layer(forward, 3, tokens, 3, scored);
	cr_assert_arr_eq(hash, hash + 6, 6 * sizeof(*hash));
	cr_assert_arr_neq(hash, hash + 12, 6 * sizeof(*hash));
	cr_assert_arr_neq(scored, scored + 6, 6 * sizeof(*scored));
	forward_free(forward);
}

Test(reference_forward, a_hidden_size_out_of_range_is_refused)
{
	const struct moe_model *model = moe_model_find("gpt-oss-20b", NULL);
	const uint32_t sizes[] = {0, 8, 24, 4112};
	struct forward *forward = NULL;
	struct r3ring_error err;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_eq(forward_create(&forward, model, sizes[i], 1, 1, &err), -EINVAL);
		cr_assert(strstr(err.text, "multiple of 16"));
	}
	cr_assert_null(forward);
}

Test(reference_forward, vector_code_multiplies_extreme_values_exactly)
{
	static int16_t matrix[3][4096], vector[4096];
	int32_t out[3];

	for (uint32_t i = 0; i < 4096; i++) {
		vector[i] = -128;
		matrix[0][i] = -128;
		matrix[1][i] = 127;
		matrix[2][i] = (int16_t)(i % 2 ? 1 : -1);
	}
	dot_rows_best()(out, matrix[0], 3, vector, 4096);
	cr_assert_eq(out[0], 4096 * 128 * 128);
	cr_assert_eq(out[1], -4096 * 128 * 127);
	cr_assert_eq(out[2], 0);
}
