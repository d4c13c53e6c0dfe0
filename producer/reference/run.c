/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the reference producer. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/bind.h>

#include "producer/reference/engine.h"
#include "producer/reference/run.h"

#define BUFFER_LEAST (16ull << 20)
#define EPLB_STEPS 128u            /* steps from one placement to the next */
#define PREFILL_DOORBELL_LAYERS 8u /* a long step is drained while it runs */
#define WARMUP_ROWS 8u

struct run {
	const struct run_options *options;
	struct run_report *report;
	struct r3ring_error *err;
	struct engine engine;
	struct r3ring_producer *producer;
	int64_t *handles;       /* [requests] of the attempt that runs */
	uint64_t *span_handles; /* [2 * max_rows] */
	uint64_t announced;     /* EPLB epoch that readers were told */
	struct timespec begin;
};

static bool stop_asked(const struct run *r)
{
	return r->options->stop && r3ring_load_relaxed_u32(r->options->stop);
}

/* Error of a call on the open producer, in its words. */
static int producer_error(struct run *r, int rc)
{
	return r3ring_error_set(r->err, rc, "%s", r3ring_producer_error(r->producer));
}

static int check_options(const struct run_options *o, struct r3ring_error *err)
{
	if (!o->trace && (!o->model || !o->text))
		return r3ring_error_set(err, -EINVAL,
					"nothing to run: give --model and --text, or --trace");
	if (!(o->rate >= 0) || isinf(o->rate))
		return r3ring_error_set(err, -EINVAL,
					"rate %g: --rate takes steps per second, above 0", o->rate);
	if (o->device && strcmp(o->device, "auto") != 0 && strcmp(o->device, "host") != 0 &&
	    strcmp(o->device, "cuda") != 0)
		return r3ring_error_set(err, -EINVAL,
					"device \"%.32s\": --device takes auto, host or cuda",
					o->device);
	return 0;
}

/* Four of the largest steps, but never so little that a short run without pause
 * must drop steps. 0 leaves the size to the library. */
static uint64_t buffer_bytes(const struct engine *e)
{
	uint64_t layer = (uint64_t)e->max_rows * e->top_k * sizeof(uint16_t);

	return 4 * layer * e->layer_count < BUFFER_LEAST ? BUFFER_LEAST : 0;
}

static int open_channel(struct run *r)
{
	const struct run_options *o = r->options;
	const struct engine *e = &r->engine;
	struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = o->runtime_dir,
		.instance = o->instance,
		.rank = o->rank,
		.device = e->on_gpu ? "cuda" : "host",
		.buffer_export = o->buffer_export,
		.order = o->order,
		.side_stream = o->side_stream,
		.model = e->model,
		.experts = e->experts,
		.top_k = e->top_k,
		.max_rows = e->max_rows,
		.layer_count = e->layer_count,
		.layers = e->layers,
		.weight_version = 1,
		.buffer_bytes = buffer_bytes(e),
		.log = o->log,
		.log_ctx = o->log_ctx,
	};
	const struct r3ring_module *modules;
	size_t count;
	int rc = r3ring_producer_open(&r->producer, &options, r->err);

	if (rc)
		return rc;
	modules = megamoe_modules(e->megamoe, &count);
	rc = r3ring_bind(r->producer, modules, count, r->err);
	return rc < 0 ? rc : 0;
}

/* As engines do, a forward before serving; no step was begun, so that nothing of
 * it is captured. */
static int warm_up(struct run *r)
{
	static const int32_t zeros[WARMUP_ROWS];
	uint32_t rows = r->engine.max_rows < WARMUP_ROWS ? r->engine.max_rows : WARMUP_ROWS;
	struct megamoe_input input = {zeros, zeros, rows, rows};
	int rc = megamoe_forward(r->engine.megamoe, &input, r->engine.stream);

	return rc ? rc : megamoe_wait(r->engine.megamoe);
}

/* Every EPLB_STEPS steps the replicas are placed anew, between two forwards. */
static int balance(struct run *r)
{
	struct r3ring_eplb_record head;
	const uint16_t *map;
	int rc = 0;

	if (r->report->steps && r->report->steps % EPLB_STEPS == 0) {
		rc = megamoe_wait(r->engine.megamoe);
		if (!rc)
			rc = eplb_place(r->engine.eplb);
		if (rc)
			return r3ring_error_set(r->err, rc, "the EPLB map could not be renewed");
	}
	eplb_describe(r->engine.eplb, &head, &map);
	if (head.epoch == r->announced)
		return 0;
	head.first_step = r->report->steps + 1;
	rc = r3ring_eplb(r->producer, &head, map);
	if (rc == -ENOBUFS)
		return 0; /* told before a later step */
	if (rc)
		return producer_error(r, rc);
	r->announced = head.epoch;
	return 0;
}

static int begin_requests(struct run *r, const struct batch_step *step)
{
	for (uint32_t i = 0; i < step->begins; i++) {
		const struct batch_event *event = &step->begin[i];
		const struct workload_request *planned =
			&r->engine.workload.requests[event->request];
		struct r3ring_request request = {
			.size = sizeof(request),
			.id = planned->id,
			.prompt_tokens = planned->prompt_tokens,
			.attempt = event->attempt,
		};
		int64_t handle = r3ring_request_begin(r->producer, &request);

		if (handle < 0)
			return producer_error(r, (int)handle);
		r->report->begun += !r->handles[event->request]; /* a later attempt is no other */
		r->handles[event->request] = handle;
	}
	return 0;
}

