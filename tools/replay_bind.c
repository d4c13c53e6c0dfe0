/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: the layers of a channel are bound, since each of them is captured. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/replay_channel.h"

#define PREFIX_MAX 32

struct bound_layer {
	struct r3ring_capture_source source;
	char prefix[PREFIX_MAX];
};

static void describe(struct r3ring_module *module, struct bound_layer *bound,
		     const struct r3ring_layer_entry *layer)
{
	bound->source.layer_id = layer->layer_id;
	snprintf(bound->prefix, sizeof(bound->prefix), "layers.%d", layer->layer_id);
	*module = (struct r3ring_module){
		.prefix = bound->prefix,
		.class_name = "replay",
		.kind = R3RING_MODULE_CAPTURE_SOURCE,
		.layer_kind = layer->kind,
		.source = &bound->source,
	};
}

int replay_bind(struct replay_channel *channel)
{
	uint32_t layers = channel->schema.layers;
	struct r3ring_module *modules = calloc(layers + 1u, sizeof(*modules));
	int code = -ENOMEM;

	channel->bound = calloc(layers + 1u, sizeof(*channel->bound));
	if (modules && channel->bound) {
		for (uint32_t i = 0; i < layers; i++)
			describe(&modules[i], &channel->bound[i], &channel->layers[i]);
		code = r3ring_bind(channel->producer, modules, layers, channel->shared->err);
	}
	free(modules);
	if (code == -ENOMEM)
		return replay_no_memory(channel);
	return code < 0 ? code : 0;
}

void replay_unbind(struct replay_channel *channel)
{
	free(channel->bound);
	channel->bound = NULL;
}
