/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of the real daemon, as a decode of 256 rows fills it. */
#ifndef TESTS_BENCH_CHANNEL_H
#define TESTS_BENCH_CHANNEL_H

#include <r3ring/producer.h>

#include "tests/support/daemon.h"

#define CHANNEL_LAYERS 43u /* of bench_flash */
#define CHANNEL_LAYERS_MAX 128u
#define CHANNEL_ROWS 256u

struct bench_model {
	const char *name;
	uint32_t layers, experts, top_k;
};

extern const struct bench_model bench_flash; /* DeepSeek-V4-Flash */

struct bench_channel {
	const struct bench_model *model;
	struct test_daemon daemon;
	struct r3ring_layer_entry layers[CHANNEL_LAYERS_MAX];
	struct r3ring_producer *producer;
	const char *name;
	int64_t *ids; /* [CHANNEL_ROWS][top_k] of any layer; zero, until the caller fills them */
};

/* Starts a daemon and opens the channel; the memory is shared with children.
 * @buffer_bytes: of the capture buffer; 0: the library's choice, four steps. @rc receives 0
 * or a negative errno. Pairs with bench_channel_close(), on failure too; NULL is fine there. */
struct bench_channel *bench_channel_open(const struct bench_model *model, uint64_t buffer_bytes,
					 int *rc);
void bench_channel_close(struct bench_channel *channel);

/* What the daemon has used of processors until now. */
uint64_t bench_channel_cpu_ns(const struct bench_channel *channel);

/* What runs steps in the one process and reads them in another, in shared memory. */
struct bench_served {
	const struct bench_channel *channel;
	uint32_t reading;
};

/*
 * Opens a channel of @model and runs @read in a child, then, once that says that it reads,
 * @write here; each is given @served. @fill: makes the channel's ids, NULL: zeroes.
 *
 * Returns 0 or the first negative errno.
 */
int bench_serve(struct bench_served *served, const struct bench_model *model,
		void (*fill)(const struct bench_channel *channel), int (*read)(void *served),
		int (*write)(void *served));

/* Of @read: its reader is there, or cannot be. */
void bench_served_reads(struct bench_served *served);

void bench_sleep_until(uint64_t ns);

/* Parts of a step of all rows; the first returns its number. @doorbell_layers: as that of
 * struct r3ring_step. */
int64_t bench_channel_begin(const struct bench_channel *channel, uint32_t doorbell_layers);
void bench_channel_capture(const struct bench_channel *channel, uint32_t layer);

#endif
