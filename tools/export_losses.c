/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring export: where records were lost, and requests that have the id of another, or too much. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "archive/export/ids.h"
#include "archive/verify.h"
#include "tools/absent_ranks.h"
#include "tools/export.h"
#include "tools/json_values.h"
#include "tools/lost_text.h"
#include "tools/plain_text.h"

#define TIME_TEXT 32
#define NS 1000000000

static const char *time_text(char text[TIME_TEXT], uint64_t ns)
{
	const time_t seconds = (time_t)(ns / NS);
	struct tm utc;

	if (!gmtime_r(&seconds, &utc) || !strftime(text, TIME_TEXT, "%FT%TZ", &utc))
		snprintf(text, TIME_TEXT, "?");
	return text;
}

/* ---- as text ------------------------------------------------------------ */

static void print_steps(const struct export_gap *gap)
{
	if (gap->step_before && gap->step_after)
		fprintf(stderr, ", behind step %" PRIu64 " and before %" PRIu64, gap->step_before,
			gap->step_after);
	else if (gap->step_before)
		fprintf(stderr, ", behind step %" PRIu64, gap->step_before);
	else if (gap->step_after)
		fprintf(stderr, ", before step %" PRIu64, gap->step_after);
}

static void print_gap(const struct export_gap *gap)
{
	char from[TIME_TEXT], to[TIME_TEXT];

	fprintf(stderr, "    %s, generation %" PRIu64 ": ", gap->channel, gap->generation);
	if (gap->lost)
		fprintf(stderr, "%" PRIu64 " records", gap->lost);
	else
		fputs("nobody knows how many records", stderr);
	fprintf(stderr, " (%s)", archive_gap_cause_name(gap->cause));
	print_steps(gap);
	if (gap->from_ns)
		fprintf(stderr, ", %s to", time_text(from, gap->from_ns));
	else
		fputs(", until", stderr);
	fprintf(stderr, " %s\n", time_text(to, gap->to_ns));
}

static void print_rotated(const struct export_rotated *rotated)
{
	char from[TIME_TEXT];

	if (rotated->segments)
		fprintf(stderr,
			"  the oldest %" PRIu64
			" segments were removed by the recorder (--rotate): what is there "
			"begins at %s; requests before that are not in the output, and nobody "
			"can tell how many\n",
			rotated->segments, time_text(from, rotated->from_ns));
}

static void print_damage(const struct export_damage *damage)
{
	if (!damage->places)
		return;
	fprintf(stderr,
		"  the archive is damaged in %" PRIu64 " places, for which %" PRIu64
		" bytes are not read",
		damage->places, damage->bytes);
	if (damage->records || !damage->unsized)
		fprintf(stderr, " with %s%" PRIu64 " records", damage->unsized ? "at least " : "",
			damage->records);
	fputs("; the first: ", stderr);
	plain_text_print(stderr, damage->first, strlen(damage->first));
	fputc('\n', stderr);
}

void export_print_losses(const struct export_losses *losses)
{
	print_rotated(&losses->rotated);
	print_damage(&losses->damage);
	absent_ranks_print(stderr, "  not recorded", &losses->absent);
	lost_text_print(stderr, "  ", &losses->channels);
	if (!losses->gaps)
		return;
	fprintf(stderr,
		"  records were lost in %" PRIu64
		" places; requests that began and ended there are "
		"not in the output, and nobody can tell how many:\n",
		losses->gaps);
	for (uint32_t i = 0; i < losses->told; i++)
		print_gap(&losses->gap[i]);
	if (losses->gaps > losses->told)
		fprintf(stderr, "    and %" PRIu64 " more\n", losses->gaps - losses->told);
}

void export_print_repeated(const struct export_summary *summary)
{
	const struct export_told *told = &summary->repeated;
	char when[TIME_TEXT], id[EXPORT_ID_WORDS];

	if (!summary->repeated_ids)
		return;
	fprintf(stderr,
		"  %" PRIu64 " requests have the id of one before, and a name of their own:\n",
		summary->repeated_ids);
	for (uint32_t i = 0; i < told->told; i++) {
		export_id_words(id, told->request[i].id);
		fputs("    ", stderr);
		plain_text_print(stderr, id, strlen(id));
		if (told->request[i].time_ns)
			fprintf(stderr, ", which ended at %s\n",
				time_text(when, told->request[i].time_ns));
		else
			fputs(", of whose end not all its channels told\n", stderr);
	}
	if (summary->repeated_ids > told->told)
		fprintf(stderr, "    and %" PRIu64 " more\n", summary->repeated_ids - told->told);
}

