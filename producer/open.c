/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a producer. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "channel/socket.h"
#include "producer/producer.h"

#define QUEUE_DEFAULT (4u << 20)
#define BUFFER_STEPS_DEFAULT 4
#define CLOCK_OF_RECORDS 1 /* CLOCK_MONOTONIC */
#define LET_GO_TIMEOUT_MS 5000

/* ---- the handle ------------------------------------------------------- */

/* A page that a fork leaves empty, so that a child knows without a system call. */
static const uint32_t *mark_process(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *mark =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mark == MAP_FAILED)
		return NULL;
	if (madvise(mark, bytes, MADV_WIPEONFORK)) {
		munmap(mark, bytes);
		return NULL;
	}
	*mark = 1;
	return mark;
}

static void fill_schema(struct r3ring_producer *producer,
			const struct r3ring_producer_options *options)
{
	struct r3ring_schema_record *head = &producer->schema.u.schema.head;

	producer->schema.type = R3RING_SCHEMA;
	producer->schema.u.schema.layers = producer->layers;
	*head = (struct r3ring_schema_record){
		.layers = options->layer_count,
		.experts = options->experts,
		.top_k = (uint16_t)options->top_k,
		.id_space = R3RING_IDS_LOGICAL,
		.max_rows = options->max_rows,
		.clock = CLOCK_OF_RECORDS,
		.rank = options->coordinates,
		.replica = (uint16_t)options->replica,
		.captures_rows = options->capture_rows,
		.weight_version = options->weight_version,
	};
	memcpy(head->model, options->model, strlen(options->model));
}

static void fill_layers(struct r3ring_producer *producer,
			const struct r3ring_producer_options *options)
{
	for (int i = 0; i <= PRODUCER_LAYER_ID_MAX; i++)
		producer->layer_of_id[i] = PRODUCER_NO_LAYER;
	for (uint32_t i = 0; i < options->layer_count; i++) {
		const struct r3ring_layer_entry *layer = &options->layers[i];

		producer->layers[i] = (struct r3ring_layer_entry){
			.layer_id = layer->layer_id,
			.kind = layer->kind,
		};
		if (layer->kind != R3RING_LAYER_MTP)
			producer->layer_of_id[layer->layer_id] = (uint16_t)i;
	}
}

static int allocate(struct r3ring_producer *producer, const struct r3ring_producer_options *options)
{
	producer->own_process = mark_process();
	producer->layers = calloc(options->layer_count, sizeof(*producer->layers));
	producer->layer_of_id =
		malloc((PRODUCER_LAYER_ID_MAX + 1) * sizeof(*producer->layer_of_id));
	if (options->runtime_dir)
		producer->runtime_dir = strdup(options->runtime_dir);
	if (!producer->own_process || !producer->layers || !producer->layer_of_id ||
	    (options->runtime_dir && !producer->runtime_dir))
		return -ENOMEM;
	return 0;
}

static int make(struct r3ring_producer *producer, const struct r3ring_producer_options *options)
{
	int ret;

	producer->pages.fd = -1;
	producer->buffer.fd = -1;
	producer->kick = -1;
	producer->socket = -1;
	pthread_mutex_init(&producer->side_lock, NULL);
	pthread_mutex_init(&producer->socket_lock, NULL);
	ret = allocate(producer, options);
	if (ret)
		return ret;

	producer->log = options->log;
	producer->log_ctx = options->log_ctx;
	producer->max_rows = options->max_rows;
	memcpy(producer->name.instance, options->instance, strlen(options->instance));
	producer->name.rank = options->rank;
	producer->name.draft = (uint8_t)options->draft;
	producer->geometry = (struct extent_geometry){
		.layers = options->layer_count,
		.top_k = options->top_k,
		.experts = options->experts,
		.captures_rows = options->capture_rows,
	};
	fill_layers(producer, options);
	fill_schema(producer, options);
	return 0;
}

/* ---- what is shared with device and daemon ---------------------------- */

static int open_device(struct r3ring_producer *producer,
		       const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	uint64_t bytes = options->buffer_bytes
				 ? extent_align(options->buffer_bytes)
				 : BUFFER_STEPS_DEFAULT * producer_extent_bound(options);
	const struct device_ops *ops = device_find(options->device ? options->device : "auto", err);
	struct device_options how = {.side_stream = options->side_stream,
				     .log = options->log,
				     .log_ctx = options->log_ctx};
	enum r3ring_buffer_kind kind = R3RING_BUFFER_HOST;
	int ret = 0;

	if (!ops)
		return err->code;
	if (ops->on_gpu)
		ret = producer_choose_export(producer, options, &kind, err);
	how.order = producer->order;
	if (!ret)
		ret = ops->open(&producer->device, &how, err);
	if (ret)
		return ret;
	producer->ops = ops;
	ret = producer_buffer_alloc(producer, kind, bytes, err);
	return ret ? ret : ops->control_alloc(producer->device, &producer->control, err);
}

static int open_pages(struct r3ring_producer *producer,
		      const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	uint64_t lane = (options->queue_bytes ? options->queue_bytes : QUEUE_DEFAULT) / 2;
	struct pages *pages = &producer->pages;
	int ret = pages_create(pages, options->layer_count, lane, lane, err);

	if (ret)
		return ret;
	lane_writer_init(&producer->steps, pages->step_lane, pages->step_lane_bytes,
			 &pages->words->step_head, &pages->words->step_tail);
	lane_writer_init(&producer->sides, pages->side_lane, pages->side_lane_bytes,
			 &pages->words->side_head, &pages->words->side_tail);
	extents_init(&producer->extents, producer->buffer.bytes, &pages->words->extents_released);
	return producer->ops->pages_map(producer->device, pages->bells,
					pages->slots * extent_slot_bytes(pages->layers),
					&producer->bells, err);
}

