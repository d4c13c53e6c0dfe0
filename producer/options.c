/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a producer: checked one by one; a refusal names field, value, bounds. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "channel/socket.h"
#include "producer/producer.h"

#define QUEUE_MIN (128u << 10) /* two lanes of 64 KiB */
#define QUEUE_MAX (1u << 30)
/* What the smallest ring that serves a channel takes as one record. */
#define RECORD_BYTES_LEAST 4096u
/* More than any machine has; sums with it do not wrap. */
#define BUFFER_MAX (UINT64_C(1) << 48)

#define REFUSE(err, ...) r3ring_error_set(err, -EINVAL, __VA_ARGS__)

static int check_range(const char *field, uint64_t value, uint64_t from, uint64_t to,
		       struct r3ring_error *err)
{
	if (value >= from && value <= to)
		return 0;
	return REFUSE(err, "%s is %" PRIu64 "; %" PRIu64 " to %" PRIu64 " are allowed", field,
		      value, from, to);
}

static int check_size(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	if (options->size == sizeof(*options))
		return 0;
	return REFUSE(err,
		      "size of the options is %zu; this library's struct has %zu bytes, so set "
		      "size = sizeof(struct r3ring_producer_options) and build against its headers",
		      options->size, sizeof(*options));
}

static int check_model(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	size_t len = options->model ? strnlen(options->model, R3RING_MODEL_NAME_MAX + 1) : 0;

	if (!len)
		return REFUSE(err, "model name is missing; 1 to %d bytes are allowed",
			      R3RING_MODEL_NAME_MAX);
	if (len > R3RING_MODEL_NAME_MAX)
		return REFUSE(err, "model name \"%.63s...\" is too long; 1 to %d bytes are allowed",
			      options->model, R3RING_MODEL_NAME_MAX);
	return 0;
}

static int check_experts(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	int ret = check_range("experts", options->experts, 1, R3RING_EXPERTS_MAX, err);

	if (!ret)
		ret = check_range("top_k", options->top_k, 1, R3RING_TOP_K_MAX, err);
	if (!ret && options->top_k > options->experts)
		ret = REFUSE(err, "top_k is %u, but there are only %u experts", options->top_k,
			     options->experts);
	return ret;
}

/* r3ring_capture() names moe and hash layers by their number alone. */
static bool same_layer(const struct r3ring_layer_entry *a, const struct r3ring_layer_entry *b)
{
	return a->layer_id == b->layer_id &&
	       (a->kind == R3RING_LAYER_MTP) == (b->kind == R3RING_LAYER_MTP);
}

static int check_layer(const struct r3ring_layer_entry *layers, uint32_t index,
		       struct r3ring_error *err)
{
	const struct r3ring_layer_entry *layer = &layers[index];

	if (layer->layer_id < 0 || layer->layer_id > PRODUCER_LAYER_ID_MAX)
		return REFUSE(err, "layers[%u].layer_id is %d; 0 to %d are allowed", index,
			      layer->layer_id, PRODUCER_LAYER_ID_MAX);
	if (layer->kind > R3RING_LAYER_MTP)
		return REFUSE(err, "layers[%u].kind is %u; moe (0), hash (1), mtp (2) are allowed",
			      index, layer->kind);
	for (uint32_t i = 0; i < index; i++) {
		if (same_layer(&layers[i], layer))
			return REFUSE(err, "layers[%u] and layers[%u] are both layer %d (%s, %s)",
				      i, index, layer->layer_id,
				      r3ring_layer_kind_name(layers[i].kind),
				      r3ring_layer_kind_name(layer->kind));
	}
	return 0;
}

static int check_layers(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	int ret;

	if (!options->layer_count)
		return REFUSE(err,
			      "layer_count is 0: model \"%s\" has no MoE layers, so there is "
			      "nothing to capture; open no producer for it",
			      options->model);
	ret = check_range("layer_count", options->layer_count, 1, R3RING_LAYERS_MAX, err);
	if (!ret && !options->layers)
		ret = REFUSE(err, "layers is NULL, but layer_count is %u", options->layer_count);
	for (uint32_t i = 0; !ret && i < options->layer_count; i++)
		ret = check_layer(options->layers, i, err);
	return ret;
}

