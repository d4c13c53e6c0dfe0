/* SPDX-License-Identifier: Apache-2.0 */
/* Layers and rows that never came, came twice, or came outside of a step. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <r3ring/bind.h>

#include "tests/support/stand_still.h"
#include "tests/support/step_rig.h"

#define LAYERS 6u
#define EXPERTS 128u
#define TOP_K 4u
#define ROWS 20u
#define FIRST_LAYER 3

static struct step_rig rig;

static void start(void)
{
	step_rig_start(&rig, NULL, LAYERS, EXPERTS, TOP_K, 64);
	step_rig_open(&rig);
}

static void finish(void)
{
	step_rig_close(&rig);
}

TestSuite(steps_missing, .init = start, .fini = finish);

static void capture_all(int64_t step)
{
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
}

/* Captures rows [begin, end) of a layer alone. */
static void capture_part(int64_t step, uint32_t layer, uint32_t begin, uint32_t end)
{
	struct step_source whole = rig.source;

	rig.source.first_row = begin;
	rig.source.row_offset = begin;
	rig.source.rows = end - begin;
	step_rig_capture(&rig, step, layer);
	whole.memory = rig.source.memory;
	rig.source = whole;
}

/* The step is partial; its @index-th missing layer is this one, for this reason. */
static void expect_missing(uint32_t index, uint32_t layer, enum r3ring_cause cause,
			   uint32_t captured)
{
	const struct read_step *step = &rig.reader.step;

	cr_expect_eq(step->end.status, R3RING_STEP_PARTIAL);
	cr_assert_lt(index, step->end.missing);
	cr_expect_eq(step->missing[index].layer_id, FIRST_LAYER + (int32_t)layer);
	cr_expect_eq(step->missing[index].kind, R3RING_LAYER_MOE);
	cr_expect_eq(step->missing[index].cause, cause, "%s",
		     r3ring_cause_name(step->missing[index].cause));
	cr_expect_eq(step->missing[index].captured, captured);
	cr_expect_eq(step->missing[index].expected, ROWS);
}

/* A layer that is missing has no record: it is never told as zeros. */
static void expect_others_whole(uint32_t missing_layers)
{
	cr_expect_eq(rig.reader.step.end.missing, (uint32_t)__builtin_popcount(missing_layers));
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		if (missing_layers & (1u << layer))
			cr_expect_eq(rig.reader.step.layer_records[layer], 0);
		else
			cr_expect_eq(read_step_wrong(&rig.reader, layer, 0, ROWS), 0);
	}
}

static void expect_whole(void)
{
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	expect_others_whole(0);
}

/* ---- hooks -------------------------------------------------------------- */

struct model {
	char prefixes[LAYERS][48];
	struct r3ring_capture_source sources[LAYERS];
	struct r3ring_module modules[LAYERS];
};

static struct model model;

static void bind_model(void)
{
	struct r3ring_error err = {0};

	for (uint32_t i = 0; i < LAYERS; i++) {
		snprintf(model.prefixes[i], sizeof(model.prefixes[i]),
			 "model.layers.%u.ffn.experts", FIRST_LAYER + i);
		model.sources[i].layer_id = FIRST_LAYER + (int)i;
		model.modules[i] = (struct r3ring_module){
			.prefix = model.prefixes[i],
			.class_name = "MegaMoE",
			.kind = R3RING_MODULE_CAPTURE_SOURCE,
			.source = &model.sources[i],
		};
	}
	cr_assert_eq(r3ring_bind(rig.producer, model.modules, LAYERS, &err), LAYERS, "%s",
		     err.text);
}

/* A forward whose layers in @bypassed take a way that does not come by the hook. */
static void forward(int64_t step, uint32_t bypassed)
{
	for (uint32_t i = 0; i < LAYERS; i++) {
		const struct r3ring_capture_source *source = &model.sources[i];
		struct r3ring_topk topk;

		step_source_fill(&rig.source, (uint64_t)step, i);
		topk = step_source_topk(&rig.source);
		if (source->fn && !(bypassed & (1u << i)))
			source->fn(source, &topk, NULL);
	}
}

