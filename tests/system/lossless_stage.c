/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/support/channel_status.h"
#include "tests/support/settle.h"
#include "tests/system/lossless_stage.h"

struct test_daemon daemon_a;
struct engine engine_a, engine_b;
struct reader_worker keen, lazy;
char channel_a[80], channel_b[80];
static char instance[R3RING_INSTANCE_MAX + 1];

void lossless_start(const char *const *args)
{
	struct r3ring_error err = {0};

	test_daemon_start(&daemon_a, args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, BASE));
	snprintf(channel_a, sizeof(channel_a), "%s", engine_channel(daemon_a.dir, BASE));
	snprintf(channel_b, sizeof(channel_b), "%s", engine_channel(daemon_a.dir, OTHER));
	cr_assert_eq(
		engine_open(&engine_a, daemon_a.dir, engine_instance(daemon_a.dir, BASE), 16, &err),
		0, "%s", err.text);
}

void lossless_finish(void)
{
	if (engine_a.producer)
		engine_close(&engine_a);
	if (engine_b.producer)
		engine_close(&engine_b);
	if (daemon_a.pid)
		cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	test_daemon_close(&daemon_a);
	cr_expect_eq(test_shm_names(instance), 0);
}

struct reader_job lossless_job(enum r3ring_cursor_mode mode)
{
	return (struct reader_job){
		.options =
			{
				.size = sizeof(struct r3ring_reader_options),
				.runtime_dir = daemon_a.dir,
				.channel = channel_a,
				.mode = mode,
			},
	};
}

int64_t lossless_figure(const char *key)
{
	return channel_figure(daemon_a.dir, channel_a, key);
}

bool lossless_has_waited(const void *ctx)
{
	(void)ctx;
	return lossless_figure("waits_for_readers") > 0;
}

void lossless_flood(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++) {
		engine_step(&engine_a, 0, ROWS);
		worker_compute();
	}
}

int64_t lossless_settle(void)
{
	int64_t number = engine_settle(&engine_a, daemon_a.dir, channel_a, ROWS);

	cr_assert_gt(number, 0, "no step comes through");
	return number;
}

void lossless_expect_whole(const struct reader_page *page, uint64_t steps)
{
	cr_expect_eq(page->seen.wrong, 0);
	cr_expect_eq(page->seq_breaks, 0);
	cr_expect_eq(page->seen.stats.now.lost, 0);
	cr_expect_eq(page->seen.overruns, 0);
	cr_expect_eq(page->accounted, steps, "%llu", (unsigned long long)page->accounted);
	cr_expect_eq(page->seen.partial, 0);
}