void export_print_mixed(const struct export_summary *summary)
{
	const struct export_mixed *told = &summary->mixed_told;

	if (!summary->mixed)
		return;
	fprintf(stderr,
		"  left out: %" PRIu64
		" that were joined of requests of one id, of which nobody can tell which "
		"parts are one request:\n",
		summary->mixed);
	for (uint32_t i = 0; i < told->told; i++) {
		const char *one = told->request[i].by[0], *other = told->request[i].by[1];

		if (strcmp(one, other) == 0)
			fprintf(stderr, "    '%s', of which %s ran two at a time\n",
				told->request[i].id, one);
		else
			fprintf(stderr, "    '%s', which %s and %s each ran\n", told->request[i].id,
				one, other);
	}
	if (summary->mixed > told->told)
		fprintf(stderr, "    and %" PRIu64 " more\n", summary->mixed - told->told);
}

void export_print_cut(const struct export_summary *summary)
{
	const struct export_told *told = &summary->too_long;

	if (!summary->cut)
		return;
	fprintf(stderr,
		"  left out: %" PRIu64
		" of more positions than are put together (2^20), with %" PRIu64
		" rows behind those:\n",
		summary->cut, summary->rows_beyond);
	for (uint32_t i = 0; i < told->told; i++)
		fprintf(stderr, "    '%s'\n", told->request[i].id);
	if (summary->cut > told->told)
		fprintf(stderr, "    and %" PRIu64 " more\n", summary->cut - told->told);
}

/* ---- as JSON ------------------------------------------------------------ */

static json_t *json_gap(const struct export_gap *gap)
{
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "channel",
			 gap->channel, "generation", json_u64(gap->generation), "cause",
			 archive_gap_cause_name(gap->cause), "records",
			 gap->lost ? json_u64(gap->lost) : json_null(), "step_before",
			 gap->step_before ? json_u64(gap->step_before) : json_null(), "step_after",
			 gap->step_after ? json_u64(gap->step_after) : json_null(), "from_ns",
			 gap->from_ns ? json_u64(gap->from_ns) : json_null(), "to_ns",
			 json_u64(gap->to_ns), "segment", json_u64(gap->place.segment), "offset",
			 json_u64(gap->place.offset));
}

static json_t *json_rotated(const struct export_rotated *rotated)
{
	if (!rotated->segments)
		return json_null();
	return json_pack("{s:o, s:o}", "segments", json_u64(rotated->segments), "from_ns",
			 json_u64(rotated->from_ns));
}

static json_t *json_damage(const struct export_damage *damage)
{
	if (!damage->places)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:b, s:o}", "places", json_u64(damage->places), "bytes",
			 json_u64(damage->bytes), "records", json_u64(damage->records), "more",
			 damage->unsized != 0, "first",
			 json_text(damage->first, strlen(damage->first)));
}

json_t *export_json_losses(const struct export_losses *losses)
{
	json_t *told = json_array();

	for (uint32_t i = 0; told && i < losses->told; i++)
		json_array_append_new(told, json_gap(&losses->gap[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "gaps",
			 json_u64(losses->gaps), "by_channels",
			 json_lost(losses->channels.steps, losses->channels.rows, "none"),
			 "by_totals_only", lost_text_unheard_json(&losses->channels),
			 "gaps_unproved", json_u64(losses->channels.unproved), "ends_unfollowed",
			 json_u64(losses->channels.unfollowed), "records",
			 json_u64(losses->records), "gaps_of_unknown_size",
			 json_u64(losses->unsized), "told", told, "rotated_out",
			 json_rotated(&losses->rotated), "damage", json_damage(&losses->damage),
			 "not_recorded", absent_ranks_json(&losses->absent));
}

static json_t *json_channel(const char *name)
{
	return json_text(name, strlen(name));
}

json_t *export_json_mixed(const struct export_mixed *mixed)
{
	json_t *told = json_array();

	for (uint32_t i = 0; told && i < mixed->told; i++)
		json_array_append_new(
			told,
			json_pack("{s:o, s:[o, o]}", "request",
				  json_text(mixed->request[i].id, strlen(mixed->request[i].id)),
				  "channels", json_channel(mixed->request[i].by[0]),
				  json_channel(mixed->request[i].by[1])));
	return told;
}

json_t *export_json_repeated(const struct export_summary *summary)
{
	const struct export_told *told = &summary->repeated;
	json_t *names = json_array();

	for (uint32_t i = 0; names && i < told->told; i++)
		json_array_append_new(names,
				      json_text(told->request[i].id, strlen(told->request[i].id)));
	return json_pack("{s:o, s:o}", "requests", json_u64(summary->repeated_ids), "told", names);
}
