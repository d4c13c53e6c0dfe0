/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a capture buffer on a GPU goes to the daemon: by CUDA IPC handle where both
 * processes share PID and IPC namespace, else as a file descriptor; so too where the
 * GPU gives no handle, or the daemon cannot open it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "channel/namespaces.h"
#include "channel/socket.h"
#include "producer/producer.h"

#define ANSWER_TIMEOUT_MS 10000

static const char *const reasons[] = {
	[R3RING_EXPORT_HOST] = "host memory",
	[R3RING_EXPORT_SAME_NAMESPACES] = "r3ringd shares PID and IPC namespace",
	[R3RING_EXPORT_OTHER_PID_NAMESPACE] = "r3ringd is in another PID namespace",
	[R3RING_EXPORT_OTHER_IPC_NAMESPACE] = "r3ringd is in another IPC namespace",
	[R3RING_EXPORT_FORCED] = "buffer_export asks for it",
	[R3RING_EXPORT_NO_HANDLE] = "the GPU gives no CUDA IPC handle",
	[R3RING_EXPORT_HANDLE_REFUSED] = "r3ringd cannot open the CUDA IPC handle",
};

static bool is(const char *option, const char *value)
{
	return option && strcmp(option, value) == 0;
}

/* A connection of its own: nothing is settled yet that another one would belong to. */
static int ask(const struct r3ring_producer *producer, struct namespaces *daemon,
	       struct r3ring_error *err)
{
	struct r3ring_message whois = {.type = R3RING_MSG_WHOIS};
	const struct r3ring_identity_message *identity;
	struct socket_inbox inbox;
	int fd = socket_connect(producer->runtime_dir, err);
	int ret;

	if (fd < 0)
		return fd;
	ret = socket_ask(fd, &whois, sizeof(whois), NULL, 0, NULL, 0, &inbox, R3RING_MSG_IDENTITY,
			 sizeof(*identity), ANSWER_TIMEOUT_MS, err);
	close(fd);
	if (ret)
		return ret;
	socket_inbox_close_fds(&inbox);
	identity = (const void *)inbox.u.bytes;
	*daemon = (struct namespaces){identity->pid_namespace, identity->ipc_namespace};
	return 0;
}

/* A namespace that one of them cannot name is taken for another one. */
static enum r3ring_export_reason compare(const struct namespaces *daemon)
{
	const struct namespaces own = namespaces_of_this_process();

	if (!own.pid || own.pid != daemon->pid)
		return R3RING_EXPORT_OTHER_PID_NAMESPACE;
	if (!own.ipc || own.ipc != daemon->ipc)
		return R3RING_EXPORT_OTHER_IPC_NAMESPACE;
	return R3RING_EXPORT_SAME_NAMESPACES;
}

static int check_order(struct r3ring_producer *producer, enum r3ring_buffer_kind kind,
		       struct r3ring_error *err)
{
	if (producer->order != R3RING_ORDER_EVENT || kind == R3RING_BUFFER_CUDA_IPC)
		return 0;
	return r3ring_error_set(err, -EINVAL,
				"order is \"event\", but the buffer goes as a descriptor (%s), and "
				"events have only IPC handles: use order \"bell\", or share the "
				"namespaces (--pid=host --ipc=host) on a GPU with CUDA IPC",
				reasons[producer->export_reason]);
}

int producer_choose_export(struct r3ring_producer *producer,
			   const struct r3ring_producer_options *options,
			   enum r3ring_buffer_kind *kind, struct r3ring_error *err)
{
	struct namespaces daemon;
	enum r3ring_buffer_kind chosen;
	int ret = ask(producer, &daemon, err);

	if (ret)
		return ret;
	producer->export_reason = R3RING_EXPORT_FORCED;
	if (is(options->buffer_export, "ipc")) {
		chosen = R3RING_BUFFER_CUDA_IPC;
	} else if (is(options->buffer_export, "fd")) {
		chosen = R3RING_BUFFER_CUDA_VMM;
	} else {
		producer->export_reason = compare(&daemon);
		chosen = producer->export_reason == R3RING_EXPORT_SAME_NAMESPACES
				 ? R3RING_BUFFER_CUDA_IPC
				 : R3RING_BUFFER_CUDA_VMM;
	}
	producer->order = is(options->order, "event") ? R3RING_ORDER_EVENT : R3RING_ORDER_BELL;
	ret = check_order(producer, chosen, err);
	if (ret)
		return ret;
	producer_log(producer, R3RING_LOG_INFO, "the capture buffer goes to r3ringd as %s: %s",
		     chosen == R3RING_BUFFER_CUDA_IPC ? "a CUDA IPC handle" : "a file descriptor",
		     reasons[producer->export_reason]);
	*kind = chosen;
	return 0;
}

/* ---- the second choice -------------------------------------------------- */

/* @err: why there is no handle; receives the reason when there is no descriptor either. */
static int take_descriptor(struct r3ring_producer *producer, enum r3ring_export_reason reason,
			   uint64_t bytes, struct r3ring_error *err)
{
	const struct r3ring_error first = *err;
	int ret;

	producer->export_reason = reason;
	ret = check_order(producer, R3RING_BUFFER_CUDA_VMM, err);
	if (ret)
		return ret;
	producer_log(producer, R3RING_LOG_INFO,
		     "the capture buffer goes to r3ringd as a file descriptor after all: %s",
		     first.text);
	ret = producer->ops->buffer_alloc(producer->device, R3RING_BUFFER_CUDA_VMM, bytes,
					  &producer->buffer, err);
	if (ret) {
		const struct r3ring_error second = *err;

		r3ring_error_set(err, ret, "%.240s; as a descriptor: %.240s", first.text,
				 second.text);
	}
	return ret;
}

static bool handle_was_chosen(const struct r3ring_producer *producer)
{
	return producer->export_reason == R3RING_EXPORT_SAME_NAMESPACES;
}

int producer_buffer_alloc(struct r3ring_producer *producer, enum r3ring_buffer_kind kind,
			  uint64_t bytes, struct r3ring_error *err)
{
	int ret =
		producer->ops->buffer_alloc(producer->device, kind, bytes, &producer->buffer, err);

	if (ret != -ENOTSUP || !handle_was_chosen(producer))
		return ret;
	return take_descriptor(producer, R3RING_EXPORT_NO_HANDLE, bytes, err);
}

int producer_connect_first(struct r3ring_producer *producer, struct r3ring_error *err)
{
	uint64_t bytes = producer->buffer.bytes;
	int ret = producer_connect(producer, false, err);

	if (ret != -ENOTSUP || !handle_was_chosen(producer))
		return ret;
	producer->ops->buffer_free(producer->device, &producer->buffer);
	ret = take_descriptor(producer, R3RING_EXPORT_HANDLE_REFUSED, bytes, err);
	return ret ? ret : producer_connect(producer, false, err);
}
