/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of its channels. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/bind.h>

#include "channel/namespaces.h"
#include "channel/socket.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"

static struct test_daemon daemon_a;
static struct engine engine_a, engine_b;
static struct listener listener_a;
static json_t *done; /* the daemon's own object */

static void start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, NULL);
	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, "told"), 16,
				 &err),
		     0, "%s", err.text);
}

TestSuite(daemon_status, .init = start);

static json_t *receive_object(int fd, uint16_t *type)
{
	static struct socket_inbox inbox;

	cr_assert_eq(socket_receive(fd, &inbox, 5000), 0);
	*type = inbox.u.head.type;
	return json_loadb((const char *)inbox.u.bytes + sizeof(inbox.u.head),
			  inbox.len - sizeof(inbox.u.head), 0, NULL);
}

/* The object of the engine's channel @base, NULL when there is none; also sets `done`. */
static json_t *ask(const char *base)
{
	char channel[CHANNEL_NAME_TEXT];
	struct r3ring_message message = {.type = R3RING_MSG_GET_STATUS};
	int fd = socket_connect(daemon_a.dir, NULL);
	json_t *found = NULL, *object;
	uint16_t type;

	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, base));
	cr_assert_eq(socket_send(fd, &message, sizeof(message), NULL, 0, NULL, 0), 0);
	while ((object = receive_object(fd, &type)) && type == R3RING_MSG_STATUS_CHANNEL) {
		if (strcmp(json_string_value(json_object_get(object, "channel")), channel) == 0)
			found = object;
		else
			json_decref(object);
	}
	cr_assert_eq(type, R3RING_MSG_STATUS_DONE);
	json_decref(done);
	done = object;
	close(fd);
	return found;
}

static json_int_t number(const json_t *object, const char *key)
{
	cr_assert(json_is_integer(json_object_get(object, key)), "%s", key);
	return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	cr_assert(json_is_string(json_object_get(object, key)), "%s", key);
	return json_string_value(json_object_get(object, key));
}

static void run_steps(uint64_t count)
{
	listener_open(&listener_a, daemon_a.dir, engine_channel(daemon_a.dir, "told"));
	for (uint64_t i = 1; i <= count; i++) {
		engine_step(&engine_a, 0, 10);
		cr_assert(listener_read_until(&listener_a, listener_has_step, i));
	}
	listener_close(&listener_a);
}

/* The numbers of the newest step come when it is worked off. */
static json_t *ask_after(json_int_t steps)
{
	json_t *object;

	for (int tries = 0; tries < 1000; tries++) {
		object = ask("told");
		if (number(object, "steps_complete") + number(object, "steps_partial") >= steps)
			return object;
		json_decref(object);
	}
	cr_assert_fail("the steps were never counted");
	return NULL;
}

Test(daemon_status, it_tells_of_itself)
{
	json_t *object = ask("told");

	cr_expect_eq(number(done, "pid"), daemon_a.pid);
	cr_expect_eq(number(done, "pid_namespace"), (json_int_t)namespaces_of_this_process().pid);
	cr_expect_str_eq(text(done, "version"), R3RING_VERSION);
	cr_expect_str_eq(text(done, "loop"),
			 strstr(daemon_a.log, "runs on epoll") ? "epoll" : "io_uring");
	cr_expect_eq(number(done, "channels"), 1);
	cr_expect_geq(number(done, "uptime_s"), 0);
	cr_expect_eq(number(json_object_get(done, "limits"), "max_channels"), 64);
	json_decref(object);
	engine_close(&engine_a);
}

/* Of all records, as a reader gets them. */
static json_int_t bytes_read(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = engine_channel(daemon_a.dir, "told"),
	};
	struct r3ring_reader *reader;
	struct r3ring_view view;
	json_int_t bytes = 0;

	cr_assert_eq(r3ring_reader_open(&reader, &options, NULL), 0);
	while (r3ring_reader_next(reader, &view) == 1)
		bytes += view.len;
	r3ring_reader_close(reader);
	return bytes;
}

Test(daemon_status, it_counts_what_it_delivered)
{
	json_t *object, *ring;

	run_steps(3);
	object = ask_after(3);
	cr_expect_str_eq(text(object, "state"), "live");
	cr_expect_str_eq(text(object, "model"), "engine");
	cr_expect_str_eq(text(object, "device"), "host");
	cr_expect_str_eq(text(object, "id_space"), "logical");
	cr_expect_eq(number(object, "generation"), 1);
	cr_expect_eq(number(object, "producer_pid"), getpid());
	cr_expect_eq(number(object, "steps"), 3);
	cr_expect_eq(number(object, "steps_complete"), 3);
	cr_expect_eq(number(object, "rows"), 30);
	cr_expect_eq(number(object, "layer_records"), 3 * ENGINE_LAYERS);
	cr_expect_eq(number(object, "bytes"), bytes_read());
	cr_expect_eq(json_object_size(json_object_get(object, "lost")), 0);
	ring = json_object_get(object, "ring");
	cr_expect_eq(number(ring, "arena"), 16 << 20);
	/* SCHEMA, then STEP, the layers and STEP_END each. */
	cr_expect_eq(number(ring, "tail_seq"), 1 + 3 * (2 + ENGINE_LAYERS));
	json_decref(object);
	engine_close(&engine_a);
}

