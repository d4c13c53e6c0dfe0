/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of the real daemon, as a decode of DeepSeek-V4-Flash fills it. */
#ifndef TESTS_BENCH_CHANNEL_H
#define TESTS_BENCH_CHANNEL_H

#include <r3ring/producer.h>

#include "tests/support/daemon.h"

#define CHANNEL_LAYERS 43u
#define CHANNEL_EXPERTS 256u
#define CHANNEL_TOP_K 6u
#define CHANNEL_ROWS 256u

struct bench_channel {
	struct test_daemon daemon;
	struct r3ring_layer_entry layers[CHANNEL_LAYERS];
	struct r3ring_producer *producer;
	const char *name;
	int64_t *ids;
};

/* Starts a daemon and opens the channel; the memory is shared with children.
 * @buffer_bytes: of the capture buffer; 0: the library's choice, four steps. @rc receives 0
 * or a negative errno. Pairs with bench_channel_close(), on failure too; NULL is fine there. */
struct bench_channel *bench_channel_open(uint64_t buffer_bytes, int *rc);
void bench_channel_close(struct bench_channel *channel);

/* What the daemon has used of processors until now. */
uint64_t bench_channel_cpu_ns(const struct bench_channel *channel);

/* Parts of a step of all rows; the first returns its number. */
int64_t bench_channel_begin(const struct bench_channel *channel);
void bench_channel_capture(const struct bench_channel *channel, uint32_t layer);

#endif
