/* SPDX-License-Identifier: Apache-2.0 */
/* Introducing the producer to the daemon, at first and after the daemon went away. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "channel/clock.h"
#include "channel/socket.h"
#include "producer/producer.h"

#define ANSWER_TIMEOUT_MS 10000 /* and as long again whenever the ring has grown */

static int64_t realtime_offset_ns(void)
{
	return (int64_t)(clock_real_ns() - clock_now_ns());
}

static long encode_schema(struct r3ring_producer *producer, void *out, struct r3ring_error *err)
{
	long bytes;

	pthread_mutex_lock(&producer->side_lock);
	producer->schema.u.schema.head.realtime_offset_ns = realtime_offset_ns();
	bytes = r3ring_record_encode(&producer->schema, out, PRODUCER_SCHEMA_BYTES_MAX, err);
	pthread_mutex_unlock(&producer->side_lock);
	return bytes;
}

/* The descriptors that go along; returns how many. The pidfd, if any, is the last
 * and the caller's to close. */
static unsigned int collect_fds(const struct r3ring_producer *producer,
				int fds[R3RING_MESSAGE_FDS_MAX], int pidfd)
{
	unsigned int count = 0;

	fds[count++] = producer->pages.fd;
	if (producer->buffer.fd >= 0)
		fds[count++] = producer->buffer.fd;
	if (pidfd >= 0)
		fds[count++] = pidfd;
	return count;
}

static struct r3ring_hello_producer_message make_hello(const struct r3ring_producer *producer,
						       bool again, int pidfd, uint32_t schema_len)
{
	struct r3ring_hello_producer_message hello = {
		.head.type = R3RING_MSG_HELLO_PRODUCER,
		.channel = producer->name,
		.buffer_kind = producer->buffer.kind,
		.has_pidfd = pidfd >= 0,
		.reconnect = again,
		.pid = (uint32_t)getpid(),
		.pages_bytes = producer->pages.bytes,
		.buffer_bytes = producer->buffer.bytes,
		.order = producer->order,
		.export_reason = producer->export_reason,
		.last_generation = producer->last_generation,
		.schema_len = schema_len,
	};

	memcpy(hello.handle, producer->buffer.handle, sizeof(hello.handle));
	memcpy(hello.event, producer->buffer.event, sizeof(hello.event));
	memcpy(hello.gpu_uuid, producer->buffer.gpu_uuid, sizeof(hello.gpu_uuid));
	return hello;
}

/* How extents are laid out was settled at first and cannot change any more. */
static int take_welcome(struct r3ring_producer *producer,
			const struct r3ring_welcome_producer_message *welcome, bool again,
			struct r3ring_error *err)
{
	struct extent_geometry geometry = producer->geometry;

	if (!welcome->generation || !welcome->rows_per_record)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon's welcome names generation %" PRIu64
					" and %u rows a record; both must be above 0",
					welcome->generation, welcome->rows_per_record);
	if (again && welcome->rows_per_record != geometry.rows_per_record)
		return r3ring_error_set(err, -EPROTO,
					"the daemon takes %u rows a record now, this producer was "
					"opened with %u; start r3ringd with the ring size it had",
					welcome->rows_per_record, geometry.rows_per_record);

	geometry.rows_per_record = welcome->rows_per_record;
	if (extent_bytes(&geometry, producer->max_rows) > producer->buffer.bytes)
		return r3ring_error_set(err, -EINVAL,
					"buffer_bytes is %" PRIu64 "; a step of max_rows %u needs "
					"%" PRIu64 " with the daemon's %u rows a record: raise "
					"buffer_bytes or the daemon's --ring-size",
					producer->buffer.bytes, producer->max_rows,
					extent_bytes(&geometry, producer->max_rows),
					geometry.rows_per_record);
	if (!again) {
		producer->geometry = geometry;
		producer->schema.u.schema.head.rows_per_record = geometry.rows_per_record;
	}
	producer->last_generation = welcome->generation;
	return 0;
}

/* Whether it says that the ring has grown since @done bytes; those are then noted. Who
 * sends it again and again without that is not waited for. */
