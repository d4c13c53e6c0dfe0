/* SPDX-License-Identifier: Apache-2.0 */
/* A model's routes through three processes. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/model_run.h"
#include "tests/demo/check.h"
#include "tests/demo/receive.h"
#include "tests/support/fakecuda/fakecuda.h"

void model_run_start(struct model_run *run)
{
	machine_make();
	snprintf(run->instance, sizeof(run->instance), "model-%d", getpid());
	snprintf(run->channel, sizeof(run->channel), "%s/0", run->instance);
	test_daemon_start(&run->daemon, NULL);
}

void model_run_serve(struct model_run *run, const char *model, const char *const options[2])
{
	const char *const args[] = {
		"produce", "--instance", run->instance, "--model",         model,      "--text",
		"LICENSE", "--device",   "cuda",        "--requests",      "2",        "--batch",
		"16",      "--hidden",   "32",          "--prefill-chunk", "16",       "--seed",
		"20",      "--rate",     "200",         options[0],        options[1], NULL,
	};

	command_start_prepared(&run->produce, run->prepare, run->prepare_ctx, "r3ring",
			       run->daemon.dir, args);
}

static bool producer_gone(void *produce)
{
	return command_ended(produce);
}

/* As the command line above has it. */
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

static void compare(const struct received *received, const struct expected *expected)
{
	struct findings findings = {0};
	struct fakecuda_work work;

	cr_assert_eq(check(&findings, received, expected), 0);
	cr_expect(findings_good(&findings), "%lu mismatches, %lu absent: %s", findings.mismatches,
		  findings.absent, findings.first_wrong);
	cr_expect_gt(findings.ids_compared, 10000);
	if (!machine_is_real()) {
		work = fakecuda_work();
		cr_expect_gt(work.kernels, findings.steps * expected->layers);
		cr_expect_gt(work.copied_bytes, findings.id_bytes);
	}
	findings_free(&findings);
}

void model_run_check(struct model_run *run, const char *model)
{
	const struct demo_plan plan = plan_of(model);
	struct received received = {0};
	struct expected expected = {0};
	struct r3ring_error err = {0};
	int ret = receive(&received, run->daemon.dir, run->channel, producer_gone, &run->produce,
			  &err);

	cr_assert_eq(command_wait(&run->produce), 0, "%s\n%s", run->produce.err, run->daemon.log);
	cr_assert_eq(ret, 0, "%s\n%s", err.text, run->daemon.log);
	cr_assert_eq(expected_compute(&expected, &plan, &err), 0, "%s", err.text);
	compare(&received, &expected);
	cr_assert_eq(test_daemon_stop(&run->daemon), 0, "%s", run->daemon.log);
	received_free(&received);
	expected_free(&expected);
}

void model_run_finish(struct model_run *run)
{
	command_free(&run->produce);
	if (run->daemon.dir[0])
		test_daemon_close(&run->daemon);
	machine_check();
}
