/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of a channel in the hands of a test: takes a producer in and
 * gives the test its entries one by one. It never sleeps, so to the producer the
 * daemon is awake.
 */
#ifndef TESTS_SUPPORT_FAKE_SERVICE_H
#define TESTS_SUPPORT_FAKE_SERVICE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include <r3ring/producer.h>
#include <r3ring/proto.h>

#include "channel/lane.h"
#include "channel/pages.h"

struct fake_service {
	/* what it answers; may be changed before a producer comes */
	uint64_t generation;
	uint32_t rows_per_record;
	int refuse; /* negative errno: REFUSED instead of WELCOME */

	pid_t taker; /* whose descriptors and addresses the following are */
	/* what the newest producer sent */
	struct r3ring_hello_producer_message hello;
	uint64_t schema[1200];
	int buffer_fd;
	uint8_t *buffer;
	int pidfd;

	struct pages pages;
	struct lane_reader steps;
	struct lane_reader sides;
	struct lane_entry entry;  /* the newest one given */
	struct lane_reader *from; /* its lane, NULL once it was given back */

	char dir[64];
	int listener;
	int peer;
	pthread_t thread;
	int result; /* of taking the newest producer in */
};

/* Makes a runtime directory of its own and listens in it. Returns 0 or -errno. */
int fake_service_start(struct fake_service *service);

/* Takes one producer in, in a thread; await() gives what became of it. */
void fake_service_expect(struct fake_service *service);
int fake_service_await(struct fake_service *service);

/* Both around r3ring_producer_open(). Returns what that returned. */
int fake_service_open(struct fake_service *service, struct r3ring_producer **producer,
		      struct r3ring_producer_options *options, struct r3ring_error *err);

/*
 * The next entry's payload, its head in service->entry; the entry before it is
 * given back. NULL: none; sets *error (may be NULL) when a lane is corrupt.
 */
const uint8_t *fake_service_next(struct fake_service *service, int *error);

/* Gives @count extents of the buffer back. */
void fake_service_release(struct fake_service *service, uint64_t count);

/* As when the daemon dies: the connection and its mappings are gone. Those of another process,
 * which took the producer in, are that one's. */
void fake_service_hang_up(struct fake_service *service);

/* Hangs up and removes the directory. */
void fake_service_stop(struct fake_service *service);

/* Options of a small model: 4 layers (0 hash, 3, 5 moe, 3 mtp), 16 experts, top 2. */
struct r3ring_producer_options fake_service_options(const struct fake_service *service);

#endif
