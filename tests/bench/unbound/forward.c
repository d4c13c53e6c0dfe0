/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forward pass of nothing but layer calls, without a hook or with one that is
 * unbound, for a tool that counts instructions.
 *
 * usage: bench-unbound nohook|hooked CALLS
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/bind.h>

#define ROWS 2u
#define TOP_K 6u

/* As in an engine, the compiler knows neither the router nor the mapping. */
struct layer {
	struct r3ring_capture_source source;
	void (*route)(struct layer *layer);
	void (*map_to_replicas)(struct layer *layer);
	int64_t topk_ids[ROWS * TOP_K];
	uint64_t mapped;
};

static void route(struct layer *layer)
{
	layer->topk_ids[0]++;
}

static void map_to_replicas(struct layer *layer)
{
	layer->mapped += (uint64_t)layer->topk_ids[0];
}

static __attribute__((noinline)) void bare_forward(struct layer *layer)
{
	layer->route(layer);
	layer->map_to_replicas(layer);
}

static __attribute__((noinline)) void capture(struct layer *layer)
{
	const struct r3ring_topk topk = {.ids = layer->topk_ids,
					 .type = R3RING_INT64,
					 .rows = ROWS,
					 .columns = TOP_K,
					 .row_stride = TOP_K};

	layer->source.fn(&layer->source, &topk, NULL);
}

static __attribute__((noinline)) void hooked_forward(struct layer *layer)
{
	layer->route(layer);
	if (layer->source.fn)
		capture(layer);
	layer->map_to_replicas(layer);
}

int main(int argc, char **argv)
{
	struct layer layer = {
		.source = {.layer_id = 3}, .route = route, .map_to_replicas = map_to_replicas};
	unsigned long calls;

	if (argc != 3)
		return 2;
	__asm__ __volatile__("" ::"r"(&layer) : "memory");
	calls = strtoul(argv[2], NULL, 10);
	if (strcmp(argv[1], "hooked") == 0)
		for (unsigned long i = 0; i < calls; i++)
			hooked_forward(&layer);
	else
		for (unsigned long i = 0; i < calls; i++)
			bare_forward(&layer);
	return 0;
}
