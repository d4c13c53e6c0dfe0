/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer's inside, shared by the files of this directory.
 *
 * Three threads meet here: the one that makes step calls, the one that makes
 * side calls, and the helper that keeps the connection. Each field says whose it
 * is; what two of them touch is atomic or under the lock that is named.
 */
#ifndef PRODUCER_PRODUCER_H
#define PRODUCER_PRODUCER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <r3ring/producer.h>
#include <r3ring/proto.h>

#include "channel/lane.h"
#include "channel/pages.h"
#include "channel/socket.h"
#include "device/device.h"
#include "producer/extents.h"
#include "producer/ongoing.h"
#include "producer/spill.h"

#define PRODUCER_LAYER_ID_MAX 65535
#define PRODUCER_NO_LAYER UINT16_MAX
#define PRODUCER_SCHEMA_BYTES_MAX                                                                  \
	(sizeof(struct r3ring_schema_record) +                                                     \
	 R3RING_LAYERS_MAX * sizeof(struct r3ring_layer_entry))

/* An error in words, with the thread whose call failed. */
struct producer_failure {
	struct r3ring_error error;
	pthread_t thread;
	uint64_t order; /* the newest has the largest */
};

struct r3ring_producer {
	/* -- set by open, never changed -- */
	const uint32_t *own_process; /* wiped to 0 in a forked child */
	struct pages pages;
	const struct device_ops *ops;
	struct device *device;
	struct device_buffer buffer;
	struct extent_control *control;
	uint8_t *bells; /* as the device sees them */
	struct extent_geometry geometry;
	uint32_t max_rows;
	enum r3ring_order order;
	enum r3ring_export_reason export_reason;
	uint16_t *layer_of_id; /* [PRODUCER_LAYER_ID_MAX + 1]: moe and hash layers */
	struct r3ring_channel_name name;
	char *runtime_dir; /* NULL: the default places */
	r3ring_log_fn log;
	void *log_ctx;

	/* -- step thread -- */
	struct lane_writer steps;
	struct extents extents;
	uint64_t step; /* newest number given; read by others: atomic */
	uint64_t rows; /* valid rows of this rank in all steps; atomic */
	uint64_t dropped_steps[R3RING_CAUSE_COUNT]; /* atomic */
	uint64_t dropped_rows[R3RING_CAUSE_COUNT];  /* atomic */
	struct lane_gap gap;                        /* since the newest entry */
	bool is_open;
	uint64_t open_step;
	uint32_t open_slot;
	bool open_dropped;
	uint64_t open_bytes;  /* of its entry */
	r3ring_stream stream; /* of the newest step */
	struct producer_failure step_failure;

	/* -- side thread and helper, under side_lock -- */
	pthread_mutex_t side_lock;
	struct lane_writer sides;
	struct spill spill;
	uint64_t announced; /* entries submitted to the lane or kept in the spill; atomic */
	struct r3ring_record schema; /* with rows_per_record once it is known */
	struct r3ring_layer_entry *layers;
	uint64_t dropped_records; /* atomic */

	/* -- side thread -- */
	uint64_t handles; /* given so far */
	struct ongoing ongoing;
	struct producer_failure side_failure;
	uint64_t failures; /* counts both threads'; atomic */

	/* -- helper -- */
	pthread_t helper;
	int kick;              /* eventfd: stop, or the spill has become non-empty */
	uint32_t stopping;     /* atomic */
	uint32_t connected;    /* atomic */
	uint64_t generation;   /* atomic; 0 while disconnected */
	uint32_t bound_layers; /* atomic */
	uint64_t last_generation;
	bool unanswered; /* the newest daemon was shown the buffer and never said a word */
	int refusal;     /* why the newest try to connect again failed; logged when it changes */
	pthread_mutex_t socket_lock;
	int socket; /* under socket_lock, so that close can hang up */

	/* -- binding's -- */
	void *binding;
	void (*unbind)(struct r3ring_producer *producer);
};

