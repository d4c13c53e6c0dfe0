/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of replicas and the mapping of ids. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/eplb.h"

static struct eplb *eplb;

static void make(uint32_t layers, uint32_t experts, uint32_t extra)
{
	struct r3ring_error err;

	cr_assert_eq(eplb_create(&eplb, layers, experts, extra, &err), 0, "%s", err.text);
}

/* Sends @rows tokens to one expert. */
static void send_tokens(uint32_t layer, int32_t expert, uint32_t rows)
{
	int32_t *ids = calloc(rows, sizeof(*ids));
	struct eplb_ids all = {ids, R3RING_INT32, 1, 1, rows, rows};

	for (uint32_t row = 0; row < rows; row++)
		ids[row] = expert;
	eplb_apply(eplb, layer, &all);
	free(ids);
}

/* Every physical expert stands for exactly one logical one. */
static void expect_whole_map(uint32_t layer)
{
	struct r3ring_eplb_record head;
	const uint16_t *map;
	uint8_t seen[2048] = {0};
	uint32_t used = 0;

	eplb_describe(eplb, &head, &map);
	map += (size_t)layer * head.experts * head.replicas;
	for (uint32_t e = 0; e < head.experts; e++) {
		cr_assert_neq(map[e * head.replicas], R3RING_MISSING);
		for (uint32_t r = 0; r < head.replicas; r++) {
			uint16_t physical = map[e * head.replicas + r];

			if (physical == R3RING_MISSING)
				continue;
			cr_assert_lt(physical, head.physical);
			cr_assert_eq(seen[physical], 0);
			seen[physical] = 1;
			used++;
		}
	}
	cr_assert_eq(used, head.physical);
}

static uint32_t replicas_of(uint32_t layer, uint32_t expert)
{
	struct r3ring_eplb_record head;
	const uint16_t *map;
	uint32_t count = 0;

	eplb_describe(eplb, &head, &map);
	map += ((size_t)layer * head.experts + expert) * head.replicas;
	while (count < head.replicas && map[count] != R3RING_MISSING)
		count++;
	return count;
}

Test(reference_eplb, every_physical_expert_stands_for_one_logical)
{
	make(3, 896, 112);
	for (uint32_t l = 0; l < 3; l++)
		expect_whole_map(l);
	send_tokens(1, 5, 1000);
	cr_assert_eq(eplb_place(eplb), 0);
	expect_whole_map(1);
	eplb_free(eplb);
}

Test(reference_eplb, replicas_go_to_the_most_loaded_experts)
{
	make(2, 8, 8);
	send_tokens(1, 6, 900);
	send_tokens(1, 2, 500);
	send_tokens(1, 3, 10);
	cr_assert_eq(eplb_place(eplb), 0);
	/* 900: shares 450, 300, 225; 500: 250, 167, 125; then 10: 5, 3.3. */
	cr_assert_eq(replicas_of(1, 6), 4);
	cr_assert_eq(replicas_of(1, 2), 4);
	cr_assert_eq(replicas_of(1, 3), 3);
	cr_assert_eq(replicas_of(1, 0), 1);
	eplb_free(eplb);
}

Test(reference_eplb, rows_take_the_replicas_of_their_expert_in_turn)
{
	int64_t ids[4][2] = {{0, 7}, {0, 7}, {0, 7}, {0, 7}};
	struct eplb_ids all = {ids, R3RING_INT64, 1, 2, 3, 4};
	struct r3ring_eplb_record head;
	const uint16_t *map;

	make(1, 4, 4);
	send_tokens(0, 0, 100);
	cr_assert_eq(eplb_place(eplb), 0);
	eplb_describe(eplb, &head, &map);
	cr_assert_eq(replicas_of(0, 0), 4);
	eplb_apply(eplb, 0, &all);
	for (uint32_t row = 0; row < 3; row++) {
		cr_assert_eq(ids[row][0], map[row]);
		cr_assert_eq(ids[row][1], 7, "a column beyond top_k was touched");
		cr_assert_geq(eplb_load(eplb, 0, (uint32_t)ids[row][0]), 1);
	}
	cr_assert_eq(ids[3][0], -1);
	eplb_free(eplb);
}

Test(reference_eplb, what_is_no_expert_becomes_minus_one)
{
	int32_t ids[3] = {-1, 4, 3};
	struct eplb_ids all = {ids, R3RING_INT32, 1, 1, 3, 3};

	make(1, 4, 0);
	eplb_apply(eplb, 0, &all);
	cr_assert_eq(ids[0], -1);
	cr_assert_eq(ids[1], -1);
	cr_assert(ids[2] >= 0 && ids[2] < 4);
	eplb_free(eplb);
}

Test(reference_eplb, a_new_placement_begins_a_new_epoch_without_load)
{
	struct r3ring_eplb_record head;
	const uint16_t *map;

	make(1, 4, 4);
	eplb_describe(eplb, &head, &map);
	cr_assert_eq(head.epoch, 1);
	cr_assert_eq(head.physical, 8);
	cr_assert_eq(head.gpus, 8);
	send_tokens(0, 1, 10);
	cr_assert_eq(eplb_place(eplb), 0);
	eplb_describe(eplb, &head, &map);
	cr_assert_eq(head.epoch, 2);
	for (uint32_t p = 0; p < 8; p++)
		cr_assert_eq(eplb_load(eplb, 0, p), 0);
	eplb_free(eplb);
}

Test(reference_eplb, more_replicas_than_experts_can_have_are_refused)
{
	struct r3ring_error err;

	cr_assert_eq(eplb_create(&eplb, 1, 4, 13, &err), -EINVAL);
	cr_assert(strstr(err.text, "--eplb-replicas"));
	cr_assert_eq(eplb_create(&eplb, 1, 65535, 1, &err), -EINVAL);
	make(1, 4, 12);
	expect_whole_map(0);
	eplb_free(eplb);
}