Test(steps_missing, failure_06_a_layer_whose_hook_was_bypassed_is_missing_and_named)
{
	int64_t step;

	bind_model();
	step = step_rig_begin(&rig, ROWS);
	forward(step, (1u << 1) | (1u << 4));
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_missing(0, 1, R3RING_CAUSE_NOT_CAPTURED, 0);
	expect_missing(1, 4, R3RING_CAUSE_NOT_CAPTURED, 0);
	expect_others_whole((1u << 1) | (1u << 4));
}

Test(steps_missing, failure_43_a_bell_of_an_earlier_step_does_not_pass_for_a_missing_layer)
{
	int64_t step;

	bind_model();
	for (uint32_t i = 0; i < 300; i++) { /* every slot of bells is used again */
		step = step_rig_begin(&rig, ROWS);
		forward(step, i % 2 ? 1u << (i % LAYERS) : 0);
		step_rig_end(&rig);
		cr_assert(step_reader_next(&rig.reader));
		if (i % 2 == 0) {
			expect_whole();
			continue;
		}
		expect_missing(0, i % LAYERS, R3RING_CAUSE_NOT_CAPTURED, 0);
		expect_others_whole(1u << (i % LAYERS));
	}
}

Test(steps_missing, failure_07_a_forward_without_any_hook_call_misses_every_layer)
{
	step_rig_begin(&rig, ROWS);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		expect_missing(layer, layer, R3RING_CAUSE_NOT_CAPTURED, 0);
	expect_others_whole((1u << LAYERS) - 1);
}

/* ---- rows --------------------------------------------------------------- */

Test(steps_missing, failure_07_too_few_rows_make_a_layer_missing_and_say_how_many_came)
{
	int64_t step = step_rig_begin(&rig, ROWS);

	for (uint32_t layer = 0; layer < LAYERS; layer++)
		capture_part(step, layer, 0, layer == 3 ? ROWS - 1 : ROWS);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_missing(0, 3, R3RING_CAUSE_TOO_FEW_ROWS, ROWS - 1);
	expect_others_whole(1u << 3);
}

Test(steps_missing, rows_captured_twice_make_the_layer_missing_as_an_overlap)
{
	int64_t step = step_rig_begin(&rig, ROWS);

	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		capture_part(step, layer, 0, ROWS / 2);
		capture_part(step, layer, ROWS / 2, ROWS);
	}
	capture_part(step, 2, 0, 1);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	cr_assert_eq(rig.reader.step.end.missing, 1);
	cr_expect_eq(rig.reader.step.missing[0].layer_id, FIRST_LAYER + 2);
	cr_expect_eq(rig.reader.step.missing[0].cause, R3RING_CAUSE_OVERLAP);
	expect_others_whole(1u << 2);
}

Test(steps_missing, rows_that_come_again_after_the_layer_was_told_take_it_back_at_the_end)
{
	const struct r3ring_step told_at_once = {
		.size = sizeof(told_at_once),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.doorbell_layers = 1,
	};
	int64_t step = r3ring_step_begin(rig.producer, &told_at_once, NULL);

	rig.source.rows = ROWS;
	capture_all(step);
	cr_assert(step_reader_layers(&rig.reader, LAYERS));
	capture_part(step, 4, 3, 5);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_assert_eq(rig.reader.step.end.missing, 1);
	cr_expect_eq(rig.reader.step.missing[0].layer_id, FIRST_LAYER + 4);
	cr_expect_eq(rig.reader.step.missing[0].cause, R3RING_CAUSE_OVERLAP);
	/* What was told before is what came first, not a mixture. */
	cr_expect_eq(read_step_all_wrong(&rig.reader, 0, ROWS), 0);
}