static int check_coordinates(const struct r3ring_coordinates *at, struct r3ring_error *err)
{
	const struct {
		const char *name;
		struct r3ring_coordinate value;
	} all[] = {
		{"dp", at->dp}, {"tp", at->tp}, {"sp", at->sp},
		{"pp", at->pp}, {"ep", at->ep}, {"cp", at->cp},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint16_t size = all[i].value.size ? all[i].value.size : 1;

		if (all[i].value.index >= size)
			return REFUSE(err, "coordinates.%s.index is %u; 0 to %u are allowed",
				      all[i].name, all[i].value.index, size - 1);
	}
	return 0;
}

static int check_queue(uint64_t bytes, struct r3ring_error *err)
{
	if (!bytes)
		return 0;
	if (bytes < QUEUE_MIN || bytes > QUEUE_MAX || (bytes & (bytes - 1)))
		return REFUSE(err,
			      "queue_bytes is %" PRIu64
			      "; powers of two from %u to %u are allowed, or 0 for 4 MiB",
			      bytes, QUEUE_MIN, QUEUE_MAX);
	return 0;
}

uint64_t producer_extent_bound(const struct r3ring_producer_options *options)
{
	const struct extent_geometry geometry = {
		.layers = options->layer_count,
		.top_k = options->top_k,
		.experts = options->experts,
		.rows_per_record = (RECORD_BYTES_LEAST - EXTENT_HEAD) / (2 * options->top_k),
		.captures_rows = options->capture_rows,
	};

	return extent_bytes(&geometry, options->max_rows);
}

static int check_buffer(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	uint64_t least = producer_extent_bound(options);

	if (options->buffer_bytes > BUFFER_MAX)
		return REFUSE(err, "buffer_bytes is %" PRIu64 "; at most %" PRIu64 " are allowed",
			      options->buffer_bytes, BUFFER_MAX);
	if (!options->buffer_bytes || options->buffer_bytes >= least)
		return 0;
	return REFUSE(err,
		      "buffer_bytes is %" PRIu64 "; a step of max_rows %u needs %" PRIu64
		      ", so give at least that, or 0 for four times as much",
		      options->buffer_bytes, options->max_rows, least);
}

/* @first is the default. */
static int check_choice(const char *field, const char *value, const char *first, const char *second,
			const char *third, struct r3ring_error *err)
{
	if (!value || strcmp(value, first) == 0 || strcmp(value, second) == 0 ||
	    (third && strcmp(value, third) == 0))
		return 0;
	return REFUSE(err, "%s is \"%.32s\"; \"%s\"%s%s%s and \"%s\" are allowed", field, value,
		      first, third ? ", \"" : "", third ? third : "", third ? "\"" : "", second);
}

static int check_gpu(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	int ret = check_choice("buffer_export", options->buffer_export, "auto", "fd", "ipc", err);

	if (!ret)
		ret = check_choice("order", options->order, "bell", "event", NULL, err);
	if (!ret)
		ret = check_range("reserved", options->reserved, 0, 0, err);
	return ret ? ret : check_range("side_stream", options->side_stream, 0, 1, err);
}

int producer_check_options(const struct r3ring_producer_options *options, struct r3ring_error *err)
{
	int ret = check_size(options, err);

	if (!ret)
		ret = channel_instance_check(options->instance, err);
	if (!ret)
		ret = check_range("draft", options->draft, 0, 1, err);
	if (!ret)
		ret = check_model(options, err);
	if (!ret)
		ret = check_experts(options, err);
	if (!ret)
		ret = check_range("max_rows", options->max_rows, 1, R3RING_ROWS_MAX, err);
	if (!ret)
		ret = check_layers(options, err);
	if (!ret)
		ret = check_coordinates(&options->coordinates, err);
	if (!ret)
		ret = check_range("replica", options->replica, 0, UINT16_MAX, err);
	if (!ret)
		ret = check_range("capture_rows", options->capture_rows, 0, 1, err);
	if (!ret)
		ret = check_queue(options->queue_bytes, err);
	if (!ret)
		ret = check_gpu(options, err);
	return ret ? ret : check_buffer(options, err);
}
