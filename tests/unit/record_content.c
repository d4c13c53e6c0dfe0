/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording notes of the records that it takes. */
#include <criterion/criterion.h>

#include "tools/record.h"

static void note(struct record_report *report, uint16_t type, uint16_t flags)
{
	struct channel_losses losses = {0};
	const uint8_t payload[4] = {0};
	const struct r3ring_view view = {
		.type = type, .flags = flags, .data = payload, .len = sizeof(payload)};

	record_content_note(report, &losses, &view);
}

Test(record_content, a_payload_that_says_nothing_is_counted_whatever_it_should_be)
{
	struct record_report report = {0};

	note(&report, R3RING_LAYER, 0);
	note(&report, R3RING_LOST, 0);
	note(&report, R3RING_REQUEST, R3RING_DESC_REPEATED);
	cr_expect_eq(report.unreadable, 3);
}

Test(record_content, a_type_of_a_later_version_is_not_damaged)
{
	struct record_report report = {0};

	note(&report, R3RING_RECORD_TYPES + 1, 0);
	cr_expect_eq(report.unreadable, 0);
}
