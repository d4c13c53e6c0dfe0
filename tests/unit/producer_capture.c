/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: what lands in the extent, what captures nothing, what is refused. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <r3ring/producer.h>

#include "producer/producer.h"
#include "tests/support/emulated.h"
#include "tests/support/fake_service.h"

#define ROWS 10u
#define TOP_K 2u
#define LAYERS 4u

static struct fake_service service;
static struct r3ring_producer *producer;
static int64_t ids[ROWS * TOP_K];

static void start(void)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	cr_assert_eq(fake_service_start(&service), 0);
	options = fake_service_options(&service);
	options.capture_rows = 1;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	for (uint32_t i = 0; i < ROWS * TOP_K; i++)
		ids[i] = (i * 7 + 3) % 16;
}

static void stop(void)
{
	r3ring_producer_close(producer);
	fake_service_stop(&service);
}

TestSuite(producer_capture, .init = start, .fini = stop, .timeout = 30);

static const struct r3ring_step step = {
	.size = sizeof(struct r3ring_step),
	.total_rows = ROWS,
	.row_end = ROWS,
	.valid_end = ROWS,
};

static struct r3ring_topk topk_of_ids(void)
{
	return (struct r3ring_topk){
		.ids = ids,
		.type = R3RING_INT64,
		.rows = ROWS,
		.columns = TOP_K,
		.row_stride = TOP_K,
	};
}

static struct extent_bell *bell(uint32_t slot, uint32_t layer)
{
	return pages_bell(pages_slot(&service.pages, slot), layer);
}

/* Where the next step's ids of a layer lie; its entry is taken. */
static const uint16_t *captured_ids(uint32_t layer)
{
	const uint8_t *payload = fake_service_next(&service, NULL);
	struct lane_step lane_step;

	cr_assert_not_null(payload);
	memcpy(&lane_step, payload, sizeof(lane_step));
	return (const void *)(service.buffer + lane_step.extent_offset +
			      extent_part_offset(&producer->geometry, ROWS, layer, 0) +
			      EXTENT_HEAD);
}

static void capture_all(const struct r3ring_topk *topk)
{
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		cr_assert_eq(r3ring_capture_layer(producer, layer, topk, NULL), 0);
}