Test(steps_missing, rows_that_came_twice_do_not_stand_in_for_rows_that_never_came)
{
	int64_t step = step_rig_begin(&rig, ROWS);

	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		capture_part(step, layer, 0, ROWS / 2);
		capture_part(step, layer, layer == 5 ? 0 : ROWS / 2, layer == 5 ? ROWS / 2 : ROWS);
	}
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_assert_eq(rig.reader.step.end.missing, 1);
	cr_expect_eq(rig.reader.step.missing[0].layer_id, FIRST_LAYER + 5);
	cr_expect_eq(rig.reader.step.layer_records[5], 0);
}

/* ---- begin and end ------------------------------------------------------ */

Test(steps_missing, a_step_that_was_not_ended_ends_partial_when_the_next_begins)
{
	int64_t first = step_rig_begin(&rig, ROWS);
	int64_t second;

	for (uint32_t layer = 0; layer < LAYERS - 1; layer++)
		step_rig_capture(&rig, first, layer);
	second = step_rig_begin(&rig, ROWS); /* as after an exception in the forward */
	cr_assert_eq(second, first + 1);
	capture_all(second);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.head.step, (uint64_t)first);
	expect_missing(0, LAYERS - 1, R3RING_CAUSE_NOT_CAPTURED, 0);
	expect_others_whole(1u << (LAYERS - 1));
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.head.step, (uint64_t)second);
	expect_whole();
}

Test(steps_missing, a_step_that_was_not_ended_ends_partial_when_the_producer_closes)
{
	int64_t step = step_rig_begin(&rig, ROWS);

	step_rig_capture(&rig, step, 0);
	r3ring_producer_close(rig.producer);
	rig.producer = NULL;
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	expect_others_whole(((1u << LAYERS) - 1) & ~1u);
}

Test(steps_missing, a_step_cannot_be_ended_twice)
{
	step_rig_step(&rig, ROWS);
	cr_expect_eq(r3ring_step_end(rig.producer, NULL), -EINVAL);
	step_rig_step(&rig, ROWS);
	expect_whole();
}

Test(steps_missing, failure_42_a_forward_outside_of_a_step_captures_nothing)
{
	rig.source.rows = ROWS;
	capture_all(9000); /* before the first step: a profile run */
	step_rig_step(&rig, ROWS);
	expect_whole();
	capture_all(9001); /* between steps: a dummy batch */
	capture_all(9002);
	step_rig_step(&rig, ROWS);
	cr_expect_eq(rig.reader.step.head.step, 2);
	expect_whole();
	capture_all(9003);
	step_rig_step(&rig, 1);
	cr_expect_eq(read_step_all_wrong(&rig.reader, 0, 1), 0);
	cr_expect_eq(rig.reader.losses, 0);
	cr_expect_not(step_reader_has_more(&rig.reader, 0));
}

Test(steps_missing, failure_42_a_forward_after_the_end_does_not_fill_in_what_the_step_missed)
{
	const struct r3ring_step told_at_once = {
		.size = sizeof(told_at_once),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.doorbell_layers = 1,
	};
	int64_t step;

	step_rig_step(&rig, ROWS);
	/* The daemon looks at the step only when all of this is over. */
	stand_still(rig.daemon.pid);
	step = r3ring_step_begin(rig.producer, &told_at_once, NULL);
	for (uint32_t layer = 0; layer < LAYERS - 1; layer++)
		step_rig_capture(&rig, step, layer);
	step_rig_end(&rig);
	capture_all(9000);
	kill(rig.daemon.pid, SIGCONT);
	cr_assert(step_reader_next(&rig.reader));
	expect_missing(0, LAYERS - 1, R3RING_CAUSE_NOT_CAPTURED, 0);
	expect_others_whole(1u << (LAYERS - 1));
}

Test(steps_missing, failure_44_a_hook_that_outlives_the_producer_captures_nothing)
{
	bind_model();
	step_rig_step(&rig, ROWS);
	expect_whole();
	r3ring_producer_close(rig.producer);
	rig.producer = NULL;
	for (uint32_t i = 0; i < LAYERS; i++)
		cr_expect_null(model.sources[i].fn);
	forward(2, 0);
}
