/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon that executes itself anew is told. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "capture_daemon/anew.h"

Test(daemon_anew, failure_12_only_the_channels_that_are_named_had_failed_copies)
{
	cr_expect_not(anew_copy_failed("demo/0"));
	setenv("R3RINGD_COPY_FAILED", "demo/0,demo/10,other/1.draft,", 1);
	cr_expect(anew_copy_failed("demo/0"));
	cr_expect(anew_copy_failed("demo/10"));
	cr_expect(anew_copy_failed("other/1.draft"));
	cr_expect_not(anew_copy_failed("demo/1"));
	cr_expect_not(anew_copy_failed("emo/0"));
	cr_expect_not(anew_copy_failed("other/1"));
	cr_expect_not(anew_copy_failed(""));
}

Test(daemon_anew, a_list_that_is_none_names_nobody)
{
	setenv("R3RINGD_COPY_FAILED", "demo/0", 1);
	cr_expect_not(anew_copy_failed("demo/0"));
	setenv("R3RINGD_COPY_FAILED", "", 1);
	cr_expect_not(anew_copy_failed("demo/0"));
}
