/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of expert ids to u16 for a team of many workers, eight ids at a
 * time: 16 bytes are stored at once, and 16 bytes are loaded at once where the
 * ids lie so. For the GPU; the CPU runs it in tests.
 *
 * Included by kernels/body.h in place of its plain conversion.
 */
#ifndef KERNELS_CONVERT_WIDE_H
#define KERNELS_CONVERT_WIDE_H

#define KERNEL_WIDE_IDS 8u
#define KERNEL_WIDE_BYTES 16u

/* What one access moves. It may lie over ids of any type. */
struct __attribute__((aligned(16), may_alias)) kernel_wide {
	uint32_t word[4];
};

KERNEL_INLINE bool kernel_is_wide(const void *place)
{
	return (uintptr_t)place % KERNEL_WIDE_BYTES == 0;
}

KERNEL_INLINE uint64_t kernel_id_at(const void *ids, uint64_t element, uint32_t bytes)
{
	switch (bytes) {
	case 2:
		return ((const uint16_t *)ids)[element];
	case 4:
		return ((const uint32_t *)ids)[element];
	default:
		return ((const uint64_t *)ids)[element];
	}
}

/* Eight ids of @bytes each that begin at a multiple of 16 bytes. */
KERNEL_INLINE void kernel_wide_load(const void *place, uint32_t bytes, uint64_t *ids)
{
	const struct kernel_wide *from = (const struct kernel_wide *)place;
	struct kernel_wide wide[4];

	for (uint32_t i = 0; i < bytes / 2; i++)
		wide[i] = from[i];
	for (uint32_t i = 0; i < KERNEL_WIDE_IDS; i++) {
		const uint32_t *word = &wide[i * bytes / 16].word[i * bytes / 4 % 4];

		if (bytes == 2)
			ids[i] = i % 2 ? *word >> 16 : *word & 0xFFFFu;
		else if (bytes == 4)
			ids[i] = *word;
		else
			ids[i] = word[0] | (uint64_t)word[1] << 32;
	}
}

/* Eight ids of a run, from element @i of its output on. */
KERNEL_INLINE void kernel_wide_gather(const struct kernel_run *run, uint32_t i, uint32_t bytes,
				      uint64_t *ids)
{
	uint64_t row = i / run->top_k;
	uint32_t column = (uint32_t)(i - row * run->top_k);
	uint64_t element = run->from + row * run->row_stride + column;
	const uint8_t *place = (const uint8_t *)run->ids + element * bytes;

	if ((run->row_stride == run->top_k || column + KERNEL_WIDE_IDS <= run->top_k) &&
	    kernel_is_wide(place)) {
		kernel_wide_load(place, bytes, ids);
		return;
	}
	for (uint32_t k = 0; k < KERNEL_WIDE_IDS; k++) {
		ids[k] = kernel_id_at(run->ids, element, bytes);
		element++;
		if (++column == run->top_k) {
			column = 0;
			element += run->row_stride - run->top_k;
		}
	}
}

KERNEL_INLINE uint16_t kernel_id_narrow(uint64_t id, uint32_t limit, uint64_t missing,
					struct kernel_tally *tally)
{
	if (id < limit)
		return (uint16_t)id;
	tally->missing += id == missing;
	tally->out_of_range += id != missing;
	return (uint16_t)R3RING_MISSING;
}

KERNEL_INLINE void kernel_wide_convert(const struct kernel_run *run, uint32_t i, uint32_t bytes,
				       struct kernel_tally *tally)
{
	const uint32_t limit = kernel_id_limit(run->type, run->experts);
	const uint64_t missing = UINT64_MAX >> (64 - 8 * bytes);
	uint64_t ids[KERNEL_WIDE_IDS];
	struct kernel_wide out;

	kernel_wide_gather(run, i, bytes, ids);
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t low = kernel_id_narrow(ids[2 * k], limit, missing, tally);
		uint32_t high = kernel_id_narrow(ids[2 * k + 1], limit, missing, tally);

		out.word[k] = low | high << 16;
	}
	*(struct kernel_wide *)(void *)(run->to + i) = out;
}

/* What no store of 16 bytes covers. */
KERNEL_INLINE void kernel_narrow_convert(const struct kernel_run *run, uint32_t i, uint32_t bytes,
					 struct kernel_tally *tally)
{
	uint64_t row = i / run->top_k;
	uint64_t element = run->from + row * run->row_stride + (i - row * run->top_k);

	run->to[i] = kernel_id_narrow(kernel_id_at(run->ids, element, bytes),
				      kernel_id_limit(run->type, run->experts),
				      UINT64_MAX >> (64 - 8 * bytes), tally);
}

/* Elements before the first multiple of 16 bytes, then eights, then the rest. A run
 * has 2^20 rows of 256 ids at most, so 32 bits count them. */
KERNEL_INLINE void kernel_run_convert_bytes(const struct kernel_run *run, uint32_t bytes,
					    uint32_t worker, uint32_t workers,
					    struct kernel_tally *tally)
{
	const uint32_t count = run->rows * run->top_k;
	const uint32_t before = (uint32_t)(-(uintptr_t)run->to % KERNEL_WIDE_BYTES / 2);
	const uint32_t head = before < count ? before : count;
	const uint32_t eights = (count - head) / KERNEL_WIDE_IDS;
	const uint32_t tail = head + eights * KERNEL_WIDE_IDS;

	for (uint32_t i = worker; i < eights; i += workers)
		kernel_wide_convert(run, head + i * KERNEL_WIDE_IDS, bytes, tally);
	for (uint32_t i = worker; i < head; i += workers)
		kernel_narrow_convert(run, i, bytes, tally);
	for (uint32_t i = tail + worker; i < count; i += workers)
		kernel_narrow_convert(run, i, bytes, tally);
}

KERNEL_INLINE void kernel_run_convert(const struct kernel_run *run, uint32_t worker,
				      uint32_t workers, struct kernel_tally *tally)
{
	switch (kernel_id_bytes(run->type)) {
	case 2:
		kernel_run_convert_bytes(run, 2, worker, workers, tally);
		break;
	case 4:
		kernel_run_convert_bytes(run, 4, worker, workers, tally);
		break;
	default:
		kernel_run_convert_bytes(run, 8, worker, workers, tally);
		break;
	}
}

#endif
