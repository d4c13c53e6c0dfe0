/* SPDX-License-Identifier: Apache-2.0 */
/* Which channels' schemas are of one model, and what goes on when another one follows. */
#include <criterion/criterion.h>

#include <string.h>

#include "monitor/engine_model.h"

static struct engine_model *model;

static void open_model(void)
{
	const struct engine_model_options options = {.load = {.size = sizeof(options.load)}};

	cr_assert_eq(engine_model_create(&model, &options, NULL), 0);
	cr_assert_eq(engine_model_channel(model, "test/0"), 0);
	cr_assert_eq(engine_model_channel(model, "test/1"), 1);
}

static void close_model(void)
{
	engine_model_put(model);
}

TestSuite(engine_model, .init = open_model, .fini = close_model);

static const struct r3ring_layer_entry table[] = {
	{.layer_id = 0, .kind = R3RING_LAYER_MOE},
	{.layer_id = 1, .kind = R3RING_LAYER_MOE},
	{.layer_id = 2, .kind = R3RING_LAYER_MOE},
};

/* Of @layers of the table, from @first on. */
static struct r3ring_record schema_of(const char *name, uint32_t first, uint32_t layers)
{
	struct r3ring_record schema = {.type = R3RING_SCHEMA};

	schema.u.schema.head =
		(struct r3ring_schema_record){.layers = layers, .experts = 8, .top_k = 2};
	strncpy(schema.u.schema.head.model, name, R3RING_MODEL_NAME_MAX);
	schema.u.schema.layers = table + first;
	return schema;
}

Test(engine_model, any_schema_is_of_a_model_that_is_none_yet)
{
	const struct r3ring_record schema = schema_of("a", 0, 2);

	cr_expect(engine_model_fits(model, 0, &schema));
	cr_expect(engine_model_fits(model, 7, &schema));
}

Test(engine_model, another_name_other_experts_or_ids_are_another_model)
{
	struct r3ring_record schema = schema_of("a", 0, 2);

	schema.u.schema.head.rank.ep.size = 16;
	cr_assert_eq(engine_model_note(model, 0, &schema), 0);
	cr_expect_str_eq(model->name, "a");
	cr_expect_eq(model->expert_ranks, 16);
	cr_expect(engine_model_fits(model, 0, &schema));
	schema.u.schema.head.experts = 9;
	cr_expect_not(engine_model_fits(model, 0, &schema));
	schema.u.schema.head.experts = 8;
	schema.u.schema.head.top_k = 3;
	cr_expect_not(engine_model_fits(model, 0, &schema));
	schema = schema_of("ab", 0, 2);
	cr_expect_not(engine_model_fits(model, 0, &schema));
}

Test(engine_model, a_channel_that_comes_back_with_other_layers_is_of_another)
{
	const struct r3ring_record two = schema_of("a", 0, 2), three = schema_of("a", 0, 3);
	const struct r3ring_layer_entry first_and_mtp[] = {
		{.layer_id = 0, .kind = R3RING_LAYER_MOE},
		{.layer_id = 1, .kind = R3RING_LAYER_MTP}};
	const struct r3ring_record others = schema_of("a", 1, 2);
	struct r3ring_record kind = two;

	kind.u.schema.layers = first_and_mtp;
	cr_assert_eq(engine_model_note(model, 1, &two), 0);
	cr_expect(engine_model_fits(model, 1, &two));
	cr_expect_not(engine_model_fits(model, 1, &three));
	cr_expect_not(engine_model_fits(model, 1, &others));
	cr_expect_not(engine_model_fits(model, 1, &kind));
	cr_expect(engine_model_fits(model, 0, &others), "a stage of its own");
	cr_expect(engine_model_fits(model, 2, &others), "one that is not known yet");
	cr_assert_eq(engine_model_note(model, 0, &others), 0);
	cr_expect_not(engine_model_fits(model, 0, &two));
	cr_expect(engine_model_fits(model, 1, &two));
}

static void drop(void *more)
{
	++*(int *)more;
}

Test(engine_model, it_is_there_until_nobody_holds_it)
{
	int dropped = 0;

	model->more = &dropped;
	model->drop = drop;
	cr_assert_eq(engine_model_get(model), model);
	engine_model_put(model);
	cr_expect_eq(dropped, 0);
	engine_model_put(model);
	cr_expect_eq(dropped, 1);
	model = NULL;
}

Test(engine_model, sums_of_all_models_before_go_on)
{
	const struct engine_model_options options = {.load = {.size = sizeof(options.load)},
						     .load_only = true};
	struct engine_model *next;

	model->number = 4;
	model->before.counted = 100;
	model->before.gaps = 3;
	model->before.left_out[R3RING_LOAD_PADDING] = 7;
	model->before.lost[R3RING_MISSING_GAP] = 9;
	cr_assert_eq(engine_model_create(&next, &options, NULL), 0);
	cr_expect_null(next->signatures);
	cr_assert_eq(engine_model_follow(next, model), 0);
	cr_expect_eq(next->number, 5);
	cr_expect_eq(next->before.counted, 100);
	cr_expect_eq(next->before.gaps, 3);
	cr_expect_eq(next->before.left_out[R3RING_LOAD_PADDING], 7);
	cr_expect_eq(next->before.lost[R3RING_MISSING_GAP], 9);
	engine_model_put(next);
}
