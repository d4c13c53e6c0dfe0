/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to counters and bells, for the CPU and for the GPU: the only part of
 * the kernels' source that differs between them.
 *
 * Source: PTX ISA, "Memory Consistency Model" and the instructions ld, st, atom.
 */
#ifndef KERNELS_ACCESS_H
#define KERNELS_ACCESS_H

#include <stdint.h>

#ifdef __CUDACC__

#define KERNEL_INLINE static __device__ inline

/* Adds with acquire and release order among all threads of the GPU. */
KERNEL_INLINE uint32_t kernel_counter_add(uint32_t *word, uint32_t value)
{
	uint32_t before;

	asm __volatile__("atom.add.acq_rel.gpu.u32 %0, [%1], %2;"
			 : "=r"(before)
			 : "l"(word), "r"(value)
			 : "memory");
	return before;
}

KERNEL_INLINE uint32_t kernel_counter_load(const uint32_t *word)
{
	uint32_t value;

	asm __volatile__("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
	return value;
}

/* For what an acquire before it has made visible. */
KERNEL_INLINE uint32_t kernel_counter_read(const uint32_t *word)
{
	uint32_t value;

	asm __volatile__("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
	return value;
}

KERNEL_INLINE void kernel_bell_store_u32(uint32_t *word, uint32_t value)
{
	asm __volatile__("st.relaxed.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

KERNEL_INLINE void kernel_bell_store_u64(uint64_t *word, uint64_t value)
{
	asm __volatile__("st.relaxed.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

KERNEL_INLINE uint64_t kernel_bell_load_u64(const uint64_t *word)
{
	uint64_t value;

	asm __volatile__("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

/* Release at system scope: the daemon's CPU is the one that acquires. */
KERNEL_INLINE void kernel_bell_ring(uint64_t *word, uint64_t step)
{
	asm __volatile__("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(step) : "memory");
}

/* The GPU has no clock that runs with the host's. */
KERNEL_INLINE uint64_t kernel_clock_ns(void)
{
	return 0;
}

#else

#include <r3ring/atomic.h>

#include "channel/clock.h"

#define KERNEL_INLINE static inline

KERNEL_INLINE uint32_t kernel_counter_add(uint32_t *word, uint32_t value)
{
	return r3ring_fetch_add_u32(word, value);
}

KERNEL_INLINE uint32_t kernel_counter_load(const uint32_t *word)
{
	return r3ring_load_acquire_u32(word);
}

KERNEL_INLINE uint32_t kernel_counter_read(const uint32_t *word)
{
	return r3ring_load_relaxed_u32(word);
}

KERNEL_INLINE void kernel_bell_store_u32(uint32_t *word, uint32_t value)
{
	r3ring_store_relaxed_u32(word, value);
}

KERNEL_INLINE void kernel_bell_store_u64(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, value);
}

KERNEL_INLINE uint64_t kernel_bell_load_u64(const uint64_t *word)
{
	return r3ring_load_relaxed_u64(word);
}

KERNEL_INLINE void kernel_bell_ring(uint64_t *word, uint64_t step)
{
	r3ring_store_release_u64(word, step);
}

KERNEL_INLINE uint64_t kernel_clock_ns(void)
{
	return clock_now_ns();
}

#endif

#endif
