/* SPDX-License-Identifier: Apache-2.0 */
/* One generation of a channel, written by the test itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/fake_channel.h"
#include "tests/support/record_examples.h"

#define LARGEST 65536

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fake channel: %s failed\n", what);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_as(struct fake_channel *channel, struct r3ring_segment_options *options)
{
	static unsigned int made;
	struct r3ring_error err = {0};

	snprintf(channel->name, sizeof(channel->name), "/r3ring-test.%d.%u", (int)getpid(), made++);
	options->size = sizeof(*options);
	options->name = channel->name;
	options->label = "fake/0";
	memset(options->uuid, (int)(0x10 + options->generation), sizeof(options->uuid));
	channel->generation = options->generation;
	must(!r3ring_segment_create(&channel->segment, options, &err), err.text);
	must(!r3ring_writer_open(&channel->writer, channel->segment), "writer");
	r3ring_writer_heartbeat(channel->writer, now_ns());
}

void fake_channel_open(struct fake_channel *channel, uint64_t generation, uint32_t depth,
		       uint64_t arena_bytes)
{
	open_as(channel, &(struct r3ring_segment_options){.arena_bytes = arena_bytes,
							  .depth = depth,
							  .generation = generation});
}

void fake_channel_open_behind(struct fake_channel *channel, uint64_t generation, uint32_t untaken)
{
	open_as(channel, &(struct r3ring_segment_options){.arena_bytes = 65536,
							  .depth = 64,
							  .generation = generation,
							  .untaken = untaken});
}

void fake_channel_close(struct fake_channel *channel)
{
	r3ring_writer_close(channel->writer);
	r3ring_segment_unlink(channel->segment);
	r3ring_segment_close(channel->segment);
}

uint64_t fake_channel_put(struct fake_channel *channel, const struct r3ring_record *record,
			  uint16_t flags)
{
	static _Alignas(64) uint8_t payload[LARGEST];
	struct r3ring_error err = {0};
	long len = r3ring_record_encode(record, payload, sizeof(payload), &err);
	struct r3ring_record_spec spec = {.type = record->type, .flags = flags};

	must(len >= 0, err.text);
	spec.len = (uint32_t)len;
	must(!r3ring_writer_put(channel->writer, &spec, payload), "put");
	r3ring_writer_wake(channel->writer);
	return r3ring_writer_next_seq(channel->writer) - 1;
}

uint64_t fake_channel_put_schema(struct fake_channel *channel)
{
	struct r3ring_record record;

	example_record(&record, R3RING_SCHEMA, EXAMPLE_TYPICAL);
	record.u.schema.head.generation = channel->generation;
	return fake_channel_put(channel, &record, R3RING_DESC_BOUNDARY);
}

uint64_t fake_channel_put_step(struct fake_channel *channel, uint64_t step)
{
	struct r3ring_record record;

	example_record(&record, R3RING_STEP_END, EXAMPLE_MIN);
	record.u.step_end.head.step = step;
	return fake_channel_put(channel, &record, 0);
}

void fake_channel_put_steps(struct fake_channel *channel, uint64_t first, uint64_t count)
{
	for (uint64_t step = first; step < first + count; step++)
		fake_channel_put_step(channel, step);
}

void fake_channel_end(struct fake_channel *channel, uint32_t reason, uint64_t next)
{
	struct r3ring_record record = {.type = R3RING_CLOSED};

	record.u.closed = (struct r3ring_closed_record){
		.reason = reason,
		.next_generation = next,
	};
	fake_channel_put(channel, &record, 0);
	r3ring_writer_finish(channel->writer);
}

static uint8_t *base_of(const struct fake_channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	size_t bytes;

	return (uint8_t *)r3ring_segment_arena(channel->segment, &bytes) -
	       header->regions[R3RING_REGION_ARENA].offset;
}

void fake_channel_spoil_tail(struct fake_channel *channel, uint64_t seq)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_writer_lines *lines =
		(void *)(base_of(channel) + header->regions[R3RING_REGION_LINES].offset);

	lines->tail_seq = seq;
}

static struct r3ring_desc *desc_of(struct fake_channel *channel, uint64_t seq)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	const struct r3ring_region *descs = &header->regions[R3RING_REGION_DESCS];
	uint64_t slot = seq & ((1ull << descs->count_log2) - 1);

	return (void *)(base_of(channel) + descs->offset + slot * descs->stride);
}

void fake_channel_empty(struct fake_channel *channel, uint64_t seq)
{
	desc_of(channel, seq)->seq = 0;
}

void fake_channel_corrupt(struct fake_channel *channel, uint64_t seq)
{
	desc_of(channel, seq)->len ^= 1;
}
