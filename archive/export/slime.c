/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slime takes: SGLang's answer, meta_info.routed_experts in base64.
 *
 * Seen in https://github.com/THUDM/slime:
 *  - slime/rollout/sglang_rollout.py at 3c9aa092ef7f302f720aecc69fdbcfe6e7743974: base64 of
 *    int32, reshaped to (len(sample.tokens) - 1, args.num_layers, args.moe_router_topk).
 *  - slime/utils/routed_experts.py at 68572249359201b42bd2020a584c370bc8b403e1: the layers are
 *    all of the model's and dense ones are not looked at; every id of a MoE layer must be in
 *    [0, num_experts), so -1 is refused; a row that is zero in all MoE layers counts as
 *    missing and is tolerated in max(64, rows / 100) rows of a sample; one that is zero in some
 *    of them only is refused, and so is a layer that is zero in all rows (of top_k > 1).
 * Hence --missing zeros is the nearest that it takes, and error the safer choice.
 */
#include "archive/export/format.h"

const struct export_format export_slime = {
	.name = "slime",
	.summary = "JSON lines: meta_info.routed_experts, int32 in base64, all layers",
	.tensor = "routed_experts",
	.dtype = EXPORT_I32,
	.fixed = true,
	.whole = true,
	.few_holes = true,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_ALL,
	.pad = EXPORT_FILL_ZEROS,
	.missing =
		{
			[EXPORT_FILL_MINUS_ONE] =
				{true,
				 "slime refuses ids that are no experts: give --missing zeros, of "
				 "which it takes 64 rows of a request, or 1 % if that is more, "
				 "or leave --missing out"},
			[EXPORT_FILL_ZEROS] = {.why = "slime tolerates at most 64 rows of zeros, "
						      "or 1 % if that is "
						      "more, and replays expert 0 there"},
			[EXPORT_FILL_ARANGE] = {.why = "slime takes them for routes and replays "
						       "experts 0, 1, ... there"},
		},
	.container = &export_base64_container,
};
