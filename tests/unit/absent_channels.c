/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an engine of which a daemon has no channel, by what its channels tell. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tools/absent_channels.h"

#define CHANNEL(name, state, dp, pp)                                                               \
	"{\"channel\":\"" name "\",\"state\":\"" state "\",\"rank\":{\"dp\":" dp ",\"pp\":" pp "}" \
	"}"

static struct archive_absent_ranks find(const char *channels, const char *instance)
{
	struct archive_absent_ranks absent;
	struct daemon_picture *picture;
	char json[2048];
	json_t *status;

	snprintf(json, sizeof(json), "{\"daemon\":{},\"channels\":[%s]}", channels);
	status = json_loads(json, 0, NULL);
	cr_assert_not_null(status, "%s", json);
	picture = daemon_picture_of(status);
	cr_assert_eq(absent_channels_find(picture, instance, &absent), 0);
	daemon_picture_put(picture);
	json_decref(status);
	return absent;
}

Test(absent_channels, a_stage_that_the_others_tell_of_is_absent)
{
	const struct archive_absent_ranks absent =
		find(CHANNEL("a/0", "live", "[0,1]", "[0,4]") "," CHANNEL(
			     "a/1", "live", "[0,1]", "[1,4]") "," CHANNEL("a/3", "live", "[0,1]",
									  "[3,4]"),
		     NULL);

	cr_assert_eq(absent.count, 1);
	cr_expect_eq(absent.rank[0].level, ARCHIVE_RANK_PP);
	cr_expect_eq(absent.rank[0].index[ARCHIVE_RANK_PP], 2);
	cr_expect_str_eq(absent.rank[0].instance, "a");
}

Test(absent_channels, one_that_has_ended_is_there_while_others_run)
{
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,1]", "[0,2]") "," CHANNEL("a/1", "ended",
									       "[0,1]", "[1,2]"),
			  NULL)
			     .count,
		     0);
}

Test(absent_channels, of_an_engine_of_which_only_ended_ones_are_left_none_is)
{
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,1]", "[0,2]") "," CHANNEL(
				  "a/1", "live", "[0,1]", "[1,2]") "," CHANNEL("a/3", "ended",
									       "[0,1]", "[3,4]"),
			  NULL)
			     .count,
		     0);
	cr_expect_eq(find(CHANNEL("a/3", "orphan", "[0,1]", "[3,4]"), NULL).count, 3);
}

Test(absent_channels, those_of_another_engine_are_not_its_own)
{
	const char *both = CHANNEL("a/0", "live", "[0,1]", "[0,2]") "," CHANNEL("ab/0", "live",
										"[0,2]", "[0,2]");

	cr_expect_eq(find(both, "a").count, 1);
	cr_expect_eq(find(both, "ab").count, 2);
	cr_expect_eq(find(both, "b").count, 0);
	cr_expect_eq(find(both, NULL).count, 3);
}

Test(absent_channels, ranks_that_do_not_say_what_they_are_part_of_miss_nothing)
{
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,0]", "[0,0]"), NULL).count, 0);
	cr_expect_eq(find("{\"channel\":\"a/0\",\"state\":\"live\"}", NULL).count, 0);
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,1]", "[-1,4]"), NULL).count, 0);
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,1]", "[4,4]"), NULL).count, 0);
	cr_expect_eq(find(CHANNEL("a/0", "live", "[0,1]", "[0,65537]"), NULL).count, 0);
}
