/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: what is refused, that a refusal changes nothing, and what unbinding
 * gives back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "producer/binding.h"

#define LAYERS 6u

/* A model of six MoE layers, 3 to 8; the first two hash-routed, the last MTP. */
struct model {
	struct r3ring_layer_entry table[LAYERS];
	struct r3ring_capture_source sources[LAYERS];
	struct r3ring_module modules[LAYERS + 2];
	char prefixes[LAYERS][64];
	uint32_t replay;
	struct binding_target target;
	uint32_t captured[LAYERS];
};

static struct model model;

static void note_capture(void *ctx, uint32_t layer, const struct r3ring_topk *topk,
			 r3ring_stream stream)
{
	uint32_t *captured = ctx;

	(void)topk;
	(void)stream;
	captured[layer]++;
}

static void set_up(void)
{
	static const char *const others[] = {"model.embed_tokens", "model.layers.0.mlp"};
	struct r3ring_module *module = model.modules;

	for (uint32_t i = 0; i < LAYERS; i++) {
		const uint8_t kind = i < 2    ? R3RING_LAYER_HASH
				     : i == 5 ? R3RING_LAYER_MTP
					      : R3RING_LAYER_MOE;
		struct r3ring_layer_entry *entry = &model.table[i];

		*entry = (struct r3ring_layer_entry){.layer_id = (int32_t)i + 3, .kind = kind};
		model.sources[i].layer_id = (int)i + 3;
		snprintf(model.prefixes[i], sizeof(model.prefixes[i]),
			 "model.layers.%u.ffn.experts", i + 3);
		*module++ = (struct r3ring_module){.prefix = model.prefixes[i],
						   .class_name = "MegaMoE",
						   .kind = i % 2 ? R3RING_MODULE_ROUTER_HOOK
								 : R3RING_MODULE_CAPTURE_SOURCE,
						   .layer_kind = kind,
						   .source = &model.sources[i]};
	}
	model.modules[4].kind = R3RING_MODULE_MONOLITHIC;
	model.modules[4].replay_enabled = &model.replay;
	for (uint32_t i = 0; i < 2; i++)
		*module++ = (struct r3ring_module){
			.prefix = others[i], .class_name = "Linear", .kind = R3RING_MODULE_OTHER};
	model.target = (struct binding_target){.layers = model.table,
					       .layer_count = LAYERS,
					       .capture = note_capture,
					       .ctx = model.captured};
}

static int bind_all(struct binding **binding, struct r3ring_error *err)
{
	return binding_create(binding, &model.target, model.modules, LAYERS + 2, err);
}

static void call_source(uint32_t layer)
{
	const struct r3ring_topk topk = {0};

	cr_assert_not_null(model.sources[layer].fn);
	model.sources[layer].fn(&model.sources[layer], &topk, NULL);
}

/* Binding fails with this code and these words, and nothing has changed. */
static void expect_refused(int code, const char *words, const char *more_words)
{
	struct binding *binding = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(bind_all(&binding, &err), code, "message is: %s", err.text);
	cr_assert_eq(err.code, code);
	cr_assert_not_null(strstr(err.text, words), "message is: %s", err.text);
	cr_assert_not_null(strstr(err.text, more_words), "message is: %s", err.text);
	cr_assert_null(binding);
	for (uint32_t i = 0; i < LAYERS; i++) {
		cr_assert_null(model.sources[i].fn);
		cr_assert_null(model.sources[i].ctx);
	}
	cr_assert_eq(model.replay, 0);
}

TestSuite(binding, .init = set_up);

Test(binding, every_layer_of_the_schema_is_bound_to_its_module)
{
	struct binding *binding;

	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	for (uint32_t i = 0; i < LAYERS; i++) {
		call_source(i);
		for (uint32_t other = 0; other < LAYERS; other++)
			cr_assert_eq(model.captured[other], other <= i);
	}
	binding_release(binding);
}