/* Undoes what was done, however far it came. */
static void release(struct r3ring_producer *producer)
{
	producer_disconnect(producer);
	if (producer->bells)
		producer->ops->pages_unmap(producer->device, producer->pages.bells);
	pages_release(&producer->pages);
	if (producer->buffer.base)
		producer->ops->buffer_free(producer->device, &producer->buffer);
	if (producer->ops)
		producer->ops->close(producer->device);
	spill_clear(&producer->spill);
	ongoing_clear(&producer->ongoing);
	if (producer->own_process)
		munmap((void *)(uintptr_t)producer->own_process, (size_t)sysconf(_SC_PAGESIZE));
	pthread_mutex_destroy(&producer->side_lock);
	pthread_mutex_destroy(&producer->socket_lock);
	free(producer->runtime_dir);
	free(producer->layers);
	free(producer->layer_of_id);
	free(producer);
}

/* The daemon took the producer in and is not told why it goes: it may look at the
 * buffer until it has seen the hang-up. */
static void give_up_unseen(struct r3ring_producer *producer)
{
	if (r3ring_load_relaxed_u32(&producer->connected))
		producer->ops->buffer_leave(producer->device, &producer->buffer);
}

int r3ring_producer_open(struct r3ring_producer **producer,
			 const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	struct r3ring_error own = {0};
	struct r3ring_error *error = err ? err : &own;
	struct r3ring_producer *made;
	int ret;

	if (!producer || !options)
		return r3ring_error_set(error, -EINVAL, "r3ring_producer_open: %s is NULL",
					producer ? "options" : "producer");
	ret = producer_check_options(options, error);
	if (ret)
		return ret;
	made = calloc(1, sizeof(*made));
	if (!made)
		return r3ring_error_set(error, -ENOMEM, "producer: out of memory");
	ret = make(made, options);
	if (ret)
		r3ring_error_set(error, ret, "producer: out of memory");
	if (!ret)
		ret = open_device(made, options, error);
	if (!ret)
		ret = open_pages(made, options, error);
	if (!ret)
		ret = producer_connect_first(made, error);
	if (!ret)
		ret = producer_helper_start(made, error);
	if (ret) {
		give_up_unseen(made);
		release(made);
		return ret;
	}
	*producer = made;
	return 0;
}

/* ---- closing ---------------------------------------------------------- */

/* Nobody will: when the producer is gone, so are its queue and its buffer. */
static void tell_undelivered(const struct r3ring_producer *producer)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(producer, &stats);
	if (stats.undelivered_steps)
		producer_log(producer, R3RING_LOG_WARN,
			     "closed without a daemon: %" PRIu64 " steps (%" PRIu64
			     " rows) that none has taken are lost (daemon_restart)",
			     stats.undelivered_steps, stats.undelivered_rows);
}

/* Before the connection can be seen to end: no step follows, and why some found no entry
 * is known. */
static void say_closing(struct r3ring_producer *producer)
{
	producer->pages.words->closing_gap = producer->gap;
	/* Pairs with the daemon's acquire of `closing`. */
	r3ring_store_release_u32(&producer->pages.words->closing, 1);
}

/* Hands on what the lane has room for; what it has not is gone, and is told. */
static void hand_over(struct r3ring_producer *producer)
{
	struct r3ring_message bye = {.type = R3RING_MSG_BYE};

	if (!producer_flush_spill(producer))
		producer_log(producer, R3RING_LOG_WARN,
			     "closed with %" PRIu64 " bytes of announcements that the daemon had "
			     "no room for",
			     producer->spill.bytes);
	pages_wake(&producer->pages);
	if (r3ring_load_relaxed_u32(&producer->connected))
		socket_send(producer->socket, &bye, sizeof(bye), NULL, 0, NULL, 0);
}

/*
 * What a CUDA IPC handle names must not be freed while another process has it open.
 *
 * Source: CUDA Runtime API, cudaIpcOpenMemHandle.
 */
static void give_up_buffer(struct r3ring_producer *producer)
{
	if (producer->buffer.kind != R3RING_BUFFER_CUDA_IPC ||
	    (!producer->unanswered && producer_wait_for_hangup(producer, LET_GO_TIMEOUT_MS)))
		return;
	producer_log(producer, R3RING_LOG_WARN,
		     "closed, but r3ringd has not let go of the capture buffer: its %" PRIu64
		     " bytes of GPU memory stay allocated until this process ends",
		     producer->buffer.bytes);
	producer->ops->buffer_leave(producer->device, &producer->buffer);
}

void r3ring_producer_close(struct r3ring_producer *producer)
{
	/* In a forked child nothing of it may be touched: its threads are not here
	 * and its memory is the parent's. */
	if (!producer || !producer_is_own(producer))
		return;

	if (producer->unbind)
		producer->unbind(producer);
	if (producer->is_open)
		r3ring_step_end(producer, producer->stream);
	if (producer->step)
		producer->ops->stream_synchronize(producer->device, producer->stream);
	say_closing(producer);
	producer_helper_stop(producer);
	tell_undelivered(producer);
	hand_over(producer);
	give_up_buffer(producer);
	release(producer);
}
