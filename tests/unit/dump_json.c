/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump --json: records of all types, layers, losses and gaps. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/record_examples.h"
#include "tests/unit/dump_line.h"

/* ---- all types -------------------------------------------------------- */

Test(dump_json, every_record_of_every_size_is_one_object_on_a_line)
{
	static const char *const types[R3RING_RECORD_TYPES] = {
		[R3RING_SCHEMA] = "schema",     [R3RING_REQUEST] = "request",
		[R3RING_STEP] = "step",         [R3RING_SPANS] = "spans",
		[R3RING_ROWS] = "rows",         [R3RING_LAYER] = "layer",
		[R3RING_STEP_END] = "step_end", [R3RING_LOST] = "lost",
		[R3RING_EPLB] = "eplb",         [R3RING_KEY_COPY] = "key_copy",
		[R3RING_KEYFRAME] = "keyframe", [R3RING_CLOSED] = "closed",
	};

	for (uint16_t type = 1; type < R3RING_RECORD_TYPES; type++) {
		for (int size = EXAMPLE_MIN; size <= EXAMPLE_TYPICAL; size++) {
			struct r3ring_record record;
			struct dump_line line;

			example_record(&record, type, (enum example_size)size);
			line = dump_line_of(&record, 0);
			cr_expect_str_eq(dump_line_string(line.object, "type"), types[type]);
			cr_expect_eq(dump_line_integer(line.object, "seq"), 77);
			cr_expect_null(json_object_get(line.object, "repeated"));
			dump_line_free(&line);
		}
	}
}

Test(dump_json, numbers_beyond_what_json_readers_hold_are_texts)
{
	struct r3ring_record record;
	struct dump_line line;

	example_record(&record, R3RING_LOST, EXAMPLE_MAX);
	line = dump_line_of(&record, 0);
	cr_expect_str_eq(dump_line_string(line.object, "from"), "18446744073709551615");
	dump_line_free(&line);
}

Test(dump_json, a_record_that_a_keyframe_says_again_is_marked)
{
	struct r3ring_record record;
	struct dump_line line;

	example_record(&record, R3RING_SCHEMA, EXAMPLE_TYPICAL);
	line = dump_line_of(&record, R3RING_DESC_REPEATED);
	cr_expect(json_is_true(json_object_get(line.object, "repeated")));
	dump_line_free(&line);
}

/* ---- LAYER ------------------------------------------------------------ */

static struct r3ring_record small_layer(const uint16_t *ids)
{
	return (struct r3ring_record){
		.type = R3RING_LAYER,
		.u.layer = {.head = {.step = 9,
				     .layer_id = 42,
				     .layer_index = 41,
				     .kind = R3RING_LAYER_HASH,
				     .row = 128,
				     .rows = 3,
				     .total_rows = 256,
				     .valid_rows = 2,
				     .missing = 1,
				     .out_of_range = 0,
				     .top_k = 2},
			    .ids = ids},
	};
}

Test(dump_json, a_layer_has_its_fields_and_ids)
{
	static const uint16_t ids[] = {0, 65534, 9, 10, 100, 12345};
	struct r3ring_record record = small_layer(ids);
	struct dump_line line = dump_line_of(&record, 0);
	const json_t *rows = json_object_get(line.object, "ids");

	cr_expect_eq(dump_line_integer(line.object, "step"), 9);
	cr_expect_eq(dump_line_integer(line.object, "layer"), 42);
	cr_expect_str_eq(dump_line_string(line.object, "kind"), "hash");
	cr_expect_eq(dump_line_integer(line.object, "row"), 128);
	cr_expect_eq(dump_line_integer(line.object, "rows"), 3);
	cr_expect_eq(dump_line_integer(line.object, "total_rows"), 256);
	cr_expect_eq(dump_line_integer(line.object, "valid_rows"), 2);
	cr_expect_eq(dump_line_integer(line.object, "missing"), 1);
	cr_expect_eq(dump_line_integer(line.object, "out_of_range"), 0);
	cr_assert_eq(json_array_size(rows), 3);
	for (size_t i = 0; i < 6; i++) {
		const json_t *row = json_array_get(rows, i / 2);

		cr_assert_eq(json_array_size(row), 2);
		cr_expect_eq(json_integer_value(json_array_get(row, i % 2)), ids[i]);
	}
	dump_line_free(&line);
}