Test(daemon_status, failure_05_an_id_that_is_no_expert_is_counted_and_flags_the_channel)
{
	const int32_t ids[ENGINE_TOP_K] = {0, 1, ENGINE_EXPERTS, -1, 3, 100000};
	const struct r3ring_topk topk = {.ids = ids,
					 .type = R3RING_INT32,
					 .rows = 1,
					 .columns = ENGINE_TOP_K,
					 .row_stride = ENGINE_TOP_K};
	json_t *object = ask("told");

	cr_expect(json_is_false(json_object_get(object, "flagged")));
	json_decref(object);
	engine_begin(&engine_a, 0, 1);
	r3ring_capture(engine_a.producer, ENGINE_FIRST_LAYER, &topk, NULL);
	engine_end(&engine_a);
	object = ask_after(1);
	cr_expect_eq(number(object, "ids_out_of_range"), 2);
	cr_expect_eq(number(object, "ids_missing"), 1);
	cr_expect(json_is_true(json_object_get(object, "flagged")));
	json_decref(object);
	engine_close(&engine_a);
}

static void bind_layers(struct r3ring_capture_source sources[ENGINE_LAYERS])
{
	struct r3ring_module modules[ENGINE_LAYERS] = {0};
	char prefixes[ENGINE_LAYERS][32];
	struct r3ring_error err;

	for (uint32_t i = 0; i < ENGINE_LAYERS; i++) {
		snprintf(prefixes[i], sizeof(prefixes[i]), "model.layers.%u.mlp",
			 ENGINE_FIRST_LAYER + i);
		sources[i] =
			(struct r3ring_capture_source){.layer_id = ENGINE_FIRST_LAYER + (int)i};
		modules[i] = (struct r3ring_module){.prefix = prefixes[i],
						    .class_name = "Moe",
						    .kind = R3RING_MODULE_CAPTURE_SOURCE,
						    .source = &sources[i]};
	}
	cr_assert_eq(r3ring_bind(engine_a.producer, modules, ENGINE_LAYERS, &err), ENGINE_LAYERS,
		     "%s", err.text);
}

Test(daemon_status, failure_23_it_says_what_is_bound_and_since_when)
{
	struct r3ring_capture_source sources[ENGINE_LAYERS];
	json_t *object = ask("told");

	cr_expect_eq(json_array_size(json_object_get(object, "bound_layers")), 0);
	cr_expect_eq(json_array_size(json_object_get(object, "unbound_layers")), ENGINE_LAYERS);
	cr_expect(json_is_null(json_object_get(object, "bound_since")));
	json_decref(object);
	bind_layers(sources);
	run_steps(1);
	object = ask_after(1);
	cr_expect_eq(json_array_size(json_object_get(object, "bound_layers")), ENGINE_LAYERS);
	cr_expect_eq(json_integer_value(json_array_get(json_object_get(object, "bound_layers"), 0)),
		     ENGINE_FIRST_LAYER);
	cr_expect_eq(json_array_size(json_object_get(object, "unbound_layers")), 0);
	cr_expect(json_is_string(json_object_get(object, "bound_since")));
	json_decref(object);
	engine_close(&engine_a);
}

Test(daemon_status, layers_that_come_by_call_with_nothing_bound_are_not_said_to_be_missing)
{
	json_t *object = ask("told");

	json_decref(object);
	run_steps(1);
	object = ask_after(1);
	cr_expect_eq(json_array_size(json_object_get(object, "bound_layers")), 0);
	cr_expect_eq(json_array_size(json_object_get(object, "called_layers")), ENGINE_LAYERS);
	cr_expect_eq(json_array_size(json_object_get(object, "unbound_layers")), 0);
	json_decref(object);
	engine_close(&engine_a);
}

Test(daemon_status, a_closed_channel_is_ended_and_its_successor_takes_its_place)
{
	struct r3ring_error err;
	json_t *object;

	engine_close(&engine_a);
	cr_expect(test_daemon_said(&daemon_a, ": drained"));
	object = ask("told");
	cr_expect_str_eq(text(object, "state"), "ended");
	json_decref(object);
	cr_assert_eq(engine_open(&engine_b, daemon_a.dir, engine_instance(daemon_a.dir, "told"), 16,
				 &err),
		     0);
	object = ask("told");
	cr_expect_str_eq(text(object, "state"), "live");
	cr_expect_eq(number(object, "generation"), 2);
	cr_expect_eq(number(done, "channels"), 1);
	json_decref(object);
	engine_close(&engine_b);
}

Test(daemon_status, fifty_channels_are_told_to_a_peer_that_reads_late)
{
	struct r3ring_message message = {.type = R3RING_MSG_GET_STATUS};
	static struct engine engines[50];
	struct r3ring_error err;
	unsigned int channels = 0;
	char instance[32];
	uint16_t type;
	int fd;

	engine_close(&engine_a);
	test_daemon_close(&daemon_a);
	test_daemon_start(&daemon_a, (const char *[]){"--ring-size", "256K", NULL});
	for (unsigned int i = 0; i < 50; i++) {
		snprintf(instance, sizeof(instance), "many-%u", i);
		cr_assert_eq(engine_open(&engines[i], daemon_a.dir,
					 engine_instance(daemon_a.dir, instance), 1, &err),
			     0, "%s", err.text);
	}
	fd = socket_connect(daemon_a.dir, NULL);
	for (int asked = 0; asked < 10; asked++)
		cr_assert_eq(socket_send(fd, &message, sizeof(message), NULL, 0, NULL, 0), 0);
	/* The daemon serves others although this one has not read a word. */
	json_decref(ask("many-7"));
	for (int answered = 0; answered < 10;) {
		json_decref(receive_object(fd, &type));
		channels += type == R3RING_MSG_STATUS_CHANNEL;
		answered += type == R3RING_MSG_STATUS_DONE;
	}
	cr_expect_eq(channels, 500);
	close(fd);
	for (unsigned int i = 0; i < 50; i++)
		engine_close(&engines[i]);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
}
