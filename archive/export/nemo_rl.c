/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NeMo-RL takes: routed_experts, [tokens, layers, topk] of the narrowest signed type.
 *
 * Seen in https://github.com/NVIDIA-NeMo/RL:
 *  - nemo_rl/models/generation/interfaces.py at
 *    00ab4ef4fd3cc68354782f42691aa47f8f557e9f: int8 for up to 128 experts, int16 for up to
 *    32768, else int32; a row of -1 in every place means that no route was captured, and the
 *    model's own router decides; a row that is -1 in some places only is refused.
 *  - nemo_rl/models/megatron/router_replay.py at
 *    09f03932a8d3bd43a372a1f70337ee654891a6a0: [B, S, L, K], [1, T, L, K] or [T, L, K]; L is
 *    the number of MoE layers, or of all layers; with NRL_ROUTER_REPLAY_VALIDATE an id twice
 *    in a row, as zeros would be, is an error.
 * It hands them on as tensors in memory and has no file of its own. So this is safetensors,
 * with the requests one behind the other; docs/TRAINERS.md takes them apart. --missing -1
 * is what it understands.
 */
#include "archive/export/format.h"

const struct export_format export_nemo_rl = {
	.name = "nemo-rl",
	.summary = "safetensors: routed_experts, narrowest signed type, a row a token",
	.tensor = "routed_experts",
	.dtype = EXPORT_I16,
	.signed_by_experts = true,
	.whole = true,
	.rows = EXPORT_ROWS_FULL,
	.layers = EXPORT_LAYERS_MOE,
	.pad = EXPORT_FILL_MINUS_ONE,
	.missing =
		{
			[EXPORT_FILL_ZEROS] = {.why = "nemo-rl replays expert 0 there, and refuses "
						      "an expert twice in a "
						      "row with NRL_ROUTER_REPLAY_VALIDATE=1; -1 "
						      "leaves it to the model"},
			[EXPORT_FILL_ARANGE] = {.why = "nemo-rl replays experts 0, 1, ... there; "
						       "-1 leaves it to the model"},
		},
	.container = &export_safetensors_container,
};
