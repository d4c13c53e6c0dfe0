/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump of one channel, and what sources of one channel have in common. */
#include "consumer/internal.h"
#include "tools/dump_single.h"

uint32_t dump_single_channels(void *handle)
{
	(void)handle;
	return 1;
}

uint32_t dump_single_current(void *handle)
{
	(void)handle;
	return 0;
}

const char *dump_single_channel(void *handle, uint32_t index)
{
	(void)handle;
	(void)index;
	return NULL;
}

static void channel_close(void *handle)
{
	r3ring_reader_close(handle);
}

static int channel_read(void *handle, struct r3ring_view *view, void *buffer, size_t capacity)
{
	return r3ring_reader_read(handle, view, buffer, capacity);
}

static int channel_wait(void *handle, int timeout_ms)
{
	return r3ring_reader_wait(handle, timeout_ms);
}

static size_t channel_max_record(void *handle)
{
	return r3ring_reader_max_record(handle);
}

static const char *channel_error(void *handle)
{
	return r3ring_reader_error(handle);
}

static bool channel_get_stats(void *handle, uint32_t index, struct r3ring_reader_stats *stats)
{
	(void)index;
	r3ring_reader_get_stats(handle, stats);
	return true;
}

static bool channel_tail_lies(void *handle, uint32_t index)
{
	(void)index;
	return reader_tail_lies(handle);
}

static const struct dump_source_ops channel_ops = {
	.goes_on = true,
	.close = channel_close,
	.read = channel_read,
	.wait = channel_wait,
	.max_record = channel_max_record,
	.error = channel_error,
	.channels = dump_single_channels,
	.current = dump_single_current,
	.channel = dump_single_channel,
	.get_stats = channel_get_stats,
	.tail_lies = channel_tail_lies,
};

int dump_channel_open(struct dump_source *source, const struct dump_source_options *as,
		      struct r3ring_error *err)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.channel = as->name,
		.mode = as->lossless ? R3RING_LOSSLESS : R3RING_LOSSY,
		.from = as->from,
		.seq = as->seq,
		.stay = as->stay,
		.label = "dump",
	};
	struct r3ring_reader *reader;
	int code = r3ring_reader_open(&reader, &options, err);

	if (!code)
		*source = (struct dump_source){&channel_ops, reader};
	return code;
}
