/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run: what lies in the capture buffer is what the slow reference says. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "producer/reference/models.h"
#include "producer/reference/run.h"
#include "producer/reference/workload.h"
#include "tests/support/fake_service.h"
#include "tests/support/slow_moe.h"

#define MODEL "gpt-oss-20b"
#define LAYERS 24u
#define TOP_K 4u
#define REQUESTS 7u /* the sixth is preempted */
#define SEED 11u
#define HIDDEN 32u
#define HANDLES_MAX 64u

static const char words[] = "It is a truth universally acknowledged, that a single man in\n"
			    "possession of a good fortune, must be in want of a wife.\n";

static struct fake_service service;
static char text_path[] = "/tmp/r3ring-run-XXXXXX";
static struct tokens tokens;
static struct workload workload;
static struct slow_moe *slow;

/* What the announcements said. */
static struct workload_request *by_handle[HANDLES_MAX];
static uint32_t steps, rows_seen[REQUESTS], accepted[REQUESTS], ends[4];
static uint64_t eplb_maps;

static void setup(void)
{
	int fd = mkstemp(text_path);
	const struct moe_model *model = moe_model_find(MODEL, NULL);

	cr_assert(fd >= 0 && write(fd, words, strlen(words)) == (ssize_t)strlen(words));
	close(fd);
	cr_assert_eq(fake_service_start(&service), 0);
	cr_assert_eq(tokens_read(&tokens, text_path, model->vocabulary, NULL), 0);
	cr_assert_eq(workload_from_text(&workload, &tokens, REQUESTS, SEED, NULL), 0);
	slow = slow_moe_create(MODEL, HIDDEN, SEED);
}

static void teardown(void)
{
	fake_service_stop(&service);
	unlink(text_path);
	slow_moe_free(slow);
	workload_free(&workload);
	tokens_free(&tokens);
}

TestSuite(reference_run, .init = setup, .fini = teardown);

static struct run_options options_of_run(void)
{
	return (struct run_options){
		.runtime_dir = service.dir,
		.instance = "run",
		.device = "auto",
		.model = MODEL,
		.text = text_path,
		.requests = REQUESTS,
		.prefill_chunk = 24,
		.hidden = HIDDEN,
		.seed = SEED,
		.batch_rows = 40,
		.eplb_replicas = RUN_EPLB_DEFAULT,
	};
}

static void see_request(const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	cr_assert(head->handle > 0 && head->handle < HANDLES_MAX);
	if (head->event == R3RING_REQUEST_END) {
		accepted[by_handle[head->handle] - workload.requests] = head->accepted_tokens;
		ends[head->reason]++;
		return;
	}
	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (strlen(workload.requests[i].id) == head->id_len &&
		    !memcmp(workload.requests[i].id, record->u.request.id, head->id_len))
			by_handle[head->handle] = &workload.requests[i];
	}
	cr_assert_not_null(by_handle[head->handle]);
	cr_assert_eq(head->prompt_tokens, by_handle[head->handle]->prompt_tokens);
}

static const uint16_t *captured_row(const struct lane_step *step, uint32_t step_rows,
				    uint32_t layer, uint32_t row)
{
	struct extent_geometry g = {
		.layers = LAYERS,
		.top_k = TOP_K,
		.experts = 32,
		.rows_per_record = service.rows_per_record,
	};
	uint32_t part = row / g.rows_per_record;
	uint64_t at = step->extent_offset + extent_part_offset(&g, step_rows, layer, part) +
		      EXTENT_HEAD + (uint64_t)(row % g.rows_per_record) * TOP_K * sizeof(uint16_t);

	return (const uint16_t *)(const void *)(service.buffer + at);
}

static void expect_span(const struct lane_step *step, uint32_t step_rows,
			const struct r3ring_span *span)
{
	struct workload_request *request = by_handle[span->request];
	uint16_t expected[LAYERS * TOP_K];

	for (uint32_t i = 0; i < span->rows; i++) {
		int32_t token = workload_token(&workload, request, span->position + i);

		slow_moe_routes(slow, &token, span->position + i, 1, expected);
		for (uint32_t l = 0; l < LAYERS; l++)
			cr_assert_arr_eq(captured_row(step, step_rows, l, span->row + i),
					 expected + l * TOP_K, TOP_K * sizeof(*expected),
					 "%s, position %u, layer %u", request->id,
					 span->position + i, l);
	}
	if (!span->attempt)
		rows_seen[request - workload.requests] += span->rows;
}

static void see_step(const struct lane_step *step, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;

	cr_assert_eq(head->step, ++steps);
	cr_assert_eq(step->cause, 0, "step %u was dropped", steps);
	cr_assert_eq(head->total_rows % 8 && head->flags & R3RING_STEP_GRAPH, 0);
	for (uint32_t s = 0; s < head->spans; s++)
		expect_span(step, head->total_rows, &record->u.step.spans[s]);
}

