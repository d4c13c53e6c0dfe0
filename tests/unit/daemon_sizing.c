/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of a channel's ring. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "capture_daemon/sizing.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static struct r3ring_schema_record schema_of(uint32_t layers, uint16_t top_k, uint32_t max_rows)
{
	return (struct r3ring_schema_record){
		.layers = layers, .top_k = top_k, .experts = 896, .max_rows = max_rows};
}

static struct ring_sizes choose(const struct r3ring_schema_record *schema, uint64_t ring_size)
{
	struct ring_sizes sizes = {0};
	struct r3ring_error err = {0};

	cr_assert_eq(sizing_choose(&sizes, schema, ring_size, &err), 0, "%s", err.text);
	return sizes;
}

Test(daemon_sizing, a_small_model_gets_a_segment_within_32_mib)
{
	struct r3ring_schema_record schema = schema_of(43, 6, 256);
	struct ring_sizes sizes = choose(&schema, 0);

	cr_expect_eq(sizes.arena_bytes, 16 * MIB);
	cr_expect_leq(sizes.segment_bytes, 32 * MIB);
	cr_expect_eq(sizes.segment_bytes, 128 * KIB + sizes.depth * 64ull + sizes.arena_bytes);
	cr_expect_eq(sizes.rows_per_record, 4096);
}

Test(daemon_sizing, four_of_the_largest_steps_fit)
{
	/* Kimi-K3, 8192 rows: 92 x 8192 x 32 bytes are 23 MiB, four of them 92. */
	struct r3ring_schema_record schema = schema_of(92, 16, 8192);

	cr_expect_eq(choose(&schema, 0).arena_bytes, 128 * MIB);
}

Test(daemon_sizing, a_size_that_was_asked_for_is_honoured_exactly)
{
	struct r3ring_schema_record schema = schema_of(92, 16, 8192);
	struct ring_sizes sizes = choose(&schema, 1 * MIB);

	cr_expect_eq(sizes.arena_bytes, 512 * KIB);
	cr_expect_leq(sizes.segment_bytes, 1 * MIB);
	/* A record is at most an eighth of the arena: (65536 - 64) / 32 rows. */
	cr_expect_eq(sizes.rows_per_record, 2046);
}

Test(daemon_sizing, a_record_of_64_rows_must_fit)
{
	/* 64 + 64 x 256 x 2 bytes: more than an eighth of 256 KiB. */
	struct r3ring_schema_record schema = schema_of(4, 256, 8192);
	struct ring_sizes sizes = {.depth = 7};
	struct r3ring_error err = {0};

	cr_expect_eq(sizing_choose(&sizes, &schema, 512 * KIB, &err), -EMSGSIZE);
	cr_expect(strstr(err.text, "--ring-size 704K"), "%s", err.text);
	cr_expect_eq(sizes.depth, 7, "untouched on failure");
	cr_expect_eq(choose(&schema, 704 * KIB).arena_bytes, 512 * KIB);
}

Test(daemon_sizing, a_list_of_all_missing_layers_must_fit)
{
	/* 1024 entries of 16 bytes and a head. */
	struct r3ring_schema_record schema = schema_of(1024, 1, 1);
	struct ring_sizes sizes;

	cr_expect_eq(sizing_choose(&sizes, &schema, 256 * KIB, NULL), -EMSGSIZE);
}

Test(daemon_sizing, rows_of_a_producer_that_comes_back_are_kept)
{
	struct r3ring_schema_record schema = schema_of(4, 16, 8192);

	schema.rows_per_record = 1000;
	cr_expect_eq(choose(&schema, 0).rows_per_record, 1000);
	cr_expect_eq(choose(&schema, 1 * MIB).rows_per_record, 1000);
	cr_expect_eq(sizing_choose(&(struct ring_sizes){0}, &schema, 256 * KIB, NULL), -EMSGSIZE);
}
