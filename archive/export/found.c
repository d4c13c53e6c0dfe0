/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was asked for is there; and if not, what is there instead. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/export/export_internal.h"

#define TEXT_BYTES 320
#define UNFOLLOWED "ends of generations behind which an engine may have run more"
#define ROTATED_OUT "oldest segments were removed by the recorder (--rotate)"

/* "N WHAT" behind what there is already. */
static void add(char text[TEXT_BYTES], uint64_t count, const char *what)
{
	const size_t used = strlen(text);

	if (count)
		snprintf(text + used, TEXT_BYTES - used, "%s%" PRIu64 " %s", used ? ", " : "",
			 count, what);
}

const char *export_unfinished_words(const struct export_options *options)
{
	return options->min_ends > 1 ? "whose end fewer channels told than --ends asks for"
				     : "unfinished (--include unfinished takes them)";
}

static int check_asked(const struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_options *options = &exporter->options;
	const struct export_losses *losses = &exporter->summary.losses;
	char lost[64] = "", unfollowed[96] = "", rotated[TEXT_BYTES] = "", id[EXPORT_ID_WORDS];

	if (losses->gaps)
		snprintf(lost, sizeof(lost), "; records were lost in %" PRIu64 " places",
			 losses->gaps);
	if (losses->channels.unfollowed)
		snprintf(unfollowed, sizeof(unfollowed), "; %" PRIu64 " " UNFOLLOWED,
			 losses->channels.unfollowed);
	if (losses->rotated.segments)
		snprintf(rotated, sizeof(rotated), "; %" PRIu64 " " ROTATED_OUT,
			 losses->rotated.segments);
	for (uint32_t i = 0; i < options->requests; i++)
		if (exporter->fate[i])
			return r3ring_error_set(err, -ENOENT,
						"request '%s' %s%s%s%s; nothing is written",
						export_id_words(id, options->request[i]),
						exporter->fate[i], lost, unfollowed, rotated);
	return 0;
}

/* Not even one. */
static int say_none(const struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_summary *summary = &exporter->summary;
	const char *instance = exporter->options.instance;
	struct r3ring_assembler_stats stats;
	char left[TEXT_BYTES] = "";

	if (instance && !exporter->instance_seen)
		return r3ring_error_set(err, -ENOENT,
					"--instance %s: no channel of the archive is of it; there "
					"are%.*s",
					instance, (int)strlen(exporter->others) - 1,
					exporter->others);
	r3ring_assembler_get_stats(exporter->assembler, &stats);
	add(left, summary->unfinished, export_unfinished_words(&exporter->options));
	add(left, summary->aborted, "aborted (--include aborted takes them)");
	add(left, summary->guessed, "of unknown length (--include guessed takes them)");
	add(left, summary->mixed, "joined of requests of one id that engines ran on their own");
	add(left, summary->cut, "longer than any that is put together");
	add(left, summary->other_times, "ended at other times (--since, --until)");
	add(left, stats.rows_unattributed, "rows of requests that nobody announced");
	add(left, summary->losses.gaps, "places where records were lost");
	add(left, summary->losses.channels.unfollowed, UNFOLLOWED);
	add(left, summary->losses.rotated.segments, ROTATED_OUT);
	return r3ring_error_set(err, -ENOENT,
				"no request is there to be exported (%s); nothing is written",
				left[0] ? left : "the archive has none");
}

/* What did not fit is not whole, and the output would not be either. */
static int check_fit(const struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_summary *summary = &exporter->summary;
	const struct export_told *told = &summary->too_large;
	char names[TEXT_BYTES] = "", id[EXPORT_ID_WORDS];

	if (!summary->evicted)
		return 0;
	for (uint32_t i = 0; i < told->told; i++) {
		const size_t used = strlen(names);

		export_id_words(id, told->request[i].id);
		if (used + strlen(id) + sizeof(", ''") > sizeof(names))
			break;
		snprintf(names + used, sizeof(names) - used, "%s'%s'", i ? ", " : "", id);
	}
	return r3ring_error_set(
		err, -ENOBUFS,
		"%" PRIu64 " requests did not fit into the memory for requests at work: %s%s; "
		"nothing is written. Raise --max-memory",
		summary->evicted, names, summary->evicted > told->told ? ", ..." : "");
}

int export_check_found(const struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_options *options = &exporter->options;
	const struct export_summary *summary = &exporter->summary;
	int rc = check_asked(exporter, err);

	if (!rc)
		rc = check_fit(exporter, err);
	if (rc)
		return rc;
	if (!exporter->begun)
		return say_none(exporter, err);
	if (summary->rows || !(options->position_first || options->position_end))
		return 0;
	return r3ring_error_set(err, -ENOENT,
				"--positions %u:%u: no request has a row there, the longest has "
				"%u; nothing is written",
				options->position_first, options->position_end, summary->longest);
}
