/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines that were given one instance's name, a rank each and nothing else, and that use the
 * same id for a request: the service tells of one what that engine ran, as it tells of it where
 * the engine ran alone.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>

#include "tests/system/serve_stage.h"

#define ENGINES 2u
#define WHICH "/v1/signature?request=req-0000"

static struct command engine[ENGINES];

static void stop(void)
{
	for (unsigned int i = 0; i < ENGINES; i++)
		command_free(&engine[i]);
	serve_stage_stop();
}

TestSuite(serve_twins, .init = serve_stage_start, .fini = stop, .timeout = 300);

static void start_engine(const char *instance, unsigned int i)
{
	const char rank[] = {(char)('0' + i), '\0'}, seed[] = {(char)('1' + i), '\0'};

	command_start(&engine[i], stage.tool.daemon.dir,
		      ARGS("produce", "--instance", instance, "--rank", rank, "--seed", seed,
			   "--requests", "1", "--model", "gpt-oss-20b", "--text", "LICENSE",
			   "--rate", "100"));
}

static bool is_over(const json_t *answer, const void *others)
{
	return json_is_true(at(answer, "ended", NULL)) &&
	       json_integer_value(at(answer, "same_id", NULL)) == *(const json_int_t *)others;
}

/* What is told once engines [first, end) have run a request each. */
static json_t *told_of(const char *name, unsigned int first, unsigned int end)
{
	const json_int_t others = (json_int_t)(end - first) - 1;
	char instance[64];
	json_t *told;

	snprintf(instance, sizeof(instance), "%s-%s", serve_stage_instance(), name);
	command_free(&stage.server);
	command_start(&stage.server, stage.tool.daemon.dir,
		      ARGS("serve", "--instance", instance, "--unix", stage.path));
	cr_assert(command_tells(&stage.server, "listening on"));
	for (unsigned int i = first; i < end; i++)
		start_engine(instance, i);
	cr_assert(becomes(WHICH, is_over, &others), "%s", name);
	told = ask("GET", WHICH, NULL).json;
	cr_expect_eq(json_integer_value(at(told, "missing_rows", NULL)), 0, "%s", name);
	for (unsigned int i = first; i < end; i++) {
		cr_assert_eq(command_wait(&engine[i]), 0);
		command_free(&engine[i]);
	}
	return told;
}

static bool same(const json_t *told, const json_t *alone)
{
	return json_equal(at(told, "layers", NULL), at(alone, "layers", NULL)) &&
	       json_equal(at(told, "prefill_rows", NULL), at(alone, "prefill_rows", NULL)) &&
	       json_equal(at(told, "decode_rows", NULL), at(alone, "decode_rows", NULL));
}

Test(serve_twins, a_signature_is_of_one_of_the_requests_that_ranks_ran_under_an_id)
{
	json_t *both = told_of("both", 0, 2), *first = told_of("first", 0, 1),
	       *second = told_of("second", 1, 2);

	cr_expect_not(same(first, second), "then nothing is seen of it");
	cr_expect(same(both, first) || same(both, second));
	json_decref(both);
	json_decref(first);
	json_decref(second);
}

Test(serve_twins, of_engines_that_use_the_same_id_the_one_that_is_named_tells_its_own)
{
	const json_int_t none = 0;
	char instance[ENGINES][160], path[512];
	json_t *alone[ENGINES] = {told_of("former", 0, 1), told_of("latter", 1, 2)}, *told;

	for (unsigned int i = 0; i < ENGINES; i++)
		snprintf(instance[i], sizeof(*instance), "%s-named%u", serve_stage_instance(), i);
	command_free(&stage.server);
	command_start(&stage.server, stage.tool.daemon.dir,
		      ARGS("serve", "--instance", instance[0], "--instance", instance[1], "--unix",
			   stage.path));
	cr_assert(command_tells(&stage.server, "listening on"));
	for (unsigned int i = 0; i < ENGINES; i++)
		start_engine(instance[i], i);
	for (unsigned int i = 0; i < ENGINES; i++) {
		snprintf(path, sizeof(path), WHICH "&instance=%s", instance[i]);
		cr_assert(becomes(path, is_over, &none), "%s", path);
		told = ask("GET", path, NULL).json;
		cr_expect(same(told, alone[i]), "%s", path);
		json_decref(told);
		json_decref(alone[i]);
	}
	cr_expect_eq(ask("GET", WHICH "&instance=other", NULL).status, 404);
}
