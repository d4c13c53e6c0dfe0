/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/system/registered_stage.h"

struct registered_stage registered;

void registered_start(void)
{
	struct r3ring_error err = {0};

	test_daemon_start(&registered.daemon, NULL);
	snprintf(registered.channel, sizeof(registered.channel), "%s",
		 engine_channel(registered.daemon.dir, REGISTERED));
	cr_assert_eq(engine_open(&registered.engine, registered.daemon.dir,
				 engine_instance(registered.daemon.dir, REGISTERED), 16, &err),
		     0, "%s", err.text);
}

void registered_stop(void)
{
	engine_close(&registered.engine);
	cr_expect_eq(test_daemon_stop(&registered.daemon), 0);
	test_daemon_close(&registered.daemon);
}

struct r3ring_reader_options registered_options(void)
{
	return (struct r3ring_reader_options){.size = sizeof(struct r3ring_reader_options),
					      .runtime_dir = registered.daemon.dir,
					      .channel = registered.channel};
}

struct r3ring_reader *registered_open(void)
{
	const struct r3ring_reader_options given = registered_options();
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &given, &err), 0, "%s", err.text);
	return reader;
}

unsigned int registered_read_all(struct r3ring_reader *reader)
{
	struct r3ring_view view;
	unsigned int count = 0;

	while (r3ring_reader_next(reader, &view) == 1)
		count += r3ring_reader_check(reader) == 0;
	return count;
}

bool registered_nobody(const void *unused)
{
	(void)unused;
	return channel_readers(registered.daemon.dir, registered.channel) == 0;
}

bool registered_one(const void *unused)
{
	(void)unused;
	return channel_readers(registered.daemon.dir, registered.channel) == 1;
}
