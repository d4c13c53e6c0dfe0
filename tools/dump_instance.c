/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of all ranks of an instance. */
#include <r3ring/instance.h>

#include "consumer/instance_internal.h"
#include "consumer/internal.h"
#include "tools/dump_source.h"

static void instance_close(void *handle)
{
	r3ring_instance_close(handle);
}

static int instance_read(void *handle, struct r3ring_view *view, void *buffer, size_t capacity)
{
	return r3ring_instance_read(handle, view, buffer, capacity);
}

static int instance_wait(void *handle, int timeout_ms)
{
	return r3ring_instance_wait(handle, timeout_ms);
}

static size_t instance_max_record(void *handle)
{
	return r3ring_instance_max_record(handle);
}

static const char *instance_error(void *handle)
{
	return r3ring_instance_error(handle);
}

static uint32_t instance_channels(void *handle)
{
	return r3ring_instance_channels(handle);
}

static uint32_t instance_current(void *handle)
{
	return r3ring_instance_current(handle);
}

static const char *instance_channel(void *handle, uint32_t index)
{
	return r3ring_instance_channel(handle, index);
}

static bool instance_get_stats(void *handle, uint32_t index, struct r3ring_reader_stats *stats)
{
	return r3ring_instance_get_stats(handle, index, stats) == 0;
}

static bool instance_tail_lies(void *handle, uint32_t index)
{
	const struct r3ring_instance *instance = handle;
	const struct r3ring_reader *reader = instance->channels[index]->reader;

	return reader && reader_tail_lies(reader);
}

static const struct dump_source_ops instance_ops = {
	.goes_on = true,
	.close = instance_close,
	.read = instance_read,
	.wait = instance_wait,
	.max_record = instance_max_record,
	.error = instance_error,
	.channels = instance_channels,
	.current = instance_current,
	.channel = instance_channel,
	.get_stats = instance_get_stats,
	.tail_lies = instance_tail_lies,
};

int dump_instance_open(struct dump_source *source, const struct dump_source_options *as,
		       struct r3ring_error *err)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.instance = as->name,
		.mode = as->lossless ? R3RING_LOSSLESS : R3RING_LOSSY,
		.from = as->from,
		.stay = as->stay,
		.label = "dump",
	};
	struct r3ring_instance *instance;
	int code = r3ring_instance_open(&instance, &options, err);

	if (!code)
		*source = (struct dump_source){&instance_ops, instance};
	return code;
}