Test(producer_capture, ids_arrive_in_the_layer_they_were_captured_for)
{
	struct r3ring_topk topk = topk_of_ids();
	const uint16_t *captured;

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	cr_assert_eq(r3ring_capture(producer, 5, &topk, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	captured = captured_ids(2);
	for (uint32_t i = 0; i < ROWS * TOP_K; i++)
		cr_assert_eq(captured[i], (uint16_t)ids[i]);
	cr_assert_eq(bell(0, 2)->step, 1);
	cr_assert_eq(bell(0, 2)->rows, ROWS);
}

Test(producer_capture, failure_6_a_layer_that_never_came_has_no_rows)
{
	struct r3ring_topk topk = topk_of_ids();

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	cr_assert_eq(r3ring_capture(producer, 0, &topk, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	cr_assert_eq(bell(0, 0)->rows, ROWS);
	for (uint32_t layer = 1; layer < LAYERS; layer++)
		cr_assert_eq(bell(0, layer)->rows, 0);
}

Test(producer_capture, failure_35_a_number_names_the_moe_layer_and_an_index_the_mtp_one)
{
	struct r3ring_topk topk = topk_of_ids();

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	cr_assert_eq(r3ring_capture(producer, 3, &topk, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	cr_assert_eq(bell(0, 1)->rows, ROWS);
	cr_assert_eq(bell(0, 3)->rows, 0);
	cr_assert_eq(r3ring_layer_index(producer, 3, R3RING_LAYER_MTP), 3);
}

Test(producer_capture, failure_42_a_forward_outside_a_step_captures_nothing)
{
	struct r3ring_topk topk = topk_of_ids();
	static uint8_t before[1 << 20];

	cr_assert_leq(service.hello.buffer_bytes, sizeof(before));
	memcpy(before, service.buffer, service.hello.buffer_bytes);
	capture_all(&topk);
	cr_assert_eq(r3ring_capture_rows(producer, (const int32_t *)ids, NULL, NULL), 0);
	cr_assert_arr_eq(before, service.buffer, service.hello.buffer_bytes, "before any step");

	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	capture_all(&topk);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	memcpy(before, service.buffer, service.hello.buffer_bytes);
	for (uint32_t i = 0; i < ROWS * TOP_K; i++)
		ids[i] = 15 - ids[i];
	capture_all(&topk);
	cr_assert_arr_eq(before, service.buffer, service.hello.buffer_bytes, "after the step");
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		cr_assert_eq(bell(0, layer)->rows, ROWS);
}

Test(producer_capture, a_forward_after_a_step_that_was_too_big_captures_nothing)
{
	struct r3ring_topk topk = topk_of_ids();
	struct r3ring_step too_big = step;
	static uint8_t before[1 << 20];

	too_big.total_rows = 65;
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	capture_all(&topk);
	cr_assert_eq(r3ring_step_begin(producer, &too_big, NULL), -EMSGSIZE);
	memcpy(before, service.buffer, service.hello.buffer_bytes);
	for (uint32_t i = 0; i < ROWS * TOP_K; i++)
		ids[i] = 15 - ids[i];
	capture_all(&topk);
	cr_assert_arr_eq(before, service.buffer, service.hello.buffer_bytes);
}

static void assert_refused(const struct r3ring_topk *topk, const char *says)
{
	cr_assert_eq(r3ring_capture(producer, 0, topk, NULL), -EINVAL);
	cr_assert_not_null(strstr(r3ring_producer_error(producer), says),
			   "\"%s\" does not say \"%s\"", r3ring_producer_error(producer), says);
}

Test(producer_capture, a_matrix_that_does_not_fit_is_refused)
{
	struct r3ring_topk topk = topk_of_ids();

	topk.type = 0;
	assert_refused(&topk, "type");
	topk.type = 6;
	assert_refused(&topk, "type");
	topk = topk_of_ids();
	topk.columns = 1;
	assert_refused(&topk, "columns is less than top_k");
	topk = topk_of_ids();
	topk.row_stride = 1;
	assert_refused(&topk, "row_stride is less than columns");
	topk = topk_of_ids();
	/* With 8 bytes an id and ROWS rows some of these come around to a few bytes. */
	for (int shift = 0; shift < 4; shift++) {
		topk.row_stride = UINT64_MAX >> shift;
		assert_refused(&topk, "more than any memory holds");
		topk.row_stride = (UINT64_MAX >> shift) / ROWS + 1;
		assert_refused(&topk, "more than any memory holds");
		topk.row_stride = (UINT64_C(1) << (61 - shift)) + TOP_K;
		assert_refused(&topk, "more than any memory holds");
	}
	topk.rows = 0;
	topk.row_stride = UINT64_MAX;
	assert_refused(&topk, "more than any memory holds");
	topk = topk_of_ids();
	topk.ids = NULL;
	assert_refused(&topk, "ids is NULL");
	topk.ids = (const uint8_t *)ids + 4;
	assert_refused(&topk, "not aligned");
}

Test(producer_capture, a_layer_that_is_not_in_the_schema_is_named)
{
	struct r3ring_topk topk = topk_of_ids();

	cr_assert_eq(r3ring_capture(producer, 1, &topk, NULL), -ENOENT);
	cr_assert_not_null(strstr(r3ring_producer_error(producer), "layer 1"));
	cr_assert_eq(r3ring_capture(producer, -1, &topk, NULL), -ENOENT);
	cr_assert_eq(r3ring_capture(producer, 65536, &topk, NULL), -ENOENT);
	cr_assert_eq(r3ring_capture_layer(producer, LAYERS, &topk, NULL), -ENOENT);
}

Test(producer_capture, rows_are_captured_where_the_channel_was_opened_for_them)
{
	int32_t positions[ROWS], captured[ROWS];
	const uint8_t *payload;
	struct lane_step lane_step;

	for (uint32_t i = 0; i < ROWS; i++)
		positions[i] = (int32_t)(1000 + i);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	cr_assert_eq(r3ring_capture_rows(producer, positions, NULL, NULL), 0);
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	payload = fake_service_next(&service, NULL);
	memcpy(&lane_step, payload, sizeof(lane_step));
	memcpy(captured,
	       service.buffer + lane_step.extent_offset +
		       extent_positions_offset(&producer->geometry, ROWS),
	       sizeof(captured));
	cr_assert_arr_eq(captured, positions, sizeof(positions));
	cr_assert_eq(pages_slot(&service.pages, 0)->rows_step, 1);
	cr_assert_eq(r3ring_capture_rows(producer, NULL, NULL, NULL), -EINVAL);
}

Test(producer_capture, rows_are_refused_where_the_channel_has_no_room_for_them)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	r3ring_producer_close(producer);
	producer = NULL;
	fake_service_hang_up(&service);
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	cr_assert_eq(r3ring_capture_rows(producer, (const int32_t *)ids, NULL, NULL), -ENOTSUP);
}

/* ---- graphs ----------------------------------------------------------- */

static struct kernel_capture_args recorded;

/* As a graph does: keeps the launch, to be run at each replay. */
static int record_capture(struct device *device, void *stream,
			  const struct kernel_capture_args *args)
{
	(void)device;
	(void)stream;
	recorded = *args;
	return 0;
}

Test(producer_capture, failure_44_a_graph_that_outlives_close_captures_nothing)
{
	struct r3ring_topk topk = topk_of_ids();
	struct device_ops ops = device_host_ops;

	ops.launch_capture = record_capture;
	producer->ops = &ops;
	cr_assert_eq(r3ring_capture_layer(producer, 1, &topk, NULL), 0);
	producer->ops = &device_host_ops;

	for (uint64_t replay = 1; replay <= 3; replay++) {
		cr_assert_eq(r3ring_step_begin(producer, &step, NULL), (int64_t)replay);
		kernel_capture_host(&recorded);
		cr_assert_eq(r3ring_step_end(producer, NULL), 0);
		cr_assert_eq(bell((uint32_t)replay - 1, 1)->step, replay);
		cr_assert_eq(bell((uint32_t)replay - 1, 1)->rows, ROWS);
	}
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 4);
	r3ring_producer_close(producer);
	producer = NULL;
	/* Buffer and bells are unmapped: touching them would end this process. */
	kernel_capture_host(&recorded);
	cr_assert_eq(recorded.control->offset, EXTENT_NONE);
	cr_assert_eq(bell(3, 1)->rows, 0);
}

/* ---- system calls ----------------------------------------------------- */

#define MAP_SPANS 130u /* written by vector code, and some by none */

/* From now on any system call of this thread's but _exit ends the process. */
static int forbid_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(*filter),
		.filter = filter,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* Steps of a child that may make no system call; some find no room. Returns what
 * the child is to exit with. */
static int run_steps(struct r3ring_producer *child, uint64_t wanted_drops)
{
	static const uint64_t request[MAP_SPANS];
	static const uint32_t position[MAP_SPANS], rows[MAP_SPANS];
	struct r3ring_topk topk = topk_of_ids();
	struct r3ring_producer_stats stats;
	struct r3ring_step mapped = step;

	mapped.spans = MAP_SPANS;
	mapped.span_request = request;
	mapped.span_position = position;
	mapped.span_rows = rows;
	for (int i = 0; i < 1000; i++) {
		if (r3ring_step_begin(child, i % 10 ? &step : &mapped, NULL) < 1)
			return 2;
		for (uint32_t layer = 0; layer < LAYERS; layer++)
			if (r3ring_capture_layer(child, layer, &topk, NULL))
				return 3;
		if (r3ring_step_end(child, NULL))
			return 4;
	}
	r3ring_producer_get_stats(child, &stats);
	return stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL] == wanted_drops ? 0 : 5;
}

static void child_of_no_system_calls(struct r3ring_producer_options *options)
{
	struct r3ring_producer *child = NULL;
	uint64_t wanted_drops;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r3ring_producer_open(&child, options, NULL))
		_exit(6);
	/* Nothing is given back, so all steps but the first few find no room. */
	wanted_drops = 1000 - child->buffer.bytes / extent_bytes(&child->geometry, ROWS);
	if (forbid_system_calls())
		_exit(7);
	/* Not by _exit(): before a call that does not return AddressSanitizer makes
	 * a system call of its own. */
	syscall(SYS_exit_group, run_steps(child, wanted_drops));
}

static int run_child(struct r3ring_producer_options *options)
{
	int status;
	pid_t pid;

	fake_service_expect(&service);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		child_of_no_system_calls(options);
	cr_assert_eq(fake_service_await(&service), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

Test(producer_capture, failures_2_and_19_nothing_in_a_step_enters_the_kernel)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	int status;

	SKIP_WHERE_EMULATED("seccomp");
	r3ring_producer_close(producer);
	producer = NULL;
	fake_service_hang_up(&service);
	status = run_child(&options);
	cr_assert(WIFEXITED(status), "ended by signal %d: a system call", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
}

/* ---- a forked child --------------------------------------------------- */

static int all_calls_are_stale(void)
{
	struct r3ring_request request = {.size = sizeof(request), .id = "r"};
	const struct r3ring_eplb_record map = {0};
	struct r3ring_topk topk = topk_of_ids();
	const int results[] = {
		(int)r3ring_step_begin(producer, &step, NULL),
		r3ring_step_end(producer, NULL),
		r3ring_capture(producer, 3, &topk, NULL),
		r3ring_capture_layer(producer, 0, &topk, NULL),
		r3ring_capture_rows(producer, (const int32_t *)ids, NULL, NULL),
		(int)r3ring_request_begin(producer, &request),
		r3ring_request_end(producer, 1, R3RING_END_FINISHED, 0, 1),
		r3ring_step_spans(producer, 1, &step),
		r3ring_eplb(producer, &map, NULL),
		r3ring_key_copy(producer, 0, 0, NULL, 0),
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		if (results[i] != -ESTALE)
			return (int)i + 1;
	r3ring_producer_close(producer);
	return 0;
}

Test(producer_capture, every_call_in_a_forked_child_is_stale)
{
	int status;
	pid_t pid;

	SKIP_WHERE_EMULATED("MADV_WIPEONFORK");
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(all_calls_are_stale());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "call %d", WEXITSTATUS(status));
	cr_assert_eq(service.pages.words->closing, 0, "the child's close changes nothing");
	cr_assert_eq(r3ring_step_end(producer, NULL), 0, "the parent goes on");
}
