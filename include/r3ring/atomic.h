/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic access to words in shared memory: the only place that knows how.
 *
 * Shared structures hold plain fixed-width integers, because C, C++ and nvcc
 * must all accept their declarations; these typed functions give the accesses
 * their order. Each release in the code names, in a comment, the acquire that
 * it pairs with.
 *
 * Source: ISO C11 7.17 (memory orders), GCC manual 6.55 "Built-in Functions
 * for Memory Model Aware Atomic Operations".
 */
#ifndef R3RING_ATOMIC_H
#define R3RING_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define R3RING_ATOMIC_ACCESS(bits)                                                                 \
	static inline uint##bits##_t r3ring_load_relaxed_u##bits(const uint##bits##_t *word)       \
	{                                                                                          \
		return __atomic_load_n(word, __ATOMIC_RELAXED);                                    \
	}                                                                                          \
	static inline uint##bits##_t r3ring_load_acquire_u##bits(const uint##bits##_t *word)       \
	{                                                                                          \
		return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                    \
	}                                                                                          \
	static inline void r3ring_store_relaxed_u##bits(uint##bits##_t *word,                      \
							uint##bits##_t value)                      \
	{                                                                                          \
		__atomic_store_n(word, value, __ATOMIC_RELAXED);                                   \
	}                                                                                          \
	static inline void r3ring_store_release_u##bits(uint##bits##_t *word,                      \
							uint##bits##_t value)                      \
	{                                                                                          \
		__atomic_store_n(word, value, __ATOMIC_RELEASE);                                   \
	}                                                                                          \
	/* Adds with acquire and release order; returns the value before. */                       \
	static inline uint##bits##_t r3ring_fetch_add_u##bits(uint##bits##_t *word,                \
							      uint##bits##_t value)                \
	{                                                                                          \
		return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);                          \
	}                                                                                          \
	/* Stores with acquire and release order; returns the value before. */                     \
	static inline uint##bits##_t r3ring_exchange_u##bits(uint##bits##_t *word,                 \
							     uint##bits##_t value)                 \
	{                                                                                          \
		return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);                         \
	}

R3RING_ATOMIC_ACCESS(16)
R3RING_ATOMIC_ACCESS(32)
R3RING_ATOMIC_ACCESS(64)

#undef R3RING_ATOMIC_ACCESS

/* Later reads and writes stay after earlier reads. */
static inline void r3ring_fence_acquire(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* Earlier reads and writes stay before later writes. */
static inline void r3ring_fence_release(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Also orders an earlier write before a later read (store, then look). */
static inline void r3ring_fence_full(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Ask for a line that is soon read or written, also from another core. Only hints.
 * As assembly, since gcc drops calls of functions that do nothing but prefetch.
 */
static inline void r3ring_prefetch_read(const void *line)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetcht0 %0" ::"m"(*(const char *)line));
#elif defined(__aarch64__)
	__asm__ __volatile__("prfm pldl1keep, %0" ::"Q"(*(const char *)line));
#else
	__builtin_prefetch(line);
#endif
}

static inline void r3ring_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" ::"m"(*(const char *)line));
#elif defined(__aarch64__)
	__asm__ __volatile__("prfm pstl1keep, %0" ::"Q"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* One turn of a spin loop. */
static inline void r3ring_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

#endif