static int end_requests(struct run *r, const struct batch_step *step)
{
	for (uint32_t i = 0; i < step->ends; i++) {
		const struct batch_event *event = &step->end[i];
		int rc = r3ring_request_end(r->producer, r->handles[event->request], event->reason,
					    event->attempt, event->accepted);

		if (rc)
			return producer_error(r, rc);
		r->report->finished += event->reason == R3RING_END_FINISHED;
		r->report->preempted += event->reason == R3RING_END_PREEMPTED;
		r->report->aborted += event->reason == R3RING_END_ABORTED;
	}
	return 0;
}

static int announce_step(struct run *r, const struct batch_step *step)
{
	struct r3ring_step announced = {
		.size = sizeof(announced),
		.total_rows = step->total_rows,
		.row_end = step->total_rows,
		.valid_end = step->rows,
		.flags = step->decode_only ? R3RING_STEP_GRAPH : 0,
		.doorbell_layers = step->decode_only ? 0 : PREFILL_DOORBELL_LAYERS,
		.weight_version = 1,
		.eplb_epoch = r->announced,
		.spans = step->spans,
		.span_request = r->span_handles,
		.span_position = step->span_position,
		.span_row = step->span_row,
		.span_rows = step->span_rows,
		.span_attempt = step->span_attempt,
		.span_kind = step->span_kind,
	};
	int64_t number;

	for (uint32_t s = 0; s < step->spans; s++)
		r->span_handles[s] = (uint64_t)r->handles[step->span_request[s]];
	number = r3ring_step_begin(r->producer, &announced, r->engine.stream);
	return number < 0 ? producer_error(r, (int)number) : 0;
}

static int run_forward(struct run *r, const struct batch_step *step)
{
	struct megamoe_input input = {
		.token_ids = step->token_ids,
		.positions = step->positions,
		.rows = step->rows,
		.total_rows = step->total_rows,
	};
	int rc = megamoe_forward(r->engine.megamoe, &input, r->engine.stream);

	return rc ? r3ring_error_set(r->err, rc, "the forward failed: %s", strerror(-rc)) : 0;
}

static int run_step(struct run *r, const struct batch_step *step)
{
	int rc = balance(r);

	if (!rc)
		rc = begin_requests(r, step);
	if (!rc)
		rc = announce_step(r, step);
	if (!rc)
		rc = run_forward(r, step);
	if (rc)
		return rc;
	rc = r3ring_step_end(r->producer, r->engine.stream);
	if (rc)
		return producer_error(r, rc);
	r->report->steps++;
	r->report->rows += step->rows;
	return end_requests(r, step);
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

/* Waits until the next step is due; a signal cuts it short. */
static void keep_rate(const struct run *r)
{
	double due;
	struct timespec until = r->begin;

	if (!(r->options->rate > 0))
		return;
	due = (double)r->report->steps / r->options->rate + (double)until.tv_nsec * 1e-9;
	until.tv_sec += (time_t)due;
	until.tv_nsec = (long)((due - floor(due)) * 1e9);
	while (!stop_asked(r) &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void report_progress(struct run *r)
{
	r->report->seconds = seconds_since(&r->begin);
	r3ring_producer_get_stats(r->producer, &r->report->producer);
	if (r->options->progress)
		r->options->progress(r->options->progress_ctx, r->report);
}

static bool enough(const struct run *r)
{
	return stop_asked(r) ||
	       (r->options->max_steps && r->report->steps >= r->options->max_steps);
}

static int serve(struct run *r)
{
	struct batch_step step;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &r->begin);
	while (!rc && !enough(r) && batch_next(r->engine.batch, &step)) {
		rc = run_step(r, &step);
		report_progress(r);
		keep_rate(r);
	}
	if (!rc && r->report->finished < r->engine.workload.count) {
		r->report->stopped = true;
		batch_abort(r->engine.batch, &step);
		rc = end_requests(r, &step);
	}
	if (!rc) {
		rc = megamoe_wait(r->engine.megamoe);
		if (rc)
			r3ring_error_set(r->err, rc, "the mapping to replicas failed: %s",
					 strerror(-rc));
	}
	report_progress(r);
	return rc;
}

static int alloc_handles(struct run *r)
{
	r->handles = calloc(r->engine.workload.count, sizeof(*r->handles));
	r->span_handles = calloc(2 * (size_t)r->engine.max_rows, sizeof(*r->span_handles));
	if (r->handles && r->span_handles)
		return 0;
	return r3ring_error_set(r->err, -ENOMEM, "no memory for %u requests",
				r->engine.workload.count);
}

int run_reference(const struct run_options *options, struct run_report *report,
		  struct r3ring_error *err)
{
	struct run r = {.options = options, .report = report, .err = err};
	int rc = check_options(options, err);

	*report = (struct run_report){0};
	if (rc)
		return rc;
	rc = engine_create(&r.engine, options, err);
	memcpy(report->model, r.engine.model, sizeof(report->model));
	report->requests = r.engine.workload.count;
	if (!rc)
		rc = alloc_handles(&r);
	if (!rc)
		rc = open_channel(&r);
	if (!rc)
		rc = warm_up(&r);
	if (!rc)
		rc = serve(&r);
	/* Unbinds the sources, which the engine owns, so it comes first. */
	r3ring_producer_close(r.producer);
	engine_free(&r.engine);
	free(r.handles);
	free(r.span_handles);
	return rc;
}
