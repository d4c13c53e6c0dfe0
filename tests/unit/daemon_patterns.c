/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of channel names: which are ones, and whom they fit. */
#include <criterion/criterion.h>

#include <string.h>

#include "capture_daemon/patterns.h"

Test(daemon_patterns, one_of_several_that_fits_all_of_a_name_is_enough)
{
	cr_expect(patterns_fit("none/*,rl-*/0", "rl-7/0"));
	cr_expect(patterns_fit("eval[0-9]/[!1]", "eval3/0"));
	cr_expect_not(patterns_fit("eval[0-9]/[!1]", "eval3/1"));
	cr_expect_not(patterns_fit("rl-*/0", "rl-7/01"));
	cr_expect_not(patterns_fit("", "rl-7/0"));
}

Test(daemon_patterns, what_glob_knows_is_valid)
{
	static const char *const valid[] = {
		"*",       "rl-*/*,eval/0", "a?/[0-9]",      "[]a]/0",
		"[!]a]/0", "[^]]/0",        "[[:digit:]]/0", "[[.-.]a]/0",
		"a\\*/0",  "[\\]]/0",       "]/0",
	};

	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		cr_expect(patterns_valid(valid[i]), "%s", valid[i]);
}

Test(daemon_patterns, what_can_fit_no_name_is_not)
{
	static const char *const invalid[] = {
		"[",       "a[0-9/0", "[]",   "[!]",      "[[:digit:/0", "[[:digit:]", "a/0,[",
		"[a,b]/0", "a/0,",    ",a/0", "a/0,,b/0", "a\\",         "[\\]",
	};

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		cr_expect_not(patterns_valid(invalid[i]), "%s", invalid[i]);
}
