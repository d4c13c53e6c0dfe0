/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump --count and the text form: totals, and what a terminal gets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/record_examples.h"
#include "tools/dump.h"

static uint64_t next_seq;

static void count_one(struct dump_count *count, const struct r3ring_record *record, uint16_t flags)
{
	const struct r3ring_view view = {.seq = ++next_seq, .type = record->type, .flags = flags};
	const struct dump_item item = {.view = &view, .record = record};

	cr_assert_eq(dump_count_record(count, &item), 0);
}

static struct r3ring_record layer_piece(uint64_t step, uint16_t layer, uint32_t row, uint32_t rows)
{
	return (struct r3ring_record){
		.type = R3RING_LAYER,
		.u.layer.head = {.step = step,
				 .layer_id = layer,
				 .layer_index = layer,
				 .row = row,
				 .rows = rows,
				 .valid_rows = rows,
				 .missing = 5,
				 .out_of_range = 2,
				 .top_k = 6},
	};
}

Test(dump_count, ids_missing_of_a_layer_in_pieces_count_once)
{
	struct dump_count count = {0};
	struct r3ring_record pieces[] = {layer_piece(1, 0, 0, 100), layer_piece(1, 0, 100, 50),
					 layer_piece(1, 1, 0, 150), layer_piece(2, 1, 0, 150)};

	for (int i = 0; i < 4; i++)
		count_one(&count, &pieces[i], 0);
	cr_expect_eq(count.records[R3RING_LAYER], 4);
	cr_expect_eq(count.layer_rows, 450);
	cr_expect_eq(count.ids, 450 * 6);
	cr_expect_eq(count.ids_missing, 15);
	cr_expect_eq(count.ids_out_of_range, 6);
}

Test(dump_count, failure_28_padding_rows_are_not_counted)
{
	struct dump_count count = {0};
	struct r3ring_record layer = layer_piece(1, 0, 0, 128);
	struct r3ring_record step = {
		.type = R3RING_STEP,
		.u.step.head = {.total_rows = 256,
				.row_begin = 100,
				.row_end = 228,
				.valid_end = 110},
	};

	layer.u.layer.head.valid_rows = 10;
	count_one(&count, &step, 0);
	count_one(&count, &layer, 0);
	cr_expect_eq(count.step_rows, 10);
	cr_expect_eq(count.layer_rows, 10);
}

Test(dump_count, what_a_keyframe_says_again_is_not_counted_again)
{
	struct dump_count count = {0};
	struct r3ring_record request;

	example_record(&request, R3RING_REQUEST, EXAMPLE_TYPICAL);
	count_one(&count, &request, 0);
	count_one(&count, &request, R3RING_DESC_REPEATED);
	cr_expect_eq(count.requests_begun, 1);
	cr_expect_eq(count.repeated, 1);
	cr_expect_eq(count.records[R3RING_REQUEST], 2);
}

static char *print_counts(struct dump_count *count)
{
	char *text = NULL;
	size_t len;

	count->out = open_memstream(&text, &len);
	count->channel = "demo/0";
	cr_assert_eq(dump_count_print(count), 0);
	fclose(count->out);
	return text;
}

Test(dump_count, losses_whose_records_fell_into_a_gap_are_proved_by_the_next_keyframe)
{
	const struct dump_gap gap = {.lost = 3};
	struct dump_count count = {0};
	struct r3ring_record keyframe = {.type = R3RING_KEYFRAME};
	char *text;

	count_one(&count, &keyframe, 0);
	cr_assert_eq(dump_count_gap(&count, &gap), 0);
	text = print_counts(&count);
	cr_expect_not_null(strstr(text, "at least"), "%s", text);
	free(text);
	keyframe.u.keyframe.totals.lost_steps[R3RING_CAUSE_RING_FULL] = 5;
	keyframe.u.keyframe.totals.lost_rows[R3RING_CAUSE_RING_FULL] = 9;
	count_one(&count, &keyframe, 0);
	text = print_counts(&count);
	cr_expect_not_null(strstr(text, "ring_full          steps 5, rows 9"), "%s", text);
	cr_expect_not_null(strstr(text, "steps 5, told by totals only"), "%s", text);
	cr_expect_null(strstr(text, "at least"), "%s", text);
	free(text);
}

Test(dump_count, failure_20_losses_are_told_by_cause)
{
	struct dump_count count = {0};
	const struct dump_gap gap = {.lost = 7};
	struct r3ring_record lost;
	char *text;

	example_record(&lost, R3RING_LOST, EXAMPLE_TYPICAL);
	count_one(&count, &lost, 0);
	count_one(&count, &lost, 0);
	dump_count_gap(&count, &gap);
	dump_count_gap(&count, &gap);
	text = print_counts(&count);
	cr_expect(strstr(text, "  queue_full         steps 10, rows 2560, layers 0\n"), "%s", text);
	cr_expect(strstr(text, "  reader_overrun     records 14, in 2 gaps\n"), "%s", text);
	cr_expect_null(strstr(text, "none"));
	free(text);
}

Test(dump_count, damaged_records_are_none_that_the_reader_was_too_slow_for)
{
	struct dump_count count = {0};
	const struct dump_gap gap = {.lost = 7, .corrupt = true};
	char *text;

	dump_count_gap(&count, &gap);
	text = print_counts(&count);
	cr_expect(strstr(text, "  corrupt            records 7, damaged in the ring\n"), "%s",
		  text);
	cr_expect_null(strstr(text, "reader_overrun"), "%s", text);
	free(text);
}

