/* SPDX-License-Identifier: Apache-2.0 */
/* Layer numbers in module prefixes. */
#include <criterion/criterion.h>
#include <errno.h>

#include <r3ring/bind.h>

Test(prefix, the_number_after_layers_is_the_layer)
{
	cr_assert_eq(r3ring_layer_from_prefix("model.layers.3.ffn.experts"), 3);
	cr_assert_eq(r3ring_layer_from_prefix("layers.0"), 0);
	cr_assert_eq(r3ring_layer_from_prefix("language_model.model.layers.92.mlp"), 92);
	cr_assert_eq(r3ring_layer_from_prefix("mtp.layers.1.block_sparse_moe"), 1);
	cr_assert_eq(r3ring_layer_from_prefix("layers.65535.w13"), 65535);
	cr_assert_eq(r3ring_layer_from_prefix("layers.layers.7.e_score-bias"), 7);
}

static void expect_refused(const char *prefix)
{
	cr_assert_eq(r3ring_layer_from_prefix(prefix), -EINVAL, "accepted: %s",
		     prefix ? prefix : "NULL");
}

Test(prefix, without_a_number_it_is_refused)
{
	expect_refused(NULL);
	expect_refused("");
	expect_refused("model");
	expect_refused("model.layers");
	expect_refused("model.layers.ffn.experts");
}

Test(prefix, a_number_that_does_not_follow_layers_is_refused)
{
	expect_refused("3");
	expect_refused("model.blocks.3.experts");
	expect_refused("model.layers.ffn.3");
	expect_refused("model.mylayers.3");
	expect_refused("model.layers_.3");
	expect_refused("model.layer.3");
}

Test(prefix, a_second_number_is_refused)
{
	expect_refused("model.layers.3.experts.7");
	expect_refused("encoder.0.layers.3.experts");
	expect_refused("model.layers.3.layers.4");
	expect_refused("model.layers.3.3");
	expect_refused("model.layers.3.experts.-1");
}

Test(prefix, what_is_not_quite_a_number_is_refused)
{
	expect_refused("model.layers.-3.ffn");
	expect_refused("model.layers.+3.ffn");
	expect_refused("model.layers.03.ffn");
	expect_refused("model.layers.00.ffn");
	expect_refused("model.layers.3a.ffn");
	expect_refused("model.layers.0x3.ffn");
	expect_refused("model.layers. 3.ffn");
	expect_refused("model.layers.3 .ffn");
	expect_refused("model.layers.3e0.ffn");
}

Test(prefix, a_number_beyond_the_range_is_refused)
{
	expect_refused("model.layers.65536.ffn");
	expect_refused("model.layers.4294967299.ffn");
	expect_refused("model.layers.18446744073709551619.ffn");
}

Test(prefix, an_empty_component_is_refused)
{
	expect_refused(".layers.3");
	expect_refused("model..layers.3");
	expect_refused("model.layers.3.");
	expect_refused("model.layers..3");
}
