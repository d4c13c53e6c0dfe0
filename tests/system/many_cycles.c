/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many that come and go leave nothing behind in the daemon: descriptors, memory,
 * names, places under the limits.
 */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <r3ring/instance.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/process_size.h"

#define READER_CYCLES 1000
#define ENGINE_CYCLES 100
#define WARM_UP 20 /* cycles until caches and pools are filled */
#define LOOKS 500
#define LOOK_MS 10
#define GROWTH_KIB 512l

/* What the daemon holds. */
struct holdings {
	long descriptors, resident, maps; /* resident in KiB, the process's own */
	unsigned int threads;
	unsigned int names, listed;
};

static struct test_daemon daemon_a;
static struct engine engine_a;
static char instance[64], channel[80];

static void teardown(void)
{
	if (engine_a.producer)
		engine_close(&engine_a);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

TestSuite(many_cycles, .fini = teardown, .timeout = 180);

static void start(const char *const *args)
{
	test_daemon_start(&daemon_a, args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "cycles"));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, "cycles"));
}

static void open_engine(void)
{
	struct r3ring_error err = {0};

	cr_assert_eq(engine_open(&engine_a, daemon_a.dir, instance, 64, &err), 0, "%s", err.text);
}

/* ---- what the daemon holds ---------------------------------------------- */

static unsigned int entries(const char *path)
{
	unsigned int count = 0;
	DIR *dir = opendir(path);

	cr_assert(dir, "%s: %s", path, strerror(errno));
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static long lines(const char *path)
{
	FILE *file = fopen(path, "re");
	long count = 0;
	int c;

	cr_assert(file, "%s: %s", path, strerror(errno));
	while ((c = fgetc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

static unsigned int threads(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", daemon_a.pid);
	return entries(path);
}

static struct holdings look(void)
{
	struct holdings holdings = {
		.resident = process_own_kib(daemon_a.pid),
		.descriptors = process_descriptors(daemon_a.pid),
		.threads = threads(),
		.names = test_shm_names(instance),
	};
	char path[128];

	cr_assert_gt(holdings.resident, 0);
	snprintf(path, sizeof(path), "/proc/%d/maps", daemon_a.pid);
	holdings.maps = lines(path);
	snprintf(path, sizeof(path), "%s/segments", daemon_a.dir);
	holdings.listed = entries(path);
	return holdings;
}

/* What has just hung up may still be there for a moment. */
static struct holdings look_when_settled(const struct holdings *before)
{
	struct holdings now = look();

	for (int i = 0; i < LOOKS && now.descriptors > before->descriptors; i++) {
		poll(NULL, 0, LOOK_MS);
		now = look();
	}
	return now;
}

static void expect_the_same(const struct holdings *before)
{
	const struct holdings after = look_when_settled(before);

	cr_expect_leq(after.descriptors, before->descriptors, "%ld descriptors became %ld",
		      before->descriptors, after.descriptors);
	cr_expect_eq(after.threads, before->threads, "%u threads became %u", before->threads,
		     after.threads);
	cr_expect_eq(after.names, before->names, "%u names became %u", before->names, after.names);
	cr_expect_eq(after.listed, before->listed, "%u listed became %u", before->listed,
		     after.listed);
	/* Pools of a thread's stack and heap may be made, but not one a cycle. */
	cr_expect_leq(after.maps, before->maps + 16, "%ld mappings became %ld", before->maps,
		      after.maps);
	if (process_size_tells())
		cr_expect_leq(after.resident, before->resident + GROWTH_KIB,
			      "%ld resident KiB became %ld", before->resident, after.resident);
}

/* ---- cycles ------------------------------------------------------------- */

static void cycle_reader(enum r3ring_cursor_mode mode)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
		.mode = mode,
	};
	struct r3ring_reader *reader;
	struct r3ring_error err = {0};
	struct r3ring_view view;

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_reader_wait(reader, 5000), 1);
	cr_assert_eq(r3ring_reader_next(reader, &view), 1);
	r3ring_reader_close(reader);
}

static void cycle_readers(int cycles)
{
	static const enum r3ring_cursor_mode modes[] = {R3RING_LOSSY, R3RING_LATEST,
							R3RING_LOSSLESS};

	for (int i = 0; i < cycles; i++)
		cycle_reader(modes[i % 3]);
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 0));
}

Test(many_cycles, a_thousand_readers_that_come_and_go_leave_nothing_behind)
{
	struct holdings before;

	start(NULL);
	open_engine();
	cycle_readers(WARM_UP);
	before = look();
	cycle_readers(READER_CYCLES);
	expect_the_same(&before);
	cr_expect_gt(engine_step(&engine_a, 0, 8), 0);
}

static bool is_over(const json_t *object, long generation)
{
	return status_has_ended(object, 0) &&
	       json_integer_value(json_object_get(object, "generation")) == generation;
}

static void cycle_engines(int cycles, long *generation)
{
	for (int i = 0; i < cycles; i++) {
		open_engine();
		engine_step(&engine_a, 0, 8);
		engine_close(&engine_a);
		++*generation;
	}
	cr_assert(status_becomes(daemon_a.dir, channel, is_over, *generation));
}

Test(many_cycles, a_hundred_engines_that_come_and_go_leave_nothing_behind)
{
	struct holdings before;
	long generation = 0;

	start((const char *[]){"--ring-size", "1M", NULL});
	cycle_engines(WARM_UP, &generation);
	before = look();
	cr_expect_eq(before.names, 1);
	cycle_engines(ENGINE_CYCLES, &generation);
	expect_the_same(&before);
	cr_expect_eq(test_daemon_stop(&daemon_a), 0);
	cr_expect_eq(test_shm_names(instance), 0);
}

static void cycle_instance(void)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.instance = instance,
	};
	struct r3ring_instance *opened;
	struct r3ring_error err = {0};
	struct r3ring_view view;

	cr_assert_eq(r3ring_instance_open(&opened, &options, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_instance_wait(opened, 5000), 1);
	cr_assert_eq(r3ring_instance_next(opened, &view), 1);
	r3ring_instance_close(opened);
}

Test(many_cycles, readers_of_an_instance_leave_nothing_behind_here_either)
{
	struct holdings before;
	unsigned int own;

	start(NULL);
	open_engine();
	cycle_instance();
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 0));
	before = look();
	own = entries("/proc/self/fd");
	for (int i = 0; i < READER_CYCLES / 10; i++)
		cycle_instance();
	cr_assert(status_becomes(daemon_a.dir, channel, status_has_readers, 0));
	expect_the_same(&before);
	cr_expect_eq(entries("/proc/self/fd"), own);
}

/* ---- places under the limits -------------------------------------------- */

Test(many_cycles, a_channel_is_opened_anew_where_one_is_all_that_is_allowed)
{
	start((const char *[]){"--max-channels", "1", NULL});
	for (int i = 0; i < 3; i++) {
		open_engine();
		engine_close(&engine_a);
	}
}

Test(many_cycles, readers_that_left_give_their_places_back)
{
	start((const char *[]){"--max-readers", "2", NULL});
	open_engine();
	for (int i = 0; i < 10; i++) {
		cycle_readers(2);
	}
}
