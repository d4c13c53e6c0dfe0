/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer without the producer library, for tests that must say what no
 * library would: its hello, its pages and its entries can be spoiled at will.
 */
#ifndef TESTS_SUPPORT_RAW_PRODUCER_H
#define TESTS_SUPPORT_RAW_PRODUCER_H

#include <stdint.h>

#include "channel/lane.h"
#include "channel/pages.h"
#include "channel/socket.h"
#include "device/device.h"

#define RAW_LAYERS 3u
#define RAW_TOP_K 4u
#define RAW_EXPERTS 64u
#define RAW_MAX_ROWS 32u
#define RAW_BUFFER_BYTES 65536u

struct raw_producer {
	int socket;
	struct pages pages;
	struct device *device;
	struct device_buffer buffer;
	struct lane_writer steps, sides;
	uint64_t extents; /* taken so far */
	struct r3ring_hello_producer_message hello;
	_Alignas(8) uint8_t schema[1024];
	int fds[R3RING_MESSAGE_FDS_MAX];
	unsigned int fd_count;
	struct r3ring_welcome_producer_message welcome;
	struct r3ring_error err; /* what the daemon refused it with */
};

/* Connects and prepares a hello that the daemon would welcome; nothing is sent. */
void raw_producer_prepare(struct raw_producer *raw, const char *dir, const char *instance);

/* Sends the hello as it is now. Returns 0 (welcome is filled in) or the code of the
 * refusal (err is). */
int raw_producer_hello(struct raw_producer *raw);

/* After the daemon's death: connects to the next one and sends the hello of one that
 * comes back, with the layout of the first welcome. Returns likewise. */
int raw_producer_come_back(struct raw_producer *raw, const char *dir);

/* Submits a STEP entry: @rows rows, and what the lane says of its extent. */
void raw_producer_submit_step(struct raw_producer *raw, uint64_t step, uint32_t rows,
			      uint64_t extent_offset, uint32_t slot);

/* Submits bytes as a record of some type through the side lane. */
void raw_producer_submit_record(struct raw_producer *raw, uint16_t type, const void *payload,
				uint32_t bytes);

/* Rings a layer's bell and the end of a step, as the device would. */
void raw_producer_ring(struct raw_producer *raw, uint32_t slot, uint32_t layer, uint64_t step,
		       uint32_t rows);
void raw_producer_ring_end(struct raw_producer *raw, uint32_t slot, uint64_t step);

/* Waits for the daemon's refusal. Returns its code, 0 when the daemon only hung up. */
int raw_producer_await_refusal(struct raw_producer *raw);

void raw_producer_close(struct raw_producer *raw);

#endif
