/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `r3ring produce --device cuda`, r3ringd and a reader, three processes of a fake
 * machine: a model's routes over a real text, each id compared with a reference that
 * shares nothing with the producer (tests/support/slow_moe.h); and a recording.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fixture.h"
#include "tests/demo/check.h"
#include "tests/demo/receive.h"
#include "tests/support/attribution.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/recording.h"

static struct test_daemon daemon_a;
static struct command produce;
static char instance[32], channel[40];

static void finish(void)
{
	command_free(&produce);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
	machine_check();
}

TestSuite(cuda_reference, .fini = finish, .timeout = 100);

static void start(void)
{
	machine_make();
	snprintf(instance, sizeof(instance), "reference-%d", getpid());
	snprintf(channel, sizeof(channel), "%s/0", instance);
	test_daemon_start(&daemon_a, NULL);
}

static bool producer_gone(void *unused)
{
	(void)unused;
	return command_ended(&produce);
}

/* ---- models ------------------------------------------------------------- */

static struct demo_plan plan_of(const char *model)
{
	return (struct demo_plan){
		.model = model,
		.text_path = "LICENSE",
		.requests = 2,
		.batch_rows = 16,
		.prefill_chunk = 16,
		.hidden = 32,
		.steps_per_second = 200,
		.seed = 20,
	};
}

/* @options: two more words of the command line, or one. */
static void run_model(const char *model, const char *const options[2])
{
	struct demo_plan plan = plan_of(model);
	struct received received = {0};
	struct expected expected = {0};
	struct findings findings = {0};
	struct r3ring_error err = {0};

	start();
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance,   "--model",
				       model,     "--text",     "LICENSE",  "--device",
				       "cuda",    "--requests", "2",        "--batch",
				       "16",      "--hidden",   "32",       "--prefill-chunk",
				       "16",      "--seed",     "20",       "--rate",
				       "200",     options[0],   options[1], NULL});
	cr_assert_eq(receive(&received, daemon_a.dir, channel, producer_gone, NULL, &err), 0,
		     "%s\n%s", err.text, daemon_a.log);
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(expected_compute(&expected, &plan, &err), 0, "%s", err.text);
	cr_assert_eq(check(&findings, &received, &expected), 0);
	cr_expect(findings_good(&findings), "%lu mismatches, %lu absent: %s", findings.mismatches,
		  findings.absent, findings.first_wrong);
	cr_expect_gt(findings.ids_compared, 10000);
	cr_expect_gt(fakecuda_work().kernels, findings.steps * expected.layers);
	cr_expect_gt(fakecuda_work().copied_bytes, findings.id_bytes);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0, "%s", daemon_a.log);
	findings_free(&findings);
	received_free(&received);
	expected_free(&expected);
}

MACHINE_TEST(cuda_reference, every_route_of_deepseek_v4_is_the_references)
{
	run_model("deepseek-v4-flash", (const char *const[2]){"--buffer-export", "ipc"});
}

MACHINE_TEST(cuda_reference, every_route_of_kimi_k3_is_the_references)
{
	run_model("kimi-k3", (const char *const[2]){"--buffer-export", "fd"});
}

MACHINE_TEST(cuda_reference, every_route_is_the_references_with_the_order_by_event)
{
	run_model("deepseek-v4-flash", (const char *const[2]){"--order", "event"});
}

MACHINE_TEST(cuda_reference, every_route_is_the_references_beside_the_models_stream)
{
	run_model("deepseek-v4-flash", (const char *const[2]){"--side-stream"});
	cr_expect_gt(fakecuda_work().stream_waits, 1000);
}

/* ---- a recording -------------------------------------------------------- */

MACHINE_TEST(cuda_reference, every_id_of_a_recording_reaches_its_request_and_position)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options), .runtime_dir = daemon_a.dir, .channel = channel};
	struct r3ring_reader *reader = NULL;
	struct attribution found;
	struct recording recording;
	struct r3ring_error err = {0};

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	start();
	recording_read(&recording);
	attribution_init(&found, &recording);
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250",
				       "--device", "cuda", NULL});
	cr_assert(test_daemon_said(&daemon_a, "generation 1"), "%s", daemon_a.log);
	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	cr_assert(attribution_take_until(&found, reader, attribution_has_ends,
					 recording.request_count));
	cr_expect_eq(attribution_not_once(&found), 0);
	cr_expect_eq(found.right, (uint64_t)recording.rows * recording.layers);
	cr_expect_eq(found.wrong, 0);
	cr_expect_eq(found.unowned, 0);
	cr_expect_eq(found.steps_partial, 0);
	r3ring_reader_close(reader);
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(test_daemon_stop(&daemon_a), 0, "%s", daemon_a.log);
	attribution_free(&found);
	recording_free(&recording);
}
