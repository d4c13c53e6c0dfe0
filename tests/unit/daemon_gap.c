/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gap of which a dead daemon's ring has a part, told by several causes: the next daemon counts it as
 * not yet told, unless the producer's pages say that all of it was.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utlist.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/orphans.h"
#include "tests/support/drain_image.h"
#include "tests/unit/dead_ring.h"

#define GAP_FROM 2u
#define GAP_TO 9u /* eight steps */

static struct drain_image_rig rig;
static struct channel next; /* the producer's that comes back */
static struct drain *const drain = &next.drain;

static struct daemon daemon_b;

static void open_all(void)
{
	cr_assert_eq(loop_create(&daemon_b.loop), 0);
	dead_open();
	drain_image_open(&rig);
}

static void close_all(void)
{
	drain_close(drain);
	drain_image_close(&rig);
	dead_close();
	loop_destroy(daemon_b.loop);
}

TestSuite(daemon_gap, .init = open_all, .fini = close_all);

/* Step 1, and of the gap behind it so many steps by one cause. */
static void tell_gap(uint32_t steps)
{
	const struct r3ring_record lost = {
		.type = R3RING_LOST,
		.u.lost = {.from_step = GAP_FROM,
			   .to_step = GAP_TO,
			   .steps = steps,
			   .cause = R3RING_CAUSE_DAEMON_RESTART},
	};

	dead_step(1, 0);
	dead_end(1);
	if (steps)
		dead_put(&lost);
	dead_read();
}

/* The producer comes back, whose pages say that all up to @taken was taken, and so told. */
static void come_back(uint64_t taken)
{
	const struct r3ring_hello_producer_message hello = {
		.buffer_kind = R3RING_BUFFER_HOST,
		.reconnect = 1,
		.pages_bytes = rig.pages.bytes,
		.buffer_bytes = rig.buffer.bytes,
	};
	const struct drain_options options = {
		.hello = &hello,
		.pages_fd = dup(rig.pages.fd),
		.buffer_fd = dup(rig.buffer.fd),
	};
	struct r3ring_error err = {0};

	rig.pages.words->taken_step = taken;
	drain_init(drain, "gap");
	cr_assert_eq(drain_attach(drain, &options, &rig.schema.u.schema.head, &err), 0, "%s",
		     err.text);
	drain->said.gap_records = dead.remains.said.gap_records;
	cr_assert_eq(
		drain_take_place(drain, dead.remains.told_step, (struct stall_policy){0}, &err), 0,
		"%s", err.text);
}

Test(daemon_gap, what_the_pages_say_was_told_of_it_is_told_and_counts_as_steps_of_the_ring)
{
	tell_gap(5);
	cr_assert_eq(dead.remains.totals.steps, 1, "the gap is taken out of the count");
	come_back(GAP_TO);
	cr_expect_eq(drain->gap_passed, 8);
	cr_expect_eq(dead.remains.totals.steps + drain->gap_passed, GAP_TO);
	cr_expect_eq(drain->told_step, GAP_TO);
	cr_expect_eq(drain->said.gap_records, 0, "nothing of it is to be told any more");
}

Test(daemon_gap, it_is_told_on_where_the_pages_do_not_say_so)
{
	tell_gap(5);
	come_back(1);
	cr_expect_eq(drain->gap_passed, 0);
	cr_expect_eq(drain->told_step, 1);
	cr_expect_eq(drain->said.gap_records, 1, "so many records of it were told");
}

Test(daemon_gap, one_that_the_ring_has_all_of_is_counted_there_already)
{
	tell_gap(8);
	come_back(GAP_TO);
	cr_expect_eq(dead.remains.totals.steps, GAP_TO);
	cr_expect_eq(drain->gap_passed, 0);
}

Test(daemon_gap, steps_that_the_ring_knows_nothing_of_are_none)
{
	tell_gap(0);
	come_back(GAP_TO);
	cr_expect_eq(drain->gap_passed, 0);
	cr_expect_eq(drain->told_step, GAP_TO);
}

/* ---- in the ring ------------------------------------------------------------ */

/* The channel of the ring that the dead daemon left. */
static struct channel *adopt(void)
{
	struct channel *orphan = calloc(1, sizeof(*orphan));

	*orphan = (struct channel){.daemon = &daemon_b, .state = CHANNEL_ORPHAN};
	orphan->pidfd.fd = orphan->done.fd = -1;
	drain_init(&orphan->drain, "gap");
	orphan->segment = dead.segment;
	orphan->drain.publisher = dead.publisher;
	dead.publisher = (struct publisher){0};
	cr_assert_eq(drain_serve_idle(&orphan->drain, (struct stall_policy){0}), 0);
	orphan_take(orphan, &dead.remains);
	DL_APPEND(daemon_b.channels, orphan);
	next.daemon = &daemon_b;
	return orphan;
}

Test(daemon_gap, a_ring_that_is_gone_on_with_counts_the_steps_that_were_told_of_it)
{
	struct r3ring_error err = {0};
	struct drain_report report;

	tell_gap(5);
	come_back(GAP_TO);
	cr_assert_eq(orphan_resume(adopt(), &next, &err), 0, "%s", err.text);
	drain_get_report(drain, &report);
	cr_expect_eq(report.totals.steps, GAP_TO);
	drain_stop(drain, 0);
}

Test(daemon_gap, one_that_cannot_be_gone_on_with_counts_as_before)
{
	struct channel *orphan;
	struct r3ring_error err = {0};
	struct rlimit before;
	int r;

	tell_gap(5);
	come_back(GAP_TO);
	orphan = adopt();
	getrlimit(RLIMIT_NOFILE, &before);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_max = before.rlim_max});
	r = orphan_resume(orphan, &next, &err);
	setrlimit(RLIMIT_NOFILE, &before);
	cr_expect_eq(r, -EMFILE);
	cr_expect_eq(orphan->drain.publisher.totals.steps, 1);
	drain_close(&orphan->drain);
	free(orphan);
}