Test(dump_json, failure_26_a_missing_id_is_minus_one_and_no_expert)
{
	static const uint16_t ids[] = {R3RING_MISSING, 255, 1, 2, R3RING_MISSING, R3RING_MISSING};
	struct r3ring_record record = small_layer(ids);
	struct dump_line line = dump_line_of(&record, 0);

	cr_expect(strstr(line.text, "\"ids\":[[-1,255],[1,2],[-1,-1]]}"), "%s", line.text);
	dump_line_free(&line);
}

Test(dump_json, a_layer_without_rows_has_an_empty_array)
{
	struct r3ring_record record = small_layer(NULL);
	struct dump_line line;

	record.u.layer.head.rows = 0;
	record.u.layer.head.valid_rows = 0;
	line = dump_line_of(&record, 0);
	cr_expect_eq(json_array_size(json_object_get(line.object, "ids")), 0);
	cr_expect(json_is_array(json_object_get(line.object, "ids")));
	dump_line_free(&line);
}

Test(dump_json, failure_35_layer_kind_tells_layers_of_one_number_apart)
{
	const struct dump_layer moe = {.id = 1};
	const struct dump_layer mtp = {.id = 1, .mtp = true};
	const struct dump_layer all = {.all = true};
	struct r3ring_record record = small_layer(NULL);

	record.u.layer.head.layer_id = 1;
	record.u.layer.head.kind = R3RING_LAYER_MTP;
	cr_expect(!dump_wants(&moe, &record));
	cr_expect(dump_wants(&mtp, &record));
	cr_expect(dump_wants(&all, &record));
	record.u.layer.head.kind = R3RING_LAYER_HASH;
	cr_expect(dump_wants(&moe, &record));
	cr_expect(!dump_wants(&mtp, &record));
	record.u.layer.head.layer_id = 2;
	cr_expect(!dump_wants(&moe, &record));
}

/* ---- other types ------------------------------------------------------ */

Test(dump_json, a_loss_names_cause_steps_and_rows)
{
	const struct r3ring_record record = {
		.type = R3RING_LOST,
		.u.lost = {.from_step = 3,
			   .to_step = 5,
			   .steps = 3,
			   .rows = 96,
			   .layer_rows = 960,
			   .cause = R3RING_CAUSE_BUFFER_FULL},
	};
	struct dump_line line = dump_line_of(&record, 0);

	cr_expect_str_eq(dump_line_string(line.object, "cause"), "buffer_full");
	cr_expect_eq(dump_line_integer(line.object, "steps"), 3);
	cr_expect_eq(dump_line_integer(line.object, "rows"), 96);
	cr_expect_eq(dump_line_integer(line.object, "layer_rows"), 960);
	cr_expect_eq(dump_line_integer(line.object, "from"), 3);
	cr_expect_eq(dump_line_integer(line.object, "to"), 5);
	dump_line_free(&line);
}

Test(dump_json, failure_8_a_step_tells_its_row_range_within_the_whole)
{
	struct r3ring_record record;
	struct dump_line line;

	example_record(&record, R3RING_STEP, EXAMPLE_TYPICAL);
	line = dump_line_of(&record, 0);
	cr_expect_eq(dump_line_integer(line.object, "total_rows"), 256);
	cr_expect_eq(dump_line_integer(line.object, "row_begin"), 128);
	cr_expect_eq(dump_line_integer(line.object, "row_end"), 256);
	cr_expect_eq(dump_line_integer(line.object, "valid_end"), 250);
	cr_expect_eq(json_array_size(json_object_get(line.object, "spans")), 64);
	cr_expect_eq(json_array_size(json_object_get(line.object, "keys")), 128);
	dump_line_free(&line);
}