static bool has_grown(const struct socket_inbox *inbox, uint64_t *done)
{
	struct r3ring_opening_message message;

	if (inbox->u.head.type != R3RING_MSG_OPENING || inbox->len != sizeof(message))
		return false;
	memcpy(&message, inbox->u.bytes, sizeof(message));
	if (message.done <= *done || message.done > message.bytes)
		return false;
	*done = message.done;
	return true;
}

int producer_hear_welcome(int fd, struct socket_inbox *inbox, int timeout_ms,
			  const uint32_t *stopping, struct r3ring_error *err)
{
	uint64_t done = 0;
	int ret = socket_hear(fd, inbox, timeout_ms, err);

	while (!ret && !r3ring_load_relaxed_u32(stopping) && has_grown(inbox, &done)) {
		socket_inbox_close_fds(inbox);
		ret = socket_hear(fd, inbox, timeout_ms, err);
	}
	return ret ? ret
		   : socket_expect(inbox, R3RING_MSG_WELCOME_PRODUCER,
				   sizeof(struct r3ring_welcome_producer_message), err);
}

static int introduce(struct r3ring_producer *producer, int fd, bool again,
		     struct socket_inbox *inbox, struct r3ring_error *err)
{
	uint64_t schema[PRODUCER_SCHEMA_BYTES_MAX / sizeof(uint64_t)];
	long schema_len = encode_schema(producer, schema, err);
	struct r3ring_hello_producer_message hello;
	int fds[R3RING_MESSAGE_FDS_MAX];
	unsigned int fd_count;
	int pidfd, ret;

	if (schema_len < 0)
		return (int)schema_len;

	/* Old kernels have none; the daemon then goes by the hang-up alone. */
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	fd_count = collect_fds(producer, fds, pidfd);
	hello = make_hello(producer, again, pidfd, (uint32_t)schema_len);
	ret = socket_question(fd, &hello.head, sizeof(hello), schema, (size_t)schema_len, fds,
			      fd_count, err);
	if (!ret)
		ret = producer_hear_welcome(fd, inbox, ANSWER_TIMEOUT_MS, &producer->stopping, err);
	if (pidfd >= 0)
		close(pidfd);
	producer->unanswered = ret == -ETIMEDOUT;
	if (ret)
		return ret;

	socket_inbox_close_fds(inbox);
	return take_welcome(producer, (const void *)inbox->u.bytes, again, err);
}

/* From now on close can hang up on a daemon that does not answer. */
static void keep_socket(struct r3ring_producer *producer, int fd)
{
	pthread_mutex_lock(&producer->socket_lock);
	producer->socket = fd;
	if (r3ring_load_relaxed_u32(&producer->stopping) && !producer_sees_through(producer))
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&producer->socket_lock);
}

int producer_connect(struct r3ring_producer *producer, bool again, struct r3ring_error *err)
{
	struct socket_inbox inbox;
	int fd = socket_connect(producer->runtime_dir, err);
	int ret;

	if (fd < 0)
		return fd;
	keep_socket(producer, fd);
	R3RING_TEST_POINT("engine connected");
	ret = introduce(producer, fd, again, &inbox, err);
	if (ret) {
		producer_disconnect(producer);
		return ret;
	}
	r3ring_store_relaxed_u64(&producer->generation, producer->last_generation);
	r3ring_store_relaxed_u32(&producer->connected, 1);
	R3RING_TEST_POINT("engine welcomed");
	return 0;
}

/* A daemon that is not there, or was never reached, has let go. */
bool producer_wait_for_hangup(struct r3ring_producer *producer, int timeout_ms)
{
	struct pollfd polled = {.fd = producer->socket, .events = POLLRDHUP};

	if (!r3ring_load_relaxed_u32(&producer->connected))
		return true;
	return poll(&polled, 1, timeout_ms) == 1;
}

void producer_disconnect(struct r3ring_producer *producer)
{
	r3ring_store_relaxed_u32(&producer->connected, 0);
	r3ring_store_relaxed_u64(&producer->generation, 0);
	pthread_mutex_lock(&producer->socket_lock);
	if (producer->socket >= 0)
		close(producer->socket);
	producer->socket = -1;
	pthread_mutex_unlock(&producer->socket_lock);
}
