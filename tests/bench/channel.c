/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <r3ring/atomic.h>

#include "tests/bench/bench.h"
#include "tests/bench/channel.h"
#include "tests/bench/made_ring.h"
#include "tests/support/engine.h"

const struct bench_model bench_flash = {"DeepSeek-V4-Flash", CHANNEL_LAYERS, 256, 6};

uint64_t bench_channel_cpu_ns(const struct bench_channel *channel)
{
	struct timespec used = {0};
	clockid_t clock;

	if (!clock_getcpuclockid(channel->daemon.pid, &clock))
		clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void bench_channel_close(struct bench_channel *channel)
{
	if (!channel)
		return;
	r3ring_producer_close(channel->producer);
	test_daemon_close(&channel->daemon);
	free(channel->ids);
	bench_unshare(channel, sizeof(*channel));
}

static int open_producer(struct bench_channel *channel, uint64_t buffer_bytes)
{
	const struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = channel->daemon.dir,
		.instance = engine_instance(channel->daemon.dir, "bench"),
		.device = "host",
		.model = channel->model->name,
		.experts = channel->model->experts,
		.top_k = (uint16_t)channel->model->top_k,
		.max_rows = CHANNEL_ROWS,
		.buffer_bytes = buffer_bytes,
		.layer_count = channel->model->layers,
		.layers = channel->layers,
	};

	return r3ring_producer_open(&channel->producer, &options, NULL);
}

struct bench_channel *bench_channel_open(const struct bench_model *model, uint64_t buffer_bytes,
					 int *rc)
{
	struct bench_channel *channel = bench_shared(sizeof(*channel));

	*rc = channel ? bench_unpin() : -ENOMEM;
	if (*rc)
		return channel;
	channel->model = model;
	test_daemon_start(&channel->daemon, NULL);
	channel->name = engine_channel(channel->daemon.dir, "bench");
	channel->ids = calloc((size_t)CHANNEL_ROWS * model->top_k, sizeof(*channel->ids));
	for (uint32_t i = 0; i < model->layers; i++)
		channel->layers[i].layer_id = (int32_t)i;
	*rc = channel->ids ? open_producer(channel, buffer_bytes) : -ENOMEM;
	return channel;
}

int64_t bench_channel_begin(const struct bench_channel *channel, uint32_t doorbell_layers)
{
	const uint32_t rows = CHANNEL_ROWS;
	const uint64_t request = 1;
	const uint32_t position = 0;
	const struct r3ring_step step = {.size = sizeof(step),
					 .total_rows = CHANNEL_ROWS,
					 .row_end = CHANNEL_ROWS,
					 .valid_end = CHANNEL_ROWS,
					 .doorbell_layers = doorbell_layers,
					 .spans = 1,
					 .span_request = &request,
					 .span_position = &position,
					 .span_rows = &rows};

	return r3ring_step_begin(channel->producer, &step, NULL);
}

void bench_channel_capture(const struct bench_channel *channel, uint32_t layer)
{
	const struct r3ring_topk topk = {.ids = channel->ids,
					 .type = R3RING_INT64,
					 .rows = CHANNEL_ROWS,
					 .columns = channel->model->top_k,
					 .row_stride = channel->model->top_k};

	r3ring_capture(channel->producer, (int32_t)layer, &topk, NULL);
}

/* ---- served ---------------------------------------------------------------- */

void bench_sleep_until(uint64_t ns)
{
	const struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u),
				      .tv_nsec = (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

void bench_served_reads(struct bench_served *served)
{
	/* Pairs with the acquire in await_reader(). */
	r3ring_store_release_u32(&served->reading, 1);
}

static void await_reader(const struct bench_served *served)
{
	unsigned int looks = 0;

	/* Pairs with the release in bench_served_reads(). */
	while (!r3ring_load_acquire_u32(&served->reading))
		wait_turn(&looks);
}

int bench_serve(struct bench_served *served, const struct bench_model *model,
		void (*fill)(const struct bench_channel *channel), int (*read)(void *served),
		int (*write)(void *served))
{
	int rc;
	struct bench_channel *channel = bench_channel_open(model, 0, &rc);

	served->channel = channel;
	if (!rc) {
		pid_t pid;

		if (fill)
			fill(channel);
		pid = bench_spawn(read, served, 1);
		rc = pid < 0 ? pid : 0;
		if (!rc) {
			await_reader(served);
			rc = write(served);
			rc = rc ? rc : bench_join(pid);
		}
	}
	bench_channel_close(channel);
	return rc;
}
