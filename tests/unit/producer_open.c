/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a producer: refusals of options, the handshake, opening again. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <r3ring/producer.h>

#include "tests/support/fake_service.h"

static struct fake_service service;
static struct r3ring_producer *producer;

static void start(void)
{
	cr_assert_eq(fake_service_start(&service), 0);
}

static void stop(void)
{
	fake_service_stop(&service);
}

TestSuite(producer_open, .init = start, .fini = stop, .timeout = 30);

static void assert_refused(const struct r3ring_producer_options *options, const char *says)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_producer_open(&producer, options, &err), -EINVAL, "%s", err.text);
	cr_assert_eq(err.code, -EINVAL);
	cr_assert_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
	cr_assert_null(producer, "the handle must stay untouched");
}

Test(producer_open, options_of_another_size_are_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.size = 8;
	assert_refused(&options, "size of the options is 8");
}

Test(producer_open, no_options_and_no_place_for_the_handle_are_refused)
{
	const struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_error err = {0};

	assert_refused(NULL, "options is NULL");
	cr_expect_eq(r3ring_producer_open(NULL, &options, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "producer is NULL"), "%s", err.text);
	cr_expect_eq(r3ring_producer_open(&producer, NULL, NULL), -EINVAL);
}

Test(producer_open, a_bad_instance_name_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.instance = "a/b";
	assert_refused(&options, "instance name \"a/b\": byte 2");
	options.instance = NULL;
	assert_refused(&options, "instance name is missing");
}

Test(producer_open, a_draft_mark_beyond_one_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.draft = 2;
	assert_refused(&options, "draft is 2; 0 to 1");
}

Test(producer_open, a_model_name_missing_or_too_long_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	char name[R3RING_MODEL_NAME_MAX + 2];

	options.model = NULL;
	assert_refused(&options, "model name is missing");
	memset(name, 'm', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	options.model = name;
	assert_refused(&options, "1 to 63 bytes");
}

Test(producer_open, experts_out_of_bounds_are_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.experts = 0;
	assert_refused(&options, "experts is 0; 1 to 65535");
	options.experts = 65536;
	assert_refused(&options, "experts is 65536; 1 to 65535");
}

Test(producer_open, a_top_k_out_of_bounds_or_above_the_experts_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.top_k = 0;
	assert_refused(&options, "top_k is 0; 1 to 256");
	options.top_k = 257;
	assert_refused(&options, "top_k is 257; 1 to 256");
	options.top_k = 17;
	assert_refused(&options, "top_k is 17, but there are only 16 experts");
}

Test(producer_open, max_rows_out_of_bounds_are_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.max_rows = 0;
	assert_refused(&options, "max_rows is 0; 1 to 1048576");
	options.max_rows = R3RING_ROWS_MAX + 1;
	assert_refused(&options, "max_rows is 1048577");
}

Test(producer_open, failure_14_a_model_without_moe_layers_is_a_clear_error)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.layer_count = 0;
	assert_refused(&options, "model \"small\" has no MoE layers");
}

Test(producer_open, a_layer_table_that_is_too_long_or_missing_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.layer_count = R3RING_LAYERS_MAX + 1;
	assert_refused(&options, "layer_count is 1025; 1 to 1024");
	options.layer_count = 4;
	options.layers = NULL;
	assert_refused(&options, "layers is NULL");
}

Test(producer_open, a_layer_with_a_bad_number_or_kind_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_layer_entry layers[2] = {{.layer_id = 0}, {.layer_id = -1}};

	options.layers = layers;
	options.layer_count = 2;
	assert_refused(&options, "layers[1].layer_id is -1");
	layers[1].layer_id = 65536;
	assert_refused(&options, "layers[1].layer_id is 65536");
	layers[1].layer_id = 1;
	layers[1].kind = 3;
	assert_refused(&options, "layers[1].kind is 3");
}

Test(producer_open, failure_35_one_number_may_be_a_moe_and_an_mtp_layer_but_not_twice_the_same)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_layer_entry layers[2] = {{.layer_id = 7}, {.layer_id = 7}};

	options.layers = layers;
	options.layer_count = 2;
	assert_refused(&options, "layers[0] and layers[1] are both layer 7");
	layers[1].kind = R3RING_LAYER_HASH;
	assert_refused(&options, "both layer 7 (moe, hash)");
	layers[1].kind = R3RING_LAYER_MTP;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	cr_assert_eq(r3ring_layer_index(producer, 7, R3RING_LAYER_MOE), 0);
	cr_assert_eq(r3ring_layer_index(producer, 7, R3RING_LAYER_MTP), 1);
	cr_assert_eq(r3ring_layer_index(producer, 7, R3RING_LAYER_HASH), -ENOENT);
	r3ring_producer_close(producer);
}

Test(producer_open, a_coordinate_beyond_its_size_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.coordinates.tp = (struct r3ring_coordinate){.index = 2, .size = 2};
	assert_refused(&options, "coordinates.tp.index is 2; 0 to 1");
	options.coordinates.tp = (struct r3ring_coordinate){.index = 1, .size = 0};
	assert_refused(&options, "coordinates.tp.index is 1; 0 to 0");
}

Test(producer_open, other_numbers_out_of_bounds_are_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.replica = 65536;
	assert_refused(&options, "replica is 65536");
	options = fake_service_options(&service);
	options.capture_rows = 2;
	assert_refused(&options, "capture_rows is 2");
	options = fake_service_options(&service);
	options.queue_bytes = 65536;
	assert_refused(&options, "queue_bytes is 65536");
	options.queue_bytes = 3 << 20;
	assert_refused(&options, "queue_bytes is 3145728");
}