Test(dump_json, a_partial_step_names_each_missing_layer_and_why)
{
	struct r3ring_record record;
	struct dump_line line;
	const json_t *missing;

	example_record(&record, R3RING_STEP_END, EXAMPLE_TYPICAL);
	line = dump_line_of(&record, 0);
	missing = json_object_get(line.object, "missing");
	cr_expect_str_eq(dump_line_string(line.object, "status"), "partial");
	cr_assert_eq(json_array_size(missing), 3);
	cr_expect_eq(dump_line_integer(json_array_get(missing, 2), "layer"), 2);
	cr_expect_str_eq(dump_line_string(json_array_get(missing, 2), "kind"), "mtp");
	cr_expect_str_eq(dump_line_string(json_array_get(missing, 2), "cause"), "queue_full");
	cr_expect_eq(dump_line_integer(json_array_get(missing, 2), "captured"), 2);
	cr_expect_eq(dump_line_integer(json_array_get(missing, 2), "expected"), 3);
	dump_line_free(&line);
}

Test(dump_json, an_eplb_map_is_layers_of_experts_of_replicas)
{
	struct r3ring_record record;
	struct dump_line line;
	const json_t *map, *expert;

	example_record(&record, R3RING_EPLB, EXAMPLE_TYPICAL);
	line = dump_line_of(&record, 0);
	map = json_object_get(line.object, "map");
	cr_assert_eq(json_array_size(map), 3);
	cr_assert_eq(json_array_size(json_array_get(map, 1)), 32);
	expert = json_array_get(json_array_get(map, 1), 3);
	cr_assert_eq(json_array_size(expert), 2);
	cr_expect_eq(json_integer_value(json_array_get(expert, 0)), (32 + 3) * 2 % 40);
	cr_expect_eq(json_integer_value(json_array_get(expert, 1)), -1);
	dump_line_free(&line);
}

Test(dump_json, a_text_that_is_no_utf8_still_makes_valid_json)
{
	static const char id[] = "a\xff\x1b[2Jb";
	const struct r3ring_record record = {
		.type = R3RING_REQUEST,
		.u.request = {.head = {.event = R3RING_REQUEST_BEGIN, .id_len = sizeof(id) - 1},
			      .id = id},
	};
	struct dump_line line = dump_line_of(&record, 0);

	cr_expect_str_eq(dump_line_string(line.object, "request"), "a\xef\xbf\xbd\x1b[2Jb");
	cr_expect_null(strchr(line.text, 0x1b));
	dump_line_free(&line);
}

Test(dump_json, a_gap_of_the_reader_tells_how_much_and_where)
{
	const struct dump_gap gap = {
		.generation = 3, .lost = 40, .from_seq = 11, .to_seq = 50, .corrupt = true};
	struct dump_line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_gap(out, &gap), 0);
	fclose(out);
	dump_line_parse(&line);
	cr_expect_str_eq(dump_line_string(line.object, "type"), "gap");
	cr_expect_eq(dump_line_integer(line.object, "generation"), 3);
	cr_expect_eq(dump_line_integer(line.object, "lost"), 40);
	cr_expect_eq(dump_line_integer(line.object, "from_seq"), 11);
	cr_expect_eq(dump_line_integer(line.object, "to_seq"), 50);
	cr_expect_eq(dump_line_integer(line.object, "missed"), 0);
	cr_expect(json_is_true(json_object_get(line.object, "corrupt")));
	dump_line_free(&line);
}

Test(dump_json, a_corrupt_record_is_told_apart_from_one_of_a_later_version)
{
	const struct r3ring_view view = {.seq = 8, .type = 13, .len = 100};
	const struct dump_unreadable cases[] = {
		{.view = &view, .code = -EBADMSG, .text = "rows do not fit"},
		{.view = &view, .code = -ENOTSUP, .text = "unknown type"},
	};
	static const char *const types[] = {"corrupt", "unknown"};

	for (int i = 0; i < 2; i++) {
		struct dump_line line = {0};
		FILE *out = open_memstream(&line.text, &line.len);

		cr_assert_eq(dump_json_unreadable(out, &cases[i]), 0);
		fclose(out);
		dump_line_parse(&line);
		cr_expect_str_eq(dump_line_string(line.object, "type"), types[i]);
		cr_expect_eq(dump_line_integer(line.object, "seq"), 8);
		dump_line_free(&line);
	}
}
