/* SPDX-License-Identifier: Apache-2.0 */
/* What of a dead daemon's ring is lost, and when the next one goes on in it. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "capture_daemon/channel.h"
#include "capture_daemon/orphans.h"
#include "tests/unit/dead_ring.h"

TestSuite(daemon_orphans, .init = dead_open, .fini = dead_close);

/* ---- what of it is lost ----------------------------------------------------- */

static struct channel orphan;

/* The ring as a daemon finds it that adopts. */
static void adopt_remains(void)
{
	dead_read();
	orphan.state = CHANNEL_ORPHAN;
	orphan.segment = dead.segment;
	orphan.drain.publisher = dead.publisher;
	orphan_take(&orphan, &dead.remains);
}

static void give_back(void)
{
	dead.publisher = orphan.drain.publisher;
	free(orphan.drain.said.layer_parts);
}

/* Reads what was lost of step 2 from the ring. */
static struct r3ring_lost_record lost_of_step_2(void)
{
	struct r3ring_lost_record found = {0};
	struct r3ring_record record;
	struct r3ring_cursor *cursor;
	struct r3ring_view view;

	cr_assert_eq(r3ring_cursor_open(&cursor, dead.segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0),
		     0);
	while (r3ring_cursor_next(cursor, &view) == 1) {
		cr_assert_eq(r3ring_record_decode(&record, view.type, view.data, view.len, NULL),
			     0);
		if (record.type == R3RING_LOST && record.u.lost.to_step == 2) {
			cr_expect_eq(found.steps, 0);
			found = record.u.lost;
		}
	}
	r3ring_cursor_close(cursor);
	return found;
}

Test(daemon_orphans, a_dropped_step_is_lost_by_its_own_cause_though_its_ring_is_not_gone_on_with)
{
	struct r3ring_lost_record lost;

	dead_step(1, 0);
	dead_end(1);
	dead_drop(2, R3RING_CAUSE_BUFFER_FULL);
	adopt_remains();
	cr_expect_eq(orphan_told(&orphan).step, 2);
	orphan_say_lost(&orphan);
	cr_expect_eq(orphan_told(&orphan).step, 2);
	lost = lost_of_step_2();
	cr_expect_eq(lost.from_step, 2);
	cr_expect_eq(lost.steps, 1);
	cr_expect_eq(lost.cause, R3RING_CAUSE_BUFFER_FULL);
	cr_expect_eq(lost.rows, DEAD_ROWS - 1);
	cr_expect_eq(lost.layer_rows, (DEAD_ROWS - 1) * DEAD_LAYERS);
	give_back();
}

Test(daemon_orphans, a_step_at_work_is_lost_in_its_ring_and_left_to_the_next_generation)
{
	struct r3ring_lost_record lost;

	dead_step(1, 0);
	dead_end(1);
	dead_step(2, 0);
	/* One layer whole, half of another. */
	dead_layer_part(2, 1, 0);
	dead_layer_part(2, 1, 1);
	dead_layer_part(2, 0, 0);
	adopt_remains();
	cr_expect_eq(orphan_told(&orphan).step, 1);
	orphan_say_lost(&orphan);
	cr_expect_eq(orphan_told(&orphan).step, 1);
	lost = lost_of_step_2();
	cr_expect_eq(lost.steps, 1);
	cr_expect_eq(lost.cause, R3RING_CAUSE_DAEMON_RESTART);
	cr_expect_eq(lost.rows, DEAD_ROWS - 1);
	cr_expect_eq(lost.layer_rows, (DEAD_ROWS - 1) * DEAD_LAYERS);
	give_back();
}

/* ---- when it is gone on with -------------------------------------------- */

static struct r3ring_hello_producer_message hello;

static bool continues(const struct r3ring_record *schema)
{
	orphan.state = CHANNEL_ORPHAN;
	orphan.segment = dead.segment;
	orphan.drain.publisher = dead.publisher;
	return orphan_continues(&orphan, &hello, schema);
}

