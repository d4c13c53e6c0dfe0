/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole run of the reference producer: opens a channel, binds the model,
 * serves the workload step by step on a stream of its own, and closes.
 */
#ifndef PRODUCER_REFERENCE_RUN_H
#define PRODUCER_REFERENCE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/producer.h>

#define RUN_EPLB_DEFAULT UINT32_MAX /* one extra replica for 8 experts, if ids allow */

struct run_report {
	char model[R3RING_MODEL_NAME_MAX + 1];
	uint64_t steps, rows; /* run, whether captured or not */
	uint32_t requests;    /* of the workload */
	uint32_t begun;       /* of them; the others' turn never came */
	uint32_t finished;
	uint64_t preempted, aborted; /* attempts that ended so */
	double seconds;              /* from the first step to the end of the last */
	bool stopped;                /* before the workload's end */
	struct r3ring_producer_stats producer;
};

struct run_options {
	const char *runtime_dir; /* NULL: as r3ring_producer_open() finds it */
	const char *instance;
	uint32_t rank;
	const char *device; /* "host" (or "auto", NULL), "cuda": where ids are captured */
	const char *buffer_export, *order; /* as r3ring_producer_options has them */
	bool side_stream;                  /* likewise */

	/* Either a recording ... */
	const char *trace;
	uint32_t repeat;
	/* ... or a model over a text. */
	const char *model, *text;
	uint32_t requests, prefill_chunk, hidden;
	uint64_t seed;

	uint32_t batch_rows;
	uint32_t eplb_replicas; /* extra physical experts of a layer, or RUN_EPLB_DEFAULT */
	uint64_t max_steps;     /* 0: to the end */
	double rate;            /* steps per second; 0: as fast as the forward is */

	const uint32_t *stop; /* set to 1 from elsewhere to end the run early */
	void (*progress)(void *ctx, const struct run_report *report); /* a step; may be NULL */
	void *progress_ctx;
	r3ring_log_fn log; /* may be NULL */
	void *log_ctx;
};

/*
 * Runs to the end of the workload, max_steps, or *stop. All input is read and
 * checked before the channel is opened, so that none of its errors begins a new
 * generation.
 *
 * @report: filled in also when the run failed half-way.
 *
 * Returns 0, -EINVAL (an option), an error of tokens_read() or trace_read(), an
 * error of r3ring_producer_open() or r3ring_bind(), or of a later call; @err
 * says which.
 */
int run_reference(const struct run_options *options, struct run_report *report,
		  struct r3ring_error *err);

#endif
