/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What verl takes: routed_experts, int16 [tokens, layers, topk].
 *
 * Seen in https://github.com/verl-project/verl (volcengine/verl before):
 *  - verl/experimental/agent_loop/agent_loop.py at
 *    02dd715167b4981645857b924df48e2fb6241b6d: routed_experts of a sample becomes a tensor of
 *    torch.int16, "indexed by absolute token position, so it must span the whole sequence";
 *    rows behind those that the engine recorded "stay zero; replay masks them out".
 *  - verl/utils/megatron/router_replay_utils.py at
 *    0ba5739880be1b4ba5f394dfc748a2590ea9f44a (volcengine/verl): a batch's
 *    [bs, max_seq_len, layer_num, topk]; a pipeline stage takes its layers from its first
 *    layer's number on, so the layers are all of the model's.
 *  - verl/utils/megatron/router_replay_patch.py at
 *    4d69e2bddaf5e184b5d6dfa42353afbcacc7d479 (volcengine/verl): the ids index the router's
 *    scores as they are (gather), so -1 is out of bounds.
 * It hands them on as tensors in memory and has no file of its own. So this is safetensors,
 * with the requests one behind the other; docs/TRAINERS.md takes them apart.
 */
#include "archive/export/format.h"

const struct export_format export_verl = {
	.name = "verl",
	.summary = "safetensors: routed_experts, int16, a row a token, all layers",
	.tensor = "routed_experts",
	.dtype = EXPORT_I16,
	.fixed = true,
	.whole = true,
	.rows = EXPORT_ROWS_FULL,
	.layers = EXPORT_LAYERS_ALL,
	.pad = EXPORT_FILL_ZEROS,
	.missing =
		{
			[EXPORT_FILL_MINUS_ONE] = {true,
						   "verl takes every id for an expert, and -1 is "
						   "none: give --missing zeros or arange, which it "
						   "replays, or leave --missing out"},
			[EXPORT_FILL_ZEROS] =
				{.why = "verl has no mask: it replays expert 0 there"},
			[EXPORT_FILL_ARANGE] =
				{.why = "verl has no mask: it replays experts 0, 1, ... there"},
		},
	.container = &export_safetensors_container,
};