static void say_hello(void)
{
	hello = (struct r3ring_hello_producer_message){
		.buffer_kind = R3RING_BUFFER_HOST,
		.reconnect = 1,
		.last_generation = DEAD_GENERATION,
	};
}

Test(daemon_orphans, a_ring_in_host_memory_is_gone_on_with)
{
	const struct r3ring_record schema = dead_schema();

	say_hello();
	cr_expect(continues(&schema));
}

Test(daemon_orphans, a_ring_that_a_device_may_still_write_is_never_gone_on_with)
{
	const struct r3ring_record schema = dead_schema();

	say_hello();
	hello.buffer_kind = R3RING_BUFFER_CUDA_IPC;
	cr_expect_not(continues(&schema));
	hello.buffer_kind = R3RING_BUFFER_CUDA_VMM;
	cr_expect_not(continues(&schema));
}

Test(daemon_orphans, only_the_producer_of_that_generation_goes_on)
{
	const struct r3ring_record schema = dead_schema();

	say_hello();
	hello.last_generation = DEAD_GENERATION - 1;
	cr_expect_not(continues(&schema));
	say_hello();
	hello.reconnect = 0;
	cr_expect_not(continues(&schema));
}

static bool is_of(uint64_t last_generation, uint16_t goes_on_from)
{
	say_hello();
	hello.last_generation = last_generation;
	dead.publisher.schema.generation = DEAD_GENERATION;
	dead.publisher.schema.continues = goes_on_from;
	orphan.segment = dead.segment;
	orphan.drain.publisher = dead.publisher;
	return orphan_is_of(&orphan, &hello);
}

Test(daemon_orphans, a_ring_is_of_who_was_in_it_or_in_the_one_that_it_went_on_from)
{
	cr_expect(is_of(DEAD_GENERATION, 0));
	cr_expect(is_of(DEAD_GENERATION - 2, 2));
}

Test(daemon_orphans, a_ring_of_another_engine_is_not_of_who_was_there_before)
{
	cr_expect_not(is_of(DEAD_GENERATION - 1, 0));
	cr_expect_not(is_of(DEAD_GENERATION - 1, 2));
	cr_expect_not(is_of(0, 0));
	cr_expect_not(is_of(0, DEAD_GENERATION));
}

static void expect_no_other(struct r3ring_record schema, const char *field)
{
	cr_expect_not(continues(&schema), "%s", field);
}

Test(daemon_orphans, a_producer_with_other_layers_does_not_go_on)
{
	struct r3ring_record schema = dead_schema();
	struct r3ring_layer_entry other[DEAD_LAYERS];

	say_hello();
	memcpy(other, dead_layer, sizeof(other));
	schema.u.schema.layers = other;
	other[2].layer_id = 9;
	expect_no_other(schema, "layer_id");
	other[2] = dead_layer[2];
	cr_expect(continues(&schema));
	other[2].kind = R3RING_LAYER_MTP;
	expect_no_other(schema, "kind");
	other[2] = dead_layer[2];
	schema.u.schema.head.layers--;
	expect_no_other(schema, "layers");
}

Test(daemon_orphans, nor_one_with_another_size_of_anything)
{
	const struct r3ring_record same = dead_schema();
	struct r3ring_record schema = same;

	say_hello();
	schema.u.schema.head.experts++;
	expect_no_other(schema, "experts");
	schema = same;
	schema.u.schema.head.top_k++;
	expect_no_other(schema, "top_k");
	schema = same;
	schema.u.schema.head.max_rows++;
	expect_no_other(schema, "max_rows");
	schema = same;
	schema.u.schema.head.rows_per_record++;
	expect_no_other(schema, "rows_per_record");
	schema = same;
	schema.u.schema.head.captures_rows = 1;
	expect_no_other(schema, "captures_rows");
}

Test(daemon_orphans, a_ring_without_the_beginning_of_its_step_is_not_gone_on_with)
{
	const struct r3ring_record schema = dead_schema();

	say_hello();
	orphan.drain.said.unknown = true;
	cr_expect_not(continues(&schema));
}
