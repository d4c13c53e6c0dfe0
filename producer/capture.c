/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing: one launch a layer, which finds the step in the control block. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "producer/producer.h"

/* Whether all rows lie within what an address can reach. */
static bool rows_fit(const struct r3ring_topk *topk, uint32_t id_bytes)
{
	uint64_t rows = topk->rows ? topk->rows : 1, bytes;

	return !__builtin_mul_overflow(topk->row_stride, rows * id_bytes, &bytes) &&
	       bytes <= PTRDIFF_MAX && bytes <= UINTPTR_MAX - (uintptr_t)topk->ids;
}

static const char *topk_fault(const struct r3ring_producer *producer,
			      const struct r3ring_topk *topk)
{
	static const uint8_t id_bytes[] = {
		[R3RING_INT16] = 2,  [R3RING_UINT16] = 2, [R3RING_INT32] = 4,
		[R3RING_UINT32] = 4, [R3RING_INT64] = 8,
	};

	if (topk->type < R3RING_INT16 || topk->type > R3RING_INT64)
		return "type is none of enum r3ring_id_type";
	if (topk->columns < producer->geometry.top_k)
		return "columns is less than top_k";
	if (topk->row_stride < topk->columns)
		return "row_stride is less than columns";
	if (!rows_fit(topk, id_bytes[topk->type]))
		return "rows of this row_stride are more than any memory holds: give the distance "
		       "of two rows, in elements";
	if (!topk->ids && topk->rows)
		return "ids is NULL";
	if ((uintptr_t)topk->ids % id_bytes[topk->type])
		return "ids is not aligned to its type";
	return NULL;
}

int r3ring_capture_layer(struct r3ring_producer *producer, uint32_t layer_index,
			 const struct r3ring_topk *topk, r3ring_stream stream)
{
	struct kernel_capture_args args;
	const char *fault;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (layer_index >= producer->geometry.layers)
		return producer_step_failed(producer, -ENOENT,
					    "capture: layer index %u; the schema has %u layers",
					    layer_index, producer->geometry.layers);
	fault = topk_fault(producer, topk);
	if (fault)
		return producer_step_failed(
			producer, -EINVAL,
			"capture of layer index %u: %s (type %u, rows %u, columns %u, row_stride "
			"%llu, top_k %u)",
			layer_index, fault, topk->type, topk->rows, topk->columns,
			(unsigned long long)topk->row_stride, producer->geometry.top_k);

	args = (struct kernel_capture_args){
		.control = producer->control,
		.buffer = producer->buffer.base,
		.bells = producer->bells,
		.geometry = producer->geometry,
		.ids = topk->ids,
		.row_stride = topk->row_stride,
		.type = topk->type,
		.rows = topk->rows,
		.row_offset = topk->row_offset,
		.layer = layer_index,
	};
	if (producer->ops->launch_capture(producer->device, stream, &args))
		return producer_step_failed(producer, -EIO,
					    "capture of layer index %u: device \"%s\" refused the "
					    "launch; the layer is missing: %.300s",
					    layer_index, producer->ops->name,
					    producer->ops->fault(producer->device));
	return 0;
}

int r3ring_capture(struct r3ring_producer *producer, int32_t layer_id,
		   const struct r3ring_topk *topk, r3ring_stream stream)
{
	uint16_t index = PRODUCER_NO_LAYER;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (layer_id >= 0 && layer_id <= PRODUCER_LAYER_ID_MAX)
		index = producer->layer_of_id[layer_id];
	if (index == PRODUCER_NO_LAYER)
		return producer_step_failed(producer, -ENOENT,
					    "capture: the schema has no moe or hash layer %d",
					    layer_id);
	return r3ring_capture_layer(producer, index, topk, stream);
}

int r3ring_capture_rows(struct r3ring_producer *producer, const int32_t *positions,
			const int32_t *token_ids, r3ring_stream stream)
{
	struct kernel_rows_args args;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (!producer->geometry.captures_rows)
		return producer_step_failed(producer, -ENOTSUP,
					    "capture_rows: opened without capture_rows = 1");
	if (!positions && !token_ids)
		return producer_step_failed(producer, -EINVAL,
					    "capture_rows: positions and token_ids are both NULL");

	args = (struct kernel_rows_args){
		.control = producer->control,
		.buffer = producer->buffer.base,
		.bells = producer->bells,
		.geometry = producer->geometry,
		.positions = positions,
		.token_ids = token_ids,
	};
	if (producer->ops->launch_rows(producer->device, stream, &args))
		return producer_step_failed(
			producer, -EIO, "capture_rows: device \"%s\" refused the launch: %.300s",
			producer->ops->name, producer->ops->fault(producer->device));
	return 0;
}
