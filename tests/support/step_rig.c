/* SPDX-License-Identifier: Apache-2.0 */
/* Daemon, producer and reader for tests of single steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/step_rig.h"

#define FIRST_LAYER 3 /* models begin with dense layers */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "step rig: %s: %s\n", what, why);
	exit(1);
}

void step_rig_start(struct step_rig *rig, const char *const *args, uint32_t layers,
		    uint32_t experts, uint32_t top_k, uint32_t max_rows)
{
	test_daemon_start(&rig->daemon, args);
	snprintf(rig->instance, sizeof(rig->instance), "steps-%d", getpid());
	for (uint32_t i = 0; i < layers; i++)
		rig->layers[i].layer_id = FIRST_LAYER + (int32_t)i;
	rig->options = (struct r3ring_producer_options){
		.size = sizeof(rig->options),
		.runtime_dir = rig->daemon.dir,
		.instance = rig->instance,
		.device = "host",
		.model = "steps",
		.experts = experts,
		.top_k = top_k,
		.max_rows = max_rows,
		.layer_count = layers,
		.layers = rig->layers,
	};
	rig->source = (struct step_source){
		.type = R3RING_INT32,
		.experts = experts,
		.top_k = top_k,
	};
}

struct r3ring_producer *step_rig_open_channel(struct step_rig *rig,
					      const struct r3ring_producer_options *options,
					      struct step_reader *reader)
{
	struct r3ring_producer *producer = NULL;
	struct r3ring_error err;

	snprintf(rig->channel, sizeof(rig->channel), "%s/%u%s", options->instance, options->rank,
		 options->draft ? ".draft" : "");
	if (r3ring_producer_open(&producer, options, &err) < 0)
		die(rig->channel, err.text);
	if (reader)
		step_reader_open(reader, rig->daemon.dir, rig->channel);
	return producer;
}

void step_rig_open(struct step_rig *rig)
{
	rig->producer = step_rig_open_channel(rig, &rig->options, &rig->reader);
}

void step_rig_close(struct step_rig *rig)
{
	r3ring_producer_close(rig->producer);
	rig->producer = NULL;
	step_reader_close(&rig->reader);
	step_source_free(&rig->source);
	if (rig->daemon.dir[0])
		test_daemon_close(&rig->daemon);
}

int64_t step_rig_begin(struct step_rig *rig, uint32_t rows)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
	};

	rig->source.rows = rows;
	return r3ring_step_begin(rig->producer, &step, NULL);
}

void step_rig_capture(struct step_rig *rig, int64_t step, uint32_t layer)
{
	struct r3ring_topk topk;

	step_source_fill(&rig->source, (uint64_t)step, layer);
	topk = step_source_topk(&rig->source);
	if (r3ring_capture_layer(rig->producer, layer, &topk, NULL) < 0)
		die("capture", r3ring_producer_error(rig->producer));
}

void step_rig_end(struct step_rig *rig)
{
	if (r3ring_step_end(rig->producer, NULL) < 0)
		die("step_end", r3ring_producer_error(rig->producer));
}

void step_rig_step(struct step_rig *rig, uint32_t rows)
{
	int64_t step = step_rig_begin(rig, rows);

	if (step < 0)
		die("step_begin", r3ring_producer_error(rig->producer));
	for (uint32_t layer = 0; layer < rig->options.layer_count; layer++)
		step_rig_capture(rig, step, layer);
	step_rig_end(rig);
	if (!step_reader_next(&rig->reader))
		die("a step", "its end was not read");
}
