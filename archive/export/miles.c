/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What miles takes: SGLang's answer, meta_info.routed_experts in base64.
 *
 * Seen in https://github.com/radixark/miles:
 *  - miles/rollout/generate_utils/generate_endpoint_utils.py at
 *    02aa8e78b8e75824ab392f430bb9d39637fbb4fe: base64 of int32, reshaped to
 *    (len(sample.tokens) - 1, args.num_layers, topk), topk by what is left.
 *  - miles/utils/types.py at 002ce70c0f33c97255bec842e8b95d1dfb31d3f3:
 *    Sample.rollout_routed_experts, "shape: (num_tokens-1, num_layers, moe_router_topk),
 *    dtype=int32"; another number of rows fails an assertion.
 *  - miles/utils/replay_base.py at 0654b09f25f88e4d6c52a906eb54f9a6bdc6264f: where a layer's ids
 *    of a micro-batch have a -1 anywhere, its own router chooses for all of its tokens; else
 *    the ids index the router's scores as they are.
 */
#include "archive/export/format.h"

const struct export_format export_miles = {
	.name = "miles",
	.summary = "JSON lines: meta_info.routed_experts, int32 in base64, all layers",
	.tensor = "routed_experts",
	.dtype = EXPORT_I32,
	.fixed = true,
	.whole = true,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_ALL,
	.pad = EXPORT_FILL_ZEROS,
	.missing =
		{
			[EXPORT_FILL_MINUS_ONE] = {.why = "miles replays no token of a micro-batch "
							  "in a layer that has a -1: "
							  "the model routes all of them anew"},
			[EXPORT_FILL_ZEROS] =
				{.why = "miles has no mask: it replays expert 0 there"},
			[EXPORT_FILL_ARANGE] =
				{.why = "miles has no mask: it replays experts 0, 1, ... there"},
		},
	.container = &export_base64_container,
};