/* Whether this is the process that opened the producer. */
static inline bool producer_is_own(const struct r3ring_producer *producer)
{
	return *producer->own_process != 0;
}

/* Notes why a step call (side call) failed; returns @code. */
int producer_step_failed(struct r3ring_producer *producer, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int producer_side_failed(struct r3ring_producer *producer, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Tells the caller's log function, if there is one. Never on the step path. */
void producer_log(const struct r3ring_producer *producer, enum r3ring_log_level level,
		  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- options.c -------------------------------------------------------- */

/* Checks all options; the message names field, value and what is allowed. */
int producer_check_options(const struct r3ring_producer_options *options, struct r3ring_error *err);

/* Bytes of the largest extent before the daemon has said how many rows a record
 * takes; what it then is, is never more. */
uint64_t producer_extent_bound(const struct r3ring_producer_options *options);

/* ---- export.c --------------------------------------------------------- */

/*
 * Decides how a buffer on a GPU goes to the daemon, which is asked who it is, and
 * notes kind, order and the reason. Returns 0, -EINVAL (options that do not go
 * together), or why the daemon cannot be asked.
 */
int producer_choose_export(struct r3ring_producer *producer,
			   const struct r3ring_producer_options *options,
			   enum r3ring_buffer_kind *kind, struct r3ring_error *err);

/* The buffer, of that kind or, where a handle was chosen and is not to be had, the other.
 * Returns as device_ops.buffer_alloc. */
int producer_buffer_alloc(struct r3ring_producer *producer, enum r3ring_buffer_kind kind,
			  uint64_t bytes, struct r3ring_error *err);

/* producer_connect() for the first time; with another buffer once more where the daemon
 * cannot open the handle that was chosen. Returns as r3ring_producer_open(). */
int producer_connect_first(struct r3ring_producer *producer, struct r3ring_error *err);

/* ---- handshake.c ------------------------------------------------------ */

/*
 * Connects and introduces the producer. @again: after the daemon went away.
 * On success the socket is kept in producer->socket and `connected` is set.
 * Returns 0 or as r3ring_producer_open().
 */
int producer_connect(struct r3ring_producer *producer, bool again, struct r3ring_error *err);

/*
 * Receives the daemon's answer to the hello: within @timeout_ms, and as long again
 * whenever it says that the ring has grown, unless @stopping (atomic) is set.
 * Returns 0 (a WELCOME_PRODUCER is in @inbox), or as socket_answer().
 */
int producer_hear_welcome(int fd, struct socket_inbox *inbox, int timeout_ms,
			  const uint32_t *stopping, struct r3ring_error *err);

/* Waits for at most @timeout_ms until the daemon hangs up, as it does once it has let
 * go of the buffer of a producer that closed. Returns whether it has. */
bool producer_wait_for_hangup(struct r3ring_producer *producer, int timeout_ms);

/* Whether a handshake is seen through though the producer closes: the daemon may have
 * opened the buffer, and is to say when it has let go. */
static inline bool producer_sees_through(const struct r3ring_producer *producer)
{
	return producer->buffer.kind == R3RING_BUFFER_CUDA_IPC;
}

/* Closes the socket and notes that no daemon is connected. */
void producer_disconnect(struct r3ring_producer *producer);

/* ---- reconnect.c ------------------------------------------------------ */

int producer_helper_start(struct r3ring_producer *producer, struct r3ring_error *err);
void producer_helper_stop(struct r3ring_producer *producer);

/* Makes the helper look at the spill. */
void producer_helper_kick(struct r3ring_producer *producer);

/* ---- announce.c ------------------------------------------------------- */

/* Hands on what is in the spill as far as there is room; true when all is. */
bool producer_flush_spill(struct r3ring_producer *producer);

/*
 * Notes which layers are bound and announces it. For binding.
 * @bound: [layers] 0 or 1, or NULL: none is bound.
 */
void producer_note_bound(struct r3ring_producer *producer, const uint8_t *bound);

#endif
