/* SPDX-License-Identifier: Apache-2.0 */
/* What requests did goes to a history when they end. */
#include <stdlib.h>

#include <r3ring/predict.h>

#include "consumer/signature/signature.h"

int r3ring_signatures_keep(struct r3ring_signatures *signatures, struct r3ring_history *history)
{
	int r;

	if (!history)
		return -EINVAL;
	r = signatures->ended ? 0 : r3ring_signature_create(&signatures->ended);

	if (r == 0)
		signatures->history = history;
	return r;
}

/* Prefill and decode together, saturating. NULL without memory. */
static uint16_t *sum_of(const struct r3ring_signature_info *info)
{
	size_t cells = (size_t)info->layers * info->experts;
	uint16_t *sum = malloc(cells * sizeof(*sum));

	for (size_t i = 0; sum && i < cells; i++) {
		uint32_t both = (uint32_t)info->counts[R3RING_SIGNATURE_PREFILL][i] +
				info->counts[R3RING_SIGNATURE_DECODE][i];

		sum[i] = both < UINT16_MAX ? (uint16_t)both : UINT16_MAX;
	}
	return sum;
}

/* The history counts what it could not take. */
void slot_keep(struct r3ring_signatures *signatures, const struct slot *slot)
{
	const struct r3ring_signature_info *info;
	struct r3ring_finished finished;
	uint16_t *sum;

	const uint32_t no_request = R3RING_SIGNATURE_UNFINISHED | R3RING_SIGNATURE_END_MISSED |
				    R3RING_SIGNATURE_MIXED;

	if (!signatures->history || (slot->flags & no_request) ||
	    slot_read(signatures, slot, signatures->ended) < 0)
		return;
	info = r3ring_signature_get_info(signatures->ended);
	if (!info->rows[R3RING_SIGNATURE_PREFILL] && !info->rows[R3RING_SIGNATURE_DECODE] &&
	    !info->rows_in_part)
		return;
	sum = sum_of(info);
	if (!sum)
		return;
	finished = (struct r3ring_finished){
		.id = info->id,
		.layers = info->layers,
		.experts = info->experts,
		.counts = sum,
		.finished_ns = info->updated_ns,
		.model = signatures->assembler->model,
	};
	r3ring_history_add(signatures->history, &finished);
	free(sum);
}