Test(binding, routing_replay_of_a_monolithic_kernel_is_switched_on_and_given_back)
{
	struct binding *binding;

	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	cr_assert_eq(model.replay, 1);
	binding_release(binding);
	cr_assert_eq(model.replay, 0);
	model.replay = 1;
	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	binding_release(binding);
	cr_assert_eq(model.replay, 1);
}

Test(binding, failure_06_an_unsupported_module_is_refused_by_name)
{
	model.modules[2].kind = R3RING_MODULE_UNSUPPORTED;
	model.modules[2].class_name = "FusedSecretMoE";
	expect_refused(-ENOTSUP, "model.layers.5.ffn.experts", "FusedSecretMoE");
}

Test(binding, failure_06_a_module_of_unknown_kind_is_refused_by_name)
{
	model.modules[2].kind = (enum r3ring_module_kind)77;
	expect_refused(-ENOTSUP, "model.layers.5.ffn.experts", "77");
}

Test(binding, failure_06_a_monolithic_kernel_without_replay_is_refused_by_name)
{
	model.modules[4].replay_enabled = NULL;
	expect_refused(-ENOTSUP, "model.layers.7.ffn.experts", "routing replay");
}

Test(binding, a_module_without_a_source_is_refused_by_name)
{
	model.modules[3].source = NULL;
	expect_refused(-ENOTSUP, "model.layers.6.ffn.experts", "no capture source");
}

Test(binding, two_sources_of_one_layer_are_refused_and_both_named)
{
	static struct r3ring_capture_source twin = {.layer_id = 4};

	model.modules[6] = model.modules[1];
	model.modules[6].class_name = "SecondMoE";
	model.modules[6].source = &twin;
	expect_refused(-EEXIST, "MegaMoE", "SecondMoE");
	cr_assert_null(twin.fn);
}

Test(binding, failure_35_a_layer_number_is_one_layer_only_within_its_kind)
{
	struct binding *binding;

	model.table[5].layer_id = 3; /* MTP layers are numbered from anew */
	model.sources[5].layer_id = 3;
	model.modules[5].prefix = model.prefixes[0];
	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	call_source(5);
	cr_assert_eq(model.captured[5], 1);
	cr_assert_eq(model.captured[0], 0);
	binding_release(binding);
}

Test(binding, one_source_of_two_modules_is_refused)
{
	model.table[5].layer_id = 3;
	model.modules[5].prefix = model.prefixes[0];
	model.modules[5].source = &model.sources[0];
	expect_refused(-EEXIST, "model.layers.3.ffn.experts", "one source");
}

Test(binding, a_layer_outside_the_schema_is_refused)
{
	model.table[3].layer_id = 60;
	expect_refused(-ERANGE, "model.layers.6.ffn.experts", "no layer 6");
}

Test(binding, a_layer_of_another_kind_than_the_schemas_is_refused)
{
	model.modules[3].layer_kind = R3RING_LAYER_HASH;
	expect_refused(-ERANGE, "model.layers.6.ffn.experts", "hash");
}

Test(binding, layers_that_no_module_binds_are_all_named)
{
	model.modules[0].kind = R3RING_MODULE_OTHER;
	model.modules[2].kind = R3RING_MODULE_OTHER;
	model.modules[3].kind = R3RING_MODULE_OTHER;
	expect_refused(-ENODATA, "3 of the schema's 6 layers", "hash 3, moe 5-6");
}

Test(binding, a_list_of_unbound_layers_that_is_too_long_says_so)
{
	static struct r3ring_layer_entry table[R3RING_LAYERS_MAX];
	struct binding *binding = NULL;
	struct r3ring_error err;

	for (uint32_t i = 0; i < R3RING_LAYERS_MAX; i++)
		table[i].layer_id = 2 * (1100 - (int32_t)i); /* shorter ones last */
	memcpy(table, model.table, sizeof(model.table));
	model.target.layers = table;
	model.target.layer_count = R3RING_LAYERS_MAX;
	cr_assert_eq(bind_all(&binding, &err), -ENODATA);
	cr_assert_not_null(strstr(err.text, "1018 of the schema's 1024"));
	cr_assert_not_null(strstr(err.text, " and others"));
	cr_assert_lt(strlen(err.text), sizeof(err.text) - 1);
}

