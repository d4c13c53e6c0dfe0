/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump: which kind of source a name is of. */
#include <string.h>

#include "tools/dump_source.h"

bool dump_names_instance(const char *name)
{
	return !strchr(name, '/');
}

int dump_source_open(struct dump_source *source, const struct dump_source_options *options,
		     struct r3ring_error *err)
{
	if (options->segment)
		return dump_segment_open(source, options, err);
	if (dump_names_instance(options->name))
		return dump_instance_open(source, options, err);
	return dump_channel_open(source, options, err);
}

void dump_source_close(struct dump_source *source)
{
	if (source->ops)
		source->ops->close(source->handle);
	*source = (struct dump_source){0};
}
