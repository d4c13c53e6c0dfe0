/* SPDX-License-Identifier: Apache-2.0 */
/* An engine that closes just when the daemon ends. */
#include <criterion/criterion.h>

#include "tests/support/drain_image.h"

static struct drain_image image;
static struct drain_image_rig rig;

static struct drain_image_result work(const struct drain_image_run *run)
{
	struct drain_image_result result;

	drain_image_work(&rig, &image, run, NULL, NULL, &result);
	cr_expect_null(result.wrong, "%s", result.wrong);
	return result;
}

Test(daemon_late, what_is_submitted_behind_the_threads_last_look_is_told_too)
{
	struct drain_image_result in_time, late;

	drain_image_open(&rig);
	drain_image_make(&image);
	in_time = work(&(struct drain_image_run){.producer = DRAIN_PRODUCER_CLOSED});
	late = work(&(struct drain_image_run){.producer = DRAIN_PRODUCER_CLOSED, .late = true});
	cr_expect_eq(in_time.steps, DRAIN_IMAGE_STEPS);
	cr_expect_eq(late.steps, in_time.steps);
	cr_expect_eq(late.records, in_time.records);
	drain_image_close(&rig);
}