Test(binding, failure_14_a_model_without_moe_modules_is_a_clear_error)
{
	for (uint32_t i = 0; i < LAYERS; i++)
		model.modules[i].kind = R3RING_MODULE_OTHER;
	expect_refused(-ENODATA, "no MoE module", "hash 3-4, moe 5-7, mtp 8");
}

Test(binding, a_prefix_without_a_layer_number_is_refused)
{
	model.modules[1].prefix = "model.blocks.4.ffn";
	expect_refused(-EINVAL, "model.blocks.4.ffn", "exactly one number");
	model.modules[1].prefix = NULL;
	expect_refused(-EINVAL, "MegaMoE", "exactly one number");
}

Test(binding, failure_34_a_prefix_of_another_layer_than_its_sources_is_refused)
{
	model.modules[1].prefix = "model.layers.5.ffn";
	expect_refused(-EINVAL, "layer 5", "layer 4");
}

/* ---- chains ----------------------------------------------------------- */

struct earlier {
	uint32_t calls;
	uint32_t captured_before; /* by the binding, when last called */
	int layer_id;
	const struct r3ring_topk *topk;
};

static void earlier_capture(const struct r3ring_capture_source *source,
			    const struct r3ring_topk *topk, r3ring_stream stream)
{
	struct earlier *earlier = source->ctx;

	(void)stream;
	earlier->calls++;
	earlier->captured_before = model.captured[source->layer_id - 3];
	earlier->layer_id = source->layer_id;
	earlier->topk = topk;
}

Test(binding, failure_48_a_function_that_is_there_is_called_first_with_its_own_context)
{
	const struct r3ring_topk topk = {.rows = 3};
	struct earlier earlier = {0};
	struct binding *binding;

	model.sources[2].fn = earlier_capture;
	model.sources[2].ctx = &earlier;
	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	model.sources[2].fn(&model.sources[2], &topk, NULL);
	cr_assert_eq(earlier.calls, 1);
	cr_assert_eq(earlier.layer_id, 5);
	cr_assert_eq(earlier.topk, &topk);
	cr_assert_eq(earlier.captured_before, 0);
	cr_assert_eq(model.captured[2], 1);
	binding_release(binding);
	cr_assert_eq(model.sources[2].fn, earlier_capture);
	cr_assert_eq(model.sources[2].ctx, &earlier);
}

Test(binding, release_gives_every_source_back_what_it_had)
{
	struct binding *binding;

	cr_assert_eq(bind_all(&binding, NULL), LAYERS);
	binding_release(binding);
	for (uint32_t i = 0; i < LAYERS; i++) {
		cr_assert_null(model.sources[i].fn);
		cr_assert_null(model.sources[i].ctx);
	}
	binding_release(NULL);
}

Test(binding, failure_48_two_bindings_of_one_model_both_capture)
{
	struct binding *first, *second;
	uint32_t others[LAYERS] = {0};

	cr_assert_eq(bind_all(&first, NULL), LAYERS);
	model.target.ctx = others;
	cr_assert_eq(bind_all(&second, NULL), LAYERS);
	call_source(1);
	cr_assert_eq(model.captured[1], 1);
	cr_assert_eq(others[1], 1);
	binding_release(second);
	binding_release(first);
	cr_assert_null(model.sources[1].fn);
}

static struct binding *left_behind; /* a chain leads through it to the end */

Test(binding, failure_48_a_binding_released_out_of_turn_leaves_the_later_one_whole)
{
	struct binding *second;
	uint32_t others[LAYERS] = {0};

	cr_assert_eq(bind_all(&left_behind, NULL), LAYERS);
	model.target.ctx = others;
	cr_assert_eq(bind_all(&second, NULL), LAYERS);
	binding_release(left_behind);
	call_source(1);
	cr_assert_eq(model.captured[1], 0);
	cr_assert_eq(others[1], 1);
	binding_release(second);
	call_source(1);
	cr_assert_eq(model.captured[1], 0);
	cr_assert_eq(others[1], 1);
}
