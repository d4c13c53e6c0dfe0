/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of expert ids to u16 on the CPU, with vector code chosen at run time. */
#ifndef KERNELS_CONVERT_H
#define KERNELS_CONVERT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes @count ids to @to: an id below @limit as it is, any other as
 * R3RING_MISSING. Ids are read as unsigned words. Returns how many were not
 * below the limit.
 */
size_t convert_ids_u16(uint16_t *to, const uint16_t *ids, size_t count, uint16_t limit);
size_t convert_ids_u32(uint16_t *to, const uint32_t *ids, size_t count, uint32_t limit);
size_t convert_ids_u64(uint16_t *to, const uint64_t *ids, size_t count, uint64_t limit);

#endif
