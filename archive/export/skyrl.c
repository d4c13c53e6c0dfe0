/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SkyRL takes: rollout_expert_indices, int32 [tokens, layers, topk].
 *
 * Seen in https://github.com/NovaSky-AI/SkyRL:
 *  - skyrl/train/dataset/preprocess.py at 07eefd6ce6b6f7510c728a53c079fce3bbf86999:
 *    rollout_expert_indices, for each sample [rows][layers][topk] from its first token on, as
 *    many rows as there are; they become torch.int32 [batch, seq_len, layer_num, topk].
 *  - skyrl/backends/skyrl_train/utils/replay_utils.py at
 *    26749f40829ab2407dc1b4bb8342f399b188218d: the layers are all of the model's, dense ones
 *    are not looked at; rows of padding are 0, 1, ... topk - 1, since the dispatcher needs
 *    distinct experts; Megatron's router, to which they go, indexes its scores with them.
 * It hands them on as lists and tensors in memory and has no file of its own. So this is
 * safetensors, with the requests one behind the other; docs/TRAINERS.md takes them apart.
 */
#include "archive/export/format.h"

const struct export_format export_skyrl = {
	.name = "skyrl",
	.summary = "safetensors: rollout_expert_indices, int32, all layers",
	.tensor = "rollout_expert_indices",
	.dtype = EXPORT_I32,
	.fixed = true,
	.whole = true,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_ALL,
	.pad = EXPORT_FILL_ARANGE,
	.missing =
		{
			[EXPORT_FILL_MINUS_ONE] =
				{true,
				 "skyrl takes every id for an expert, and -1 is none: give "
				 "--missing arange, which it replays, or leave --missing out"},
			[EXPORT_FILL_ZEROS] =
				{true, "skyrl needs distinct experts in each row: give --missing "
				       "arange, which it replays, or leave --missing out"},
			[EXPORT_FILL_ARANGE] = {.why = "skyrl replays experts 0, 1, ... there "
						       "where its own padding mask "
						       "does not leave them out"},
		},
	.container = &export_safetensors_container,
};
