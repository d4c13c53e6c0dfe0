/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/lost_text.h"

#include <inttypes.h>

#include "tools/json_values.h"

static void print_causes(FILE *out, const char *separator, const uint64_t *steps,
			 const uint64_t *rows)
{
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (!steps[cause] && !rows[cause])
			continue;
		fprintf(out, "%s%s %" PRIu64 " steps (%" PRIu64 " rows)", separator,
			r3ring_cause_name(cause), steps[cause], rows[cause]);
		separator = ", ";
	}
}

bool lost_text_print(FILE *out, const char *indent, const struct lost_account *lost)
{
	const bool any = lost_account_steps(lost) > 0;
	const bool more = lost_account_more(lost);

	if (!any && !more)
		return false;
	fprintf(out, "%slost by the channels: ", indent);
	print_causes(out, more ? "at least " : "", lost->steps, lost->rows);
	if (!any)
		fputs("nothing that is known", out);
	if (lost->unproved)
		fprintf(out, ": behind %" PRIu64 " gaps no keyframe came that would tell more",
			lost->unproved);
	if (lost->unfollowed)
		fprintf(out,
			"%s behind %" PRIu64 " ends of generations only the engine knows what it "
			"ran",
			lost->unproved ? ", and" : ":", lost->unfollowed);
	fputc('\n', out);
	if (lost_account_unheard(lost)) {
		fprintf(out, "%sof these told by totals only: ", indent);
		print_causes(out, "", lost->unheard_steps, lost->unheard_rows);
		fputs(": their records fell into a gap\n", out);
	}
	return true;
}

json_t *lost_text_unheard_json(const struct lost_account *lost)
{
	return json_lost(lost->unheard_steps, lost->unheard_rows, "none");
}
