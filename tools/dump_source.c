/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump: one channel or an instance, read alike. */
#include <string.h>

#include "tools/dump_source.h"

bool dump_names_instance(const char *name)
{
	return !strchr(name, '/');
}

static int open_instance(struct dump_source *source, const struct dump_source_options *as,
			 struct r3ring_error *err)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.instance = as->name,
		.mode = as->lossless ? R3RING_LOSSLESS : R3RING_LOSSY,
		.from = as->from,
		.stay = as->stay,
	};

	return r3ring_instance_open(&source->instance, &options, err);
}

static int open_reader(struct dump_source *source, const struct dump_source_options *as,
		       struct r3ring_error *err)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.channel = as->name,
		.mode = as->lossless ? R3RING_LOSSLESS : R3RING_LOSSY,
		.from = as->from,
		.seq = as->seq,
		.stay = as->stay,
	};

	return r3ring_reader_open(&source->reader, &options, err);
}

int dump_source_open(struct dump_source *source, const struct dump_source_options *options,
		     struct r3ring_error *err)
{
	if (dump_names_instance(options->name))
		return open_instance(source, options, err);
	return open_reader(source, options, err);
}

void dump_source_close(struct dump_source *source)
{
	r3ring_reader_close(source->reader);
	r3ring_instance_close(source->instance);
	*source = (struct dump_source){0};
}

int dump_source_read(struct dump_source *source, struct r3ring_view *view, void *buffer,
		     size_t capacity)
{
	if (source->instance)
		return r3ring_instance_read(source->instance, view, buffer, capacity);
	return r3ring_reader_read(source->reader, view, buffer, capacity);
}

int dump_source_wait(struct dump_source *source, int timeout_ms)
{
	if (source->instance)
		return r3ring_instance_wait(source->instance, timeout_ms);
	return r3ring_reader_wait(source->reader, timeout_ms);
}

size_t dump_source_max_record(const struct dump_source *source)
{
	if (source->instance)
		return r3ring_instance_max_record(source->instance);
	return r3ring_reader_max_record(source->reader);
}

const char *dump_source_error(const struct dump_source *source)
{
	if (source->instance)
		return r3ring_instance_error(source->instance);
	return r3ring_reader_error(source->reader);
}

uint32_t dump_source_channels(const struct dump_source *source)
{
	return source->instance ? r3ring_instance_channels(source->instance) : 1;
}

uint32_t dump_source_current(const struct dump_source *source)
{
	return source->instance ? r3ring_instance_current(source->instance) : 0;
}

const char *dump_source_channel(const struct dump_source *source, uint32_t index)
{
	return source->instance ? r3ring_instance_channel(source->instance, index) : NULL;
}

bool dump_source_get_stats(const struct dump_source *source, uint32_t index,
			   struct r3ring_reader_stats *stats)
{
	if (source->instance)
		return r3ring_instance_get_stats(source->instance, index, stats) == 0;
	r3ring_reader_get_stats(source->reader, stats);
	return true;
}
