/* SPDX-License-Identifier: Apache-2.0 */
/* A model's routes, and a recording's, from the engine to a reader, against a reference. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/model_run.h"
#include "tests/support/attribution.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/recording.h"

static struct model_run run;

static void finish(void)
{
	model_run_finish(&run);
}

TestSuite(cuda_reference, .fini = finish, .timeout = 100);

/* ---- models ------------------------------------------------------------- */

/* @options: two more words of the command line, or one. */
static void run_model(const char *model, const char *const options[2])
{
	model_run_start(&run);
	model_run_serve(&run, model, options);
	model_run_check(&run, model);
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
	if (!machine_is_real())
		cr_expect_gt(fakecuda_work().stream_waits, 1000);
}

/* ---- a recording -------------------------------------------------------- */

/* Rows of steps that found no room, on a machine that is busy with other things. */
static uint64_t dropped_rows(const char *summary)
{
	json_t *object = json_loads(summary, 0, NULL), *cause;
	const char *name;
	uint64_t rows = 0;

	cr_assert(object, "%s", summary);
	json_object_foreach (json_object_get(object, "dropped"), name, cause)
		rows += (uint64_t)json_integer_value(json_object_get(cause, "rows"));
	json_decref(object);
	return rows;
}

MACHINE_TEST(cuda_reference, every_id_of_a_recording_reaches_its_request_and_position)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options), .runtime_dir = run.daemon.dir, .channel = run.channel};
	struct r3ring_reader *reader = NULL;
	struct attribution found;
	struct recording recording;
	struct r3ring_error err = {0};
	uint64_t dropped;

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	model_run_start(&run);
	recording_read(&recording);
	attribution_init(&found, &recording);
	command_start(&run.produce, run.daemon.dir,
		      (const char *[]){"produce", "--instance", run.instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250",
				       "--device", "cuda", "--json", NULL});
	cr_assert(test_daemon_said(&run.daemon, "generation 1"), "%s", run.daemon.log);
	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	cr_assert(attribution_take_until(&found, reader, attribution_has_ends,
					 recording.request_count));
	r3ring_reader_close(reader);
	cr_assert_eq(command_wait(&run.produce), 0, "%s", run.produce.err);
	dropped = dropped_rows(run.produce.out) * recording.layers;
	cr_expect_eq(attribution_not_once(&found), dropped);
	cr_expect_eq(found.right, (uint64_t)recording.rows * recording.layers - dropped);
	cr_expect_eq(found.wrong, 0);
	cr_expect_eq(found.unowned, 0);
	cr_expect_eq(found.steps_partial, 0);
	cr_assert_eq(test_daemon_stop(&run.daemon), 0, "%s", run.daemon.log);
	attribution_free(&found);
	recording_free(&recording);
}
