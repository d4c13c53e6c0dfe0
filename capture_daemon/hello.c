/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's hello: taken apart, checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_daemon/hello.h"
#include "capture_daemon/peers.h"

/* NULL: err says why not. */
static struct r3ring_hello_producer_message *copy_message(const struct socket_inbox *inbox,
							  struct r3ring_error *err)
{
	struct r3ring_hello_producer_message *copy;

	if (inbox->len < sizeof(*copy)) {
		r3ring_error_set(err, -EBADMSG, "hello of %zu bytes, expected %zu", inbox->len,
				 sizeof(*copy));
		return NULL;
	}
	copy = malloc(inbox->len);
	if (copy)
		memcpy(copy, inbox->u.bytes, inbox->len);
	else
		r3ring_error_set(err, -ENOMEM, "no memory for a hello");
	return copy;
}

static int check_order(const struct r3ring_hello_producer_message *message,
		       struct r3ring_error *err)
{
	if (message->order == R3RING_ORDER_BELL || message->order == R3RING_ORDER_EVENT)
		return 0;
	return r3ring_error_set(err, -EBADMSG, "hello with order %u, which is none",
				message->order);
}

static int move_fd(int *from)
{
	int fd = *from;

	*from = -1;
	return fd;
}

static int take_fds(struct hello *hello, struct socket_inbox *inbox, struct r3ring_error *err)
{
	bool has_buffer = hello->message->buffer_kind != R3RING_BUFFER_CUDA_IPC;
	bool has_pidfd = hello->message->has_pidfd == 1;
	unsigned int expected = 1u + has_buffer + has_pidfd;

	if (inbox->fd_count != expected)
		return r3ring_error_set(err, -EBADMSG,
					"hello with %u descriptors where %u belong to it",
					inbox->fd_count, expected);
	hello->pages_fd = move_fd(&inbox->fds[0]);
	if (has_buffer)
		hello->buffer_fd = move_fd(&inbox->fds[1]);
	if (!has_pidfd)
		return 0;
	hello->pidfd = move_fd(&inbox->fds[expected - 1]);
	return peers_check_pidfd(hello->pidfd, err);
}

static int check_schema(const struct r3ring_schema_record *schema, struct r3ring_error *err)
{
	if (schema->layers == 0)
		return r3ring_error_set(err, -EINVAL,
					"the schema has no layer: a model without MoE layers has "
					"no routes to capture");
	if (schema->top_k > schema->experts)
		return r3ring_error_set(err, -EINVAL, "top-k %u of %u experts", schema->top_k,
					schema->experts);
	return 0;
}

static int parse_schema(struct hello *hello, size_t bytes, struct r3ring_error *err)
{
	struct r3ring_record schema;
	int r;

	if (bytes != hello->message->schema_len)
		return r3ring_error_set(err, -EBADMSG, "hello with %zu bytes of schema, says %u",
					bytes, hello->message->schema_len);
	r = r3ring_record_decode(&schema, R3RING_SCHEMA, hello->message + 1, bytes, err);
	if (r < 0)
		return r;
	/* One that comes back has laid out its buffer; for others it is chosen here. */
	if (!hello_comes_back(hello))
		schema.u.schema.head.rows_per_record = 0;
	hello->schema = schema;
	return check_schema(&schema.u.schema.head, err);
}

int hello_take(struct hello *hello, struct socket_inbox *inbox, struct r3ring_error *err)
{
	struct hello taken = {.pages_fd = -1, .buffer_fd = -1, .pidfd = -1};
	int r;

	taken.message = copy_message(inbox, err);
	if (!taken.message)
		return err->code;
	r = check_order(taken.message, err);
	if (r == 0)
		r = take_fds(&taken, inbox, err);
	if (r == 0)
		r = channel_name_check(&taken.message->channel, err);
	if (r == 0)
		r = parse_schema(&taken, inbox->len - sizeof(*taken.message), err);
	if (r < 0) {
		hello_release(&taken);
		return r;
	}
	*hello = taken;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void hello_release(struct hello *hello)
{
	close_fd(hello->pages_fd);
	close_fd(hello->buffer_fd);
	close_fd(hello->pidfd);
	free(hello->message);
	*hello = (struct hello){.pages_fd = -1, .buffer_fd = -1, .pidfd = -1};
}

bool hello_comes_back(const struct hello *hello)
{
	return hello->message->reconnect == 1;
}

uint64_t hello_memory(const struct hello *hello)
{
	const struct r3ring_hello_producer_message *message = hello->message;

	if (message->buffer_kind != R3RING_BUFFER_HOST)
		return message->pages_bytes;
	return message->pages_bytes + message->buffer_bytes;
}