Test(producer_open, a_buffer_smaller_than_the_largest_step_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.buffer_bytes = 64;
	assert_refused(&options, "buffer_bytes is 64; a step of max_rows 64 needs");
	options.buffer_bytes = UINT64_MAX;
	assert_refused(&options, "buffer_bytes is 18446744073709551615; at most 281474976710656");
}

Test(producer_open, what_is_reserved_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.reserved = 7;
	assert_refused(&options, "reserved is 7; 0 to 0");
}

Test(producer_open, what_is_asked_of_a_gpu_is_one_of_its_choices)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.buffer_export = "pigeon";
	assert_refused(&options, "buffer_export is \"pigeon\"; \"auto\", \"ipc\" and \"fd\"");
	options.buffer_export = "fd";
	options.order = "whistle";
	assert_refused(&options, "order is \"whistle\"; \"bell\" and \"event\"");
	options.order = "event";
	options.side_stream = 2;
	assert_refused(&options, "side_stream is 2");
}

Test(producer_open, an_unknown_device_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.device = "abacus";
	assert_refused(&options, "abacus");
}

Test(producer_open, no_daemon_names_the_place)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_error err = {0};

	options.runtime_dir = "/tmp/r3ring-nowhere";
	cr_assert_eq(r3ring_producer_open(&producer, &options, &err), -ECONNREFUSED);
	cr_assert_not_null(strstr(err.text, "/tmp/r3ring-nowhere/r3ringd.sock"));
	cr_assert_null(producer);
}

Test(producer_open, a_refusal_by_the_daemon_is_passed_on)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_error err = {0};

	service.refuse = -EBUSY;
	cr_assert_eq(fake_service_open(&service, &producer, &options, &err), -EBUSY);
	cr_assert_str_eq(err.text, "refused by the test");
	cr_assert_null(producer);
}

Test(producer_open, a_welcome_without_generation_or_rows_is_refused)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	service.rows_per_record = 0;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), -EBADMSG);
	fake_service_hang_up(&service);
	service.rows_per_record = 16;
	service.generation = 0;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), -EBADMSG);
}

Test(producer_open, failure_14_sizes_come_from_the_caller)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	struct r3ring_record record;

	options.rank = 7;
	options.replica = 1;
	options.weight_version = 99;
	options.coordinates.ep = (struct r3ring_coordinate){.index = 3, .size = 8};
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	cr_assert_eq(r3ring_record_decode(&record, R3RING_SCHEMA, service.schema,
					  service.hello.schema_len, NULL),
		     0);
	cr_assert_eq(record.u.schema.head.layers, 4);
	cr_assert_eq(record.u.schema.head.experts, 16);
	cr_assert_eq(record.u.schema.head.top_k, 2);
	cr_assert_eq(record.u.schema.head.max_rows, 64);
	cr_assert_eq(record.u.schema.head.replica, 1);
	cr_assert_eq(record.u.schema.head.weight_version, 99);
	cr_assert_eq(record.u.schema.head.rank.ep.index, 3);
	cr_assert_str_eq(record.u.schema.head.model, "small");
	cr_assert_eq(record.u.schema.layers[2].layer_id, 5);
	cr_assert_eq(record.u.schema.layers[3].kind, R3RING_LAYER_MTP);
	cr_assert_str_eq(service.hello.channel.instance, "test");
	cr_assert_eq(service.hello.channel.rank, 7);
	cr_assert_eq(service.hello.reconnect, 0);
	cr_assert_eq(service.hello.pid, (uint32_t)getpid());
	cr_assert_eq(service.hello.buffer_kind, R3RING_BUFFER_HOST);
	cr_assert_geq(service.pidfd, 0);
	r3ring_producer_close(producer);
}

Test(producer_open, failure_13_a_draft_model_is_announced_under_its_own_name)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	options.draft = 1;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	cr_assert_eq(service.hello.channel.draft, 1);
	r3ring_producer_close(producer);
}

static int fds_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

Test(producer_open, failure_4_opening_again_after_close_works)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	int before = fds_open();

	for (uint64_t i = 1; i <= 3; i++) {
		struct r3ring_producer_stats stats;

		service.generation = i;
		cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
		r3ring_producer_get_stats(producer, &stats);
		cr_assert_eq(stats.generation, i);
		cr_assert_eq(stats.connected, 1);
		cr_assert_eq(stats.steps, 0);
		r3ring_producer_close(producer);
		fake_service_hang_up(&service);
	}
	cr_assert_eq(fds_open(), before);
}

Test(producer_open, a_refused_open_leaves_nothing_behind)
{
	struct r3ring_producer_options options = fake_service_options(&service);
	int before = fds_open();

	service.refuse = -EDQUOT;
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), -EDQUOT);
	fake_service_hang_up(&service);
	cr_assert_eq(fds_open(), before);
}

Test(producer_open, closing_nothing_is_fine)
{
	r3ring_producer_close(NULL);
}

Test(producer_open, closing_says_so_in_the_pages)
{
	struct r3ring_producer_options options = fake_service_options(&service);

	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
	cr_assert_eq(service.pages.words->closing, 0);
	r3ring_producer_close(producer);
	cr_assert_eq(service.pages.words->closing, 1);
}