Test(dump_count, failure_7_layers_that_never_came_are_told)
{
	struct dump_count count = {0};
	struct r3ring_missing_layer missing[] = {{.cause = R3RING_CAUSE_NOT_CAPTURED},
						 {.cause = R3RING_CAUSE_TOO_FEW_ROWS},
						 {.cause = R3RING_CAUSE_NOT_CAPTURED}};
	struct r3ring_record end = {
		.type = R3RING_STEP_END,
		.u.step_end = {.head = {.status = R3RING_STEP_PARTIAL, .missing = 3},
			       .missing = missing},
	};
	char *text;

	count_one(&count, &end, 0);
	text = print_counts(&count);
	cr_expect_eq(count.steps_partial, 1);
	cr_expect(strstr(text, "  not_captured       steps 0, rows 0, layers 2\n"), "%s", text);
	cr_expect(strstr(text, "  too_few_rows       steps 0, rows 0, layers 1\n"), "%s", text);
	free(text);
}

Test(dump_count, a_layer_that_came_and_is_taken_back_is_told_as_missing_too)
{
	struct dump_count count = {0};
	struct r3ring_missing_layer missing[] = {{.layer_id = 1, .cause = R3RING_CAUSE_OVERLAP}};
	struct r3ring_record layer = layer_piece(1, 1, 0, 4);
	struct r3ring_record end = {
		.type = R3RING_STEP_END,
		.u.step_end = {.head = {.step = 1, .status = R3RING_STEP_PARTIAL, .missing = 1},
			       .missing = missing},
	};
	char *text;

	count_one(&count, &layer, 0);
	count_one(&count, &end, 0);
	text = print_counts(&count);
	cr_expect_eq(count.layer_rows, 4);
	cr_expect(strstr(text, "  overlap            steps 0, rows 0, layers 1\n"), "%s", text);
	free(text);
}

Test(dump_count, without_losses_it_says_so)
{
	struct dump_count count = {0};
	char *text = print_counts(&count);

	cr_expect(strstr(text, "losses\n  none\n"), "%s", text);
	free(text);
}

Test(dump_count, failure_20_a_daemon_s_death_leaves_a_loss_of_unknown_size)
{
	struct dump_count count = {0};
	struct r3ring_record closed = {.type = R3RING_CLOSED};
	char *text;

	closed.u.closed.reason = R3RING_CLOSED_SHUTDOWN;
	count_one(&count, &closed, 0);
	text = print_counts(&count);
	cr_expect(strstr(text, "losses\n  none\n"), "%s", text);
	free(text);
	closed.u.closed.engine_lives = 1;
	count_one(&count, &closed, 0);
	text = print_counts(&count);
	cr_expect(strstr(text, "  daemon_gone        unknown"), "%s", text);
	free(text);
	count = (struct dump_count){0};
	closed.u.closed.engine_lives = 0;
	closed.u.closed.reason = R3RING_CLOSED_CRASHED;
	count_one(&count, &closed, 0);
	text = print_counts(&count);
	cr_expect(strstr(text, "  daemon_gone        unknown"), "%s", text);
	free(text);
}

Test(dump_count, sequences_of_several_generations_are_no_range)
{
	struct dump_count count = {.channel = "demo/0"};
	const struct r3ring_record record = layer_piece(1, 0, 0, 1);
	char *text;

	for (uint64_t generation = 4; generation <= 5; generation++) {
		const struct r3ring_view view = {
			.seq = 9, .generation = generation, .type = record.type};
		const struct dump_item item = {.view = &view, .record = &record};

		cr_assert_eq(dump_count_record(&count, &item), 0);
	}
	text = print_counts(&count);
	cr_expect(strstr(text, "demo/0: 2 records of 2 generations,"), "%s", text);
	cr_expect_null(strstr(text, "sequences"), "%s", text);
	free(text);
}

/* ---- text form -------------------------------------------------------- */

static char *print_as_text(const struct r3ring_record *record)
{
	const struct r3ring_view view = {.seq = 1, .type = record->type};
	const struct dump_item item = {.view = &view, .record = record};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_eq(dump_text_record(out, &item), 0);
	fclose(out);
	return text;
}

Test(dump_text, every_type_is_printed)
{
	for (uint16_t type = 1; type < R3RING_RECORD_TYPES; type++) {
		struct r3ring_record record;
		char *text;

		example_record(&record, type, EXAMPLE_TYPICAL);
		text = print_as_text(&record);
		cr_expect(strlen(text) > 20 && text[strlen(text) - 1] == '\n', "type %u: %s", type,
			  text);
		free(text);
	}
}

Test(dump_text, a_request_id_cannot_steer_the_terminal)
{
	static const char id[] = "x\x1b[2Jy";
	const struct r3ring_record record = {
		.type = R3RING_REQUEST,
		.u.request = {.head = {.event = R3RING_REQUEST_BEGIN, .id_len = sizeof(id) - 1},
			      .id = id},
	};
	char *text = print_as_text(&record);

	cr_expect_null(strchr(text, 0x1b));
	cr_expect(strstr(text, "x\\x1b[2Jy"), "%s", text);
	free(text);
}
