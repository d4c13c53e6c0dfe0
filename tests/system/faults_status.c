/* SPDX-License-Identifier: Apache-2.0 */
/* What is bound, and since when: while an engine lives and when it has ended. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <r3ring/bind.h>

#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define BASE "faults-status"

static struct test_daemon daemon_a;
static struct engine engine_a;
static struct r3ring_capture_source sources[ENGINE_LAYERS];
static struct r3ring_module modules[ENGINE_LAYERS];
static char prefixes[ENGINE_LAYERS][32];
static char channel[R3RING_INSTANCE_MAX + 3];

static void start(void)
{
	struct r3ring_error err = {0};
	const char *instance;

	test_daemon_start(&daemon_a, NULL);
	instance = engine_instance(daemon_a.dir, BASE);
	snprintf(channel, sizeof(channel), "%s/0", instance);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, 16, &err), 0, "%s", err.text);
}

static void finish(void)
{
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(engine_instance(daemon_a.dir, BASE)), 0);
}

TestSuite(faults_status, .init = start, .fini = finish, .timeout = 120);

static void bind_all(void)
{
	struct r3ring_error err = {0};

	for (uint32_t i = 0; i < ENGINE_LAYERS; i++) {
		int layer = ENGINE_FIRST_LAYER + (int)i;

		sources[i].layer_id = layer;
		snprintf(prefixes[i], sizeof(prefixes[i]), "model.layers.%d.experts", layer);
		modules[i] = (struct r3ring_module){
			.prefix = prefixes[i],
			.class_name = "Experts",
			.kind = R3RING_MODULE_CAPTURE_SOURCE,
			.source = &sources[i],
		};
	}
	cr_assert_eq(r3ring_bind(engine_a.producer, modules, ENGINE_LAYERS, &err), ENGINE_LAYERS,
		     "%s", err.text);
}

static bool has_bound(const json_t *object, long count)
{
	return (long)json_array_size(json_object_get(object, "bound_layers")) == count;
}

/* All layers by their model numbers, in @bound or else in the other list. */
static void expect_layers(const json_t *object, bool bound)
{
	const json_t *full = json_object_get(object, bound ? "bound_layers" : "unbound_layers");
	const json_t *none = json_object_get(object, bound ? "unbound_layers" : "bound_layers");

	cr_expect_eq(json_array_size(none), 0);
	cr_assert_eq(json_array_size(full), ENGINE_LAYERS);
	for (uint32_t i = 0; i < ENGINE_LAYERS; i++)
		cr_expect_eq(json_integer_value(json_array_get(full, i)), ENGINE_FIRST_LAYER + i);
	cr_expect_eq(json_is_string(json_object_get(object, "bound_since")), bound);
}

/* What the table for people says of it. */
static void expect_table(const char *text)
{
	struct command tool;

	cr_expect_eq(command_run(&tool, daemon_a.dir, (const char *[]){"status", NULL}), 0);
	cr_expect(strstr(tool.out, text), "\"%s\" is not in:\n%s", text, tool.out);
	command_free(&tool);
}

Test(faults_status, failure_23_an_ended_channel_goes_on_saying_what_was_bound_and_since_when)
{
	json_t *live, *ended;

	bind_all();
	cr_assert(status_becomes(daemon_a.dir, channel, has_bound, ENGINE_LAYERS));
	live = channel_status(daemon_a.dir, channel);
	expect_layers(live, true);
	engine_close(&engine_a);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	ended = channel_status(daemon_a.dir, channel);
	expect_layers(ended, true);
	cr_expect(json_equal(json_object_get(live, "bound_since"),
			     json_object_get(ended, "bound_since")));
	expect_table("bound: layers 3-7 since ");
	json_decref(live);
	json_decref(ended);
}

Test(faults_status, failure_23_a_channel_that_nobody_bound_names_its_layers_live_and_ended)
{
	json_t *object = channel_status(daemon_a.dir, channel);

	expect_layers(object, false);
	json_decref(object);
	engine_close(&engine_a);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	object = channel_status(daemon_a.dir, channel);
	expect_layers(object, false);
	expect_table("bound: NO LAYER: nothing is captured; NOT BOUND: layers 3-7");
	json_decref(object);
}

Test(faults_status, failure_23_an_unbinding_is_said_and_stays_said)
{
	json_t *object;

	bind_all();
	r3ring_unbind(engine_a.producer);
	engine_close(&engine_a);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_ended, 0));
	object = channel_status(daemon_a.dir, channel);
	expect_layers(object, false);
	json_decref(object);
}

Test(faults_status, failure_23_the_next_daemon_knows_what_is_bound_and_since_when)
{
	json_t *before, *after;

	bind_all();
	cr_assert(status_becomes(daemon_a.dir, channel, has_bound, ENGINE_LAYERS));
	before = channel_status(daemon_a.dir, channel);
	test_daemon_kill(&daemon_a);
	test_daemon_restart(&daemon_a, NULL);
	cr_assert(test_daemon_said(&daemon_a, "(came back)"));
	after = channel_status(daemon_a.dir, channel);
	expect_layers(after, true);
	cr_expect(json_equal(json_object_get(before, "bound_since"),
			     json_object_get(after, "bound_since")));
	json_decref(before);
	json_decref(after);
	engine_close(&engine_a);
}
