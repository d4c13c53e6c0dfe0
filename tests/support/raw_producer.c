/* SPDX-License-Identifier: Apache-2.0 */
/* A producer without the producer library. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/raw_producer.h"

#define ANSWER_MS 10000

static void require(int ok, const char *what, const struct r3ring_error *err)
{
	if (ok)
		return;
	fprintf(stderr, "raw producer: %s: %s\n", what, err->text);
	exit(1);
}

static void prepare_schema(struct raw_producer *raw)
{
	struct r3ring_layer_entry layers[RAW_LAYERS] = {0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};
	long bytes;

	for (uint32_t i = 0; i < RAW_LAYERS; i++)
		layers[i].layer_id = (int32_t)i;
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = RAW_LAYERS,
		.experts = RAW_EXPERTS,
		.top_k = RAW_TOP_K,
		.max_rows = RAW_MAX_ROWS,
		.rows_per_record = RAW_MAX_ROWS,
		.clock = 1,
		.model = "raw",
	};
	record.u.schema.layers = layers;
	bytes = r3ring_record_encode(&record, raw->schema, sizeof(raw->schema), &raw->err);
	require(bytes > 0, "schema", &raw->err);
	raw->hello.schema_len = (uint32_t)bytes;
}

void raw_producer_prepare(struct raw_producer *raw, const char *dir, const char *instance)
{
	const struct device_ops *ops = &device_host_ops;
	struct pages_words *words;

	memset(raw, 0, sizeof(*raw));
	raw->socket = socket_connect(dir, &raw->err);
	require(raw->socket >= 0, "connect", &raw->err);
	require(pages_create(&raw->pages, RAW_LAYERS, 65536, 65536, &raw->err) == 0, "pages",
		&raw->err);
	require(ops->open(&raw->device, &(struct device_options){0}, &raw->err) == 0, "device",
		&raw->err);
	require(ops->buffer_alloc(raw->device, R3RING_BUFFER_HOST, RAW_BUFFER_BYTES, &raw->buffer,
				  &raw->err) == 0,
		"buffer", &raw->err);
	words = raw->pages.words;
	lane_writer_init(&raw->steps, raw->pages.step_lane, raw->pages.step_lane_bytes,
			 &words->step_head, &words->step_tail);
	lane_writer_init(&raw->sides, raw->pages.side_lane, raw->pages.side_lane_bytes,
			 &words->side_head, &words->side_tail);
	raw->hello.head.type = R3RING_MSG_HELLO_PRODUCER;
	snprintf(raw->hello.channel.instance, sizeof(raw->hello.channel.instance), "%s", instance);
	raw->hello.buffer_kind = R3RING_BUFFER_HOST;
	raw->hello.has_pidfd = 1;
	raw->hello.pid = (uint32_t)getpid();
	raw->hello.pages_bytes = raw->pages.bytes;
	raw->hello.buffer_bytes = RAW_BUFFER_BYTES;
	prepare_schema(raw);
	raw->fds[0] = raw->pages.fd;
	raw->fds[1] = raw->buffer.fd;
	raw->fds[2] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	raw->fd_count = 3;
}

int raw_producer_hello(struct raw_producer *raw)
{
	struct socket_inbox inbox;
	int r = socket_ask(raw->socket, &raw->hello.head, sizeof(raw->hello), raw->schema,
			   raw->hello.schema_len, raw->fds, raw->fd_count, &inbox,
			   R3RING_MSG_WELCOME_PRODUCER, sizeof(raw->welcome), ANSWER_MS, &raw->err);

	if (r < 0)
		return r;
	memcpy(&raw->welcome, inbox.u.bytes, sizeof(raw->welcome));
	socket_inbox_close_fds(&inbox);
	return 0;
}

int raw_producer_come_back(struct raw_producer *raw, const char *dir)
{
	struct r3ring_schema_record *schema = (void *)raw->schema;

	close(raw->socket);
	raw->socket = socket_connect(dir, &raw->err);
	require(raw->socket >= 0, "connect", &raw->err);
	schema->rows_per_record = raw->welcome.rows_per_record;
	raw->hello.reconnect = 1;
	raw->hello.last_generation = raw->welcome.generation;
	return raw_producer_hello(raw);
}

void raw_producer_submit_step(struct raw_producer *raw, uint64_t step, uint32_t rows,
			      uint64_t extent_offset, uint32_t slot)
{
	const struct r3ring_step_record record = {
		.step = step,
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
	};
	struct lane_entry *entry =
		lane_reserve(&raw->steps, sizeof(struct lane_step) + sizeof(record));
	struct lane_step *lane_step = (void *)(entry + 1);

	*lane_step = (struct lane_step){.extent_offset = extent_offset, .slot = slot};
	if (extent_offset != EXTENT_NONE)
		raw->extents++;
	lane_step->extents = raw->extents;
	memcpy(lane_step + 1, &record, sizeof(record));
	entry->type = LANE_STEP;
	entry->record_type = R3RING_STEP;
	entry->after = lane_number(&raw->sides);
	lane_submit(&raw->steps);
	pages_wake(&raw->pages);
}

void raw_producer_submit_record(struct raw_producer *raw, uint16_t type, const void *payload,
				uint32_t bytes)
{
	struct lane_entry *entry = lane_reserve(&raw->sides, bytes);

	memcpy(entry + 1, payload, bytes);
	entry->record_type = type;
	entry->after = lane_number(&raw->steps);
	lane_submit(&raw->sides);
	pages_wake(&raw->pages);
}

void raw_producer_ring(struct raw_producer *raw, uint32_t slot, uint32_t layer, uint64_t step,
		       uint32_t rows)
{
	struct extent_bell *bell = pages_bell(pages_slot(&raw->pages, slot), layer);

	r3ring_store_relaxed_u32(&bell->rows, rows);
	/* Pairs with the daemon's acquire of the bell's step. */
	r3ring_store_release_u64(&bell->step, step);
}

void raw_producer_ring_end(struct raw_producer *raw, uint32_t slot, uint64_t step)
{
	/* Pairs with the daemon's acquire of end_step. */
	r3ring_store_release_u64(&pages_slot(&raw->pages, slot)->end_step, step);
}

int raw_producer_await_refusal(struct raw_producer *raw)
{
	struct socket_inbox inbox;
	const struct r3ring_refused_message *refused = (const void *)inbox.u.bytes;
	int r = socket_receive(raw->socket, &inbox, ANSWER_MS);

	if (r == -EPIPE)
		return 0;
	require(r == 0, "no refusal came", &raw->err);
	require(inbox.u.head.type == R3RING_MSG_REFUSED, "another message came", &raw->err);
	return r3ring_error_set(&raw->err, refused->code, "%s", refused->text);
}

void raw_producer_close(struct raw_producer *raw)
{
	close(raw->socket);
	close(raw->fds[2]);
	pages_release(&raw->pages);
	device_host_ops.buffer_free(raw->device, &raw->buffer);
	device_host_ops.close(raw->device);
}
