/* SPDX-License-Identifier: Apache-2.0 */
/* Binding to an open producer: what the daemon hears, and that bound layers are
 * captured. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/bind.h>

#include "tests/support/emulated.h"
#include "tests/support/fake_service.h"

#define LAYERS 4u

static struct fake_service service;
static struct r3ring_producer *producer;
static struct r3ring_capture_source sources[LAYERS] = {
	{.layer_id = 0}, {.layer_id = 3}, {.layer_id = 5}, {.layer_id = 3}};
static struct r3ring_module modules[LAYERS] = {
	{"model.layers.0.ffn", "MegaMoE", R3RING_MODULE_CAPTURE_SOURCE, R3RING_LAYER_HASH,
	 &sources[0], NULL},
	{"model.layers.3.ffn", "MegaMoE", R3RING_MODULE_CAPTURE_SOURCE, R3RING_LAYER_MOE,
	 &sources[1], NULL},
	{"model.layers.5.ffn", "MegaMoE", R3RING_MODULE_CAPTURE_SOURCE, R3RING_LAYER_MOE,
	 &sources[2], NULL},
	{"mtp.layers.3.ffn", "MegaMoE", R3RING_MODULE_CAPTURE_SOURCE, R3RING_LAYER_MTP, &sources[3],
	 NULL},
};

static void open_producer(void)
{
	struct r3ring_producer_options options;

	cr_assert_eq(fake_service_start(&service), 0);
	options = fake_service_options(&service);
	cr_assert_eq(fake_service_open(&service, &producer, &options, NULL), 0);
}

static void stop_service(void)
{
	fake_service_stop(&service);
}

TestSuite(bind, .init = open_producer, .fini = stop_service);

static uint32_t stats_bound(void)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(producer, &stats);
	return stats.bound_layers;
}

/* The SCHEMA that comes next on the side lane. */
static struct r3ring_record next_schema(void)
{
	const uint8_t *payload = fake_service_next(&service, NULL);
	struct r3ring_record record;

	cr_assert_not_null(payload);
	cr_assert_eq(service.entry.type, LANE_RECORD);
	cr_assert_eq(service.entry.record_type, R3RING_SCHEMA);
	cr_assert_eq(r3ring_record_decode(&record, R3RING_SCHEMA, payload,
					  service.entry.payload_bytes, NULL),
		     0);
	return record;
}

Test(bind, failure_23_the_daemon_hears_which_layers_are_bound_and_since_when)
{
	struct r3ring_record record;
	struct r3ring_error err;

	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, &err), LAYERS, "%s", err.text);
	cr_assert_eq(stats_bound(), LAYERS);
	record = next_schema();
	cr_assert_gt(record.u.schema.head.bound_since_ns, 0);
	for (uint32_t i = 0; i < LAYERS; i++)
		cr_assert_eq(record.u.schema.layers[i].bound, 1);
	r3ring_unbind(producer);
	cr_assert_eq(stats_bound(), 0);
	record = next_schema();
	cr_assert_eq(record.u.schema.head.bound_since_ns, 0);
	for (uint32_t i = 0; i < LAYERS; i++)
		cr_assert_eq(record.u.schema.layers[i].bound, 0);
	r3ring_producer_close(producer);
}

Test(bind, a_refused_binding_is_not_announced)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_bind(producer, modules, LAYERS - 1, &err), -ENODATA);
	cr_assert_not_null(strstr(err.text, "mtp 3"), "%s", err.text);
	cr_assert_null(fake_service_next(&service, NULL));
	cr_assert_eq(stats_bound(), 0);
	r3ring_producer_close(producer);
}

Test(bind, no_modules_though_some_are_counted_are_refused)
{
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_bind(producer, NULL, 1, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "modules is NULL"), "%s", err.text);
	r3ring_producer_close(producer);
}

Test(bind, a_producer_that_is_bound_is_busy_until_it_is_unbound)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, NULL), LAYERS);
	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, &err), -EBUSY);
	cr_assert_not_null(strstr(err.text, "unbind"));
	r3ring_unbind(producer);
	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, NULL), LAYERS);
	r3ring_unbind(producer);
	r3ring_unbind(producer);
	r3ring_producer_close(producer);
}

Test(bind, closing_gives_the_sources_back)
{
	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, NULL), LAYERS);
	r3ring_producer_close(producer);
	for (uint32_t i = 0; i < LAYERS; i++)
		cr_assert_null(sources[i].fn);
}

Test(bind, failure_23_closing_announces_no_unbinding)
{
	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, NULL), LAYERS);
	next_schema();
	r3ring_producer_close(producer);
	cr_assert_null(fake_service_next(&service, NULL));
}

Test(bind, a_forked_child_cannot_bind)
{
	int status;
	pid_t child;

	SKIP_WHERE_EMULATED("MADV_WIPEONFORK");
	child = fork();
	if (child == 0)
		_exit(r3ring_bind(producer, modules, LAYERS, NULL) == -ESTALE ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	r3ring_producer_close(producer);
}

Test(bind, a_bound_layer_is_captured_where_the_schema_has_it)
{
	const int64_t ids[2] = {11, 4};
	const struct r3ring_topk topk = {
		.ids = ids, .type = R3RING_INT64, .rows = 1, .columns = 2, .row_stride = 2};
	const struct r3ring_step step = {
		.size = sizeof(step), .total_rows = 1, .row_end = 1, .valid_end = 1};
	const struct extent_bell *bells;

	cr_assert_eq(r3ring_bind(producer, modules, LAYERS, NULL), LAYERS);
	cr_assert_eq(r3ring_step_begin(producer, &step, NULL), 1);
	sources[3].fn(&sources[3], &topk, NULL); /* MTP layer 3, the table's last */
	cr_assert_eq(r3ring_step_end(producer, NULL), 0);
	bells = pages_bell(pages_slot(&service.pages, 0), 0);
	for (uint32_t i = 0; i < LAYERS; i++) {
		cr_assert_eq(bells[i].step, 1);
		cr_assert_eq(bells[i].rows, i == 3);
	}
	r3ring_producer_close(producer);
}