static void see_entry(const uint8_t *payload)
{
	bool is_step = service.entry.type == LANE_STEP;
	size_t skip = is_step ? sizeof(struct lane_step) : 0;
	struct r3ring_record record;
	struct r3ring_error err;

	cr_assert_eq(r3ring_record_decode(&record,
					  is_step ? R3RING_STEP : service.entry.record_type,
					  payload + skip, service.entry.payload_bytes - skip, &err),
		     0, "%s", err.text);
	if (is_step)
		see_step((const struct lane_step *)(const void *)payload, &record);
	else if (record.type == R3RING_REQUEST)
		see_request(&record);
	else if (record.type == R3RING_EPLB)
		eplb_maps++;
}

static void see_all_entries(void)
{
	const uint8_t *payload;
	int error = 0;

	cr_assert_eq(fake_service_await(&service), 0);
	while ((payload = fake_service_next(&service, &error)))
		see_entry(payload);
	cr_assert_eq(error, 0);
}

Test(reference_run, every_row_is_captured_as_the_slow_reference_says)
{
	struct run_options options = options_of_run();
	struct run_report report;
	struct r3ring_error err;

	fake_service_expect(&service);
	cr_assert_eq(run_reference(&options, &report, &err), 0, "%s", err.text);
	see_all_entries();
	cr_assert_eq(report.steps, steps);
	cr_assert_eq(report.finished, REQUESTS);
	cr_assert_eq(report.producer.bound_layers, LAYERS);
	cr_assert_eq(report.stopped, false);
	cr_assert_geq(eplb_maps, 1);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct workload_request *r = &workload.requests[i];

		cr_assert_eq(accepted[i], workload_accepted(r), "%s", r->id);
		cr_assert_eq(rows_seen[i], r->preempt_after ? r->preempt_after : r->rows);
	}
	cr_assert_eq(ends[R3RING_END_FINISHED], REQUESTS);
	cr_assert_eq(ends[R3RING_END_PREEMPTED], 1);
}

Test(reference_run, a_run_cut_short_aborts_what_is_live)
{
	struct run_options options = options_of_run();
	struct run_report report;
	struct r3ring_error err;

	options.max_steps = 12;
	fake_service_expect(&service);
	cr_assert_eq(run_reference(&options, &report, &err), 0, "%s", err.text);
	see_all_entries();
	cr_assert_eq(report.steps, 12);
	cr_assert(report.stopped);
	cr_assert_gt(report.aborted, 0);
	cr_assert_eq(ends[R3RING_END_ABORTED], report.aborted);
}

Test(reference_run, asked_to_stop_it_ends_in_good_order)
{
	struct run_options options = options_of_run();
	const uint32_t stop = 1;
	struct run_report report;
	struct r3ring_error err;

	options.stop = &stop;
	fake_service_expect(&service);
	cr_assert_eq(run_reference(&options, &report, &err), 0, "%s", err.text);
	see_all_entries();
	cr_assert_eq(report.steps, 0);
	cr_assert(report.stopped);
	cr_assert_eq(service.pages.words->closing, 1);
}

static void expect_refused(const struct run_options *options, int code, const char *said)
{
	struct run_report report;
	struct r3ring_error err;

	cr_assert_eq(run_reference(options, &report, &err), code, "%s", err.text);
	cr_assert(strstr(err.text, said), "%s", err.text);
	cr_assert_eq(report.steps, 0);
}

/* The service expects nobody: a connection would wait for an answer. */
Test(reference_run, bad_input_is_refused_before_anything_is_opened)
{
	struct run_options options = options_of_run();

	options.model = "gpt-9";
	expect_refused(&options, -EINVAL, "deepseek-v4-flash");
	options = options_of_run();
	options.text = "/dev/null";
	expect_refused(&options, -ENODATA, "/dev/null");
	options = options_of_run();
	options.hidden = 17;
	expect_refused(&options, -EINVAL, "multiple of 16");
	options = options_of_run();
	options.device = "abacus";
	expect_refused(&options, -EINVAL, "--device");
	options.device = "cuda";
	if (device_cuda_ops.probe(NULL))
		expect_refused(&options, -ENODEV, "device \"cuda\"");
	options = options_of_run();
	options.eplb_replicas = 1000;
	expect_refused(&options, -EINVAL, "--eplb-replicas");
	options = options_of_run();
	options.rate = -1;
	expect_refused(&options, -EINVAL, "--rate");
	options = options_of_run();
	options.instance = "a/b";
	expect_refused(&options, -EINVAL, "a/b");
}

Test(reference_run, without_a_daemon_it_says_so)
{
	struct run_options options = options_of_run();

	options.runtime_dir = "/nonexistent";
	expect_refused(&options, -ECONNREFUSED, "/nonexistent");
}
