/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring verify: its reports. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/absent_ranks.h"
#include "tools/json_values.h"
#include "tools/lost_text.h"
#include "tools/plain_text.h"
#include "tools/quantity.h"
#include "tools/verify.h"
#include "tools/words.h"

/* ---- for people -------------------------------------------------------- */

static uint64_t all_records(const struct archive_verified *verified)
{
	uint64_t sum = 0;

	for (uint32_t type = 0; type < R3RING_RECORD_TYPES; type++)
		sum += verified->records[type];
	return sum;
}

static void print_time(FILE *out, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	struct tm utc;
	char text[32];

	if (!gmtime_r(&seconds, &utc) || !strftime(text, sizeof(text), "%FT%TZ", &utc))
		snprintf(text, sizeof(text), "@%" PRIu64, (uint64_t)seconds);
	fputs(text, out);
}

static void print_size(FILE *out, const struct archive_verified *v)
{
	char disk[QUANTITY_TEXT], ring[QUANTITY_TEXT];

	fprintf(out, "  segments %" PRIu64, v->first_segment);
	if (v->last_segment > v->first_segment)
		fprintf(out, " to %" PRIu64, v->last_segment);
	fprintf(out, ", %s on disk for %s from the rings (1 : %.2f)",
		quantity_bytes(disk, v->bytes), quantity_bytes(ring, v->ring_bytes),
		v->bytes ? (double)v->ring_bytes / (double)v->bytes : 0);
	if (v->first_ns) {
		fputs(", ", out);
		print_time(out, v->first_ns);
		fputs(" to ", out);
		print_time(out, v->last_ns);
	}
	fputs(v->being_written ? ", being written\n" : "\n", out);
}

static void print_records(FILE *out, const struct archive_verified *v)
{
	const char *separator = ":";
	char word[WORD_MAX];

	fprintf(out, "  %" PRIu64 " channels, %" PRIu64 " generations, %" PRIu64 " records",
		v->channels, v->generations, all_records(v));
	for (uint16_t type = 0; type < R3RING_RECORD_TYPES; type++) {
		if (!v->records[type])
			continue;
		fprintf(out, "%s %s %" PRIu64, separator,
			type ? word_lower(word, r3ring_record_type_name(type)) : "unknown",
			v->records[type]);
		separator = ",";
	}
	fputc('\n', out);
	if (v->skipped)
		fprintf(out,
			"  of layers %u to %u only (record --layers): %" PRIu64
			" layer records of others were left out\n",
			v->kept.layer_first, v->kept.layer_end - 1, v->skipped);
}

static void print_content(FILE *out, const struct archive_verified *v)
{
	fprintf(out,
		"  %" PRIu64 " attempts of requests begun, %" PRIu64 " ended; %" PRIu64
		" steps begun; ended: %" PRIu64 " complete, %" PRIu64 " partial, %" PRIu64
		" dropped; %" PRIu64 " rows, %" PRIu64 " rows x layers\n",
		v->requests_begun, v->requests_ended, v->steps, v->steps_complete, v->steps_partial,
		v->steps_dropped, v->rows, v->layer_rows);
	if (v->again.steps || v->again.attempts)
		fprintf(out,
			"  of these told again by a generation that went on: %" PRIu64
			" steps (%" PRIu64 " rows), %" PRIu64 " attempts\n",
			v->again.steps, v->again.rows, v->again.attempts);
}

static void print_losses(FILE *out, const struct archive_verified *v)
{
	const char *separator = "  not recorded:";

	lost_text_print(out, "  ", &v->lost);
	for (uint32_t cause = ARCHIVE_GAP_LATE; cause < ARCHIVE_GAP_CAUSES; cause++) {
		if (!v->gaps[cause])
			continue;
		fprintf(out, "%s %s %" PRIu64 " records in %" PRIu64 " gaps", separator,
			archive_gap_cause_name(cause), v->gap_records[cause], v->gaps[cause]);
		separator = ",";
	}
	if (v->gaps_unsized)
		fprintf(out, ", %" PRIu64 " of them of unknown size", v->gaps_unsized);
	if (separator[0] == ',')
		fputc('\n', out);
}

static void print_unread(FILE *out, const struct archive_unread *unread)
{
	if (!unread->bytes)
		return;
	fprintf(out,
		"  not read for damage, and but for gaps in no figure here: %" PRIu64
		" bytes with ",
		unread->bytes);
	if (unread->records)
		fprintf(out, "%s%" PRIu64 " records\n", unread->unsized ? "at least " : "",
			unread->records);
	else
		fputs("records of a number that is not known\n", out);
}

void verify_print(FILE *out, const char *dir, const struct archive_verified *verified)
{
	plain_text_print(out, dir, strlen(dir));
	if (verified->problems)
		fprintf(out, ": %" PRIu64 " problems\n", verified->problems);
	else
		fputs(verified->absent.count ? ": all that was recorded is true\n"
					     : ": all of it is true\n",
		      out);
	print_size(out, verified);
	print_records(out, verified);
	print_content(out, verified);
	absent_ranks_print(out, "  not recorded", &verified->absent);
	print_losses(out, verified);
	print_unread(out, &verified->unread);
	if (verified->resumed)
		fprintf(out,
			"  recorders went on %" PRIu64 " times and cut %" PRIu64
			" bytes that were not whole\n",
			verified->resumed, verified->cut_bytes);
}

/* ---- for programs ------------------------------------------------------ */

static json_t *records_json(const struct archive_verified *v)
{
	json_t *object = json_object();
	char word[WORD_MAX];

	for (uint16_t type = 0; object && type < R3RING_RECORD_TYPES; type++)
		json_object_set_new(
			object, type ? word_lower(word, r3ring_record_type_name(type)) : "unknown",
			json_u64(v->records[type]));
	return object;
}

static json_t *gaps_json(const struct archive_verified *v)
{
	json_t *object = json_object();

	for (uint32_t cause = ARCHIVE_GAP_LATE; object && cause < ARCHIVE_GAP_CAUSES; cause++) {
		if (v->gaps[cause])
			json_object_set_new(object, archive_gap_cause_name(cause),
					    json_pack("{s:o, s:o}", "gaps",
						      json_u64(v->gaps[cause]), "records",
						      json_u64(v->gap_records[cause])));
	}
	return object;
}

static json_t *steps_json(const struct archive_verified *v)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "announced", json_u64(v->steps), "complete",
			 json_u64(v->steps_complete), "partial", json_u64(v->steps_partial),
			 "dropped", json_u64(v->steps_dropped));
}

static json_t *kept_json(const struct archive_kept *kept)
{
	return kept->layer_end ? json_pack("[i, i]", (int)kept->layer_first, (int)kept->layer_end)
			       : json_null();
}

json_t *verify_json(const char *dir, const struct archive_verified *v, json_t *problems)
{
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o}",
		"archive", json_text(dir, strlen(dir)), "true", v->problems == 0, "problems",
		json_u64(v->problems), "told", problems, "uuid", json_hex(v->uuid, 16),
		"being_written", v->being_written, "first_segment", json_u64(v->first_segment),
		"last_segment", json_u64(v->last_segment), "segments", json_u64(v->segments),
		"blocks", json_u64(v->blocks), "bytes", json_u64(v->bytes), "ring_bytes",
		json_u64(v->ring_bytes), "first_ns", json_u64(v->first_ns), "last_ns",
		json_u64(v->last_ns), "channels", json_u64(v->channels), "generations",
		json_u64(v->generations), "records", records_json(v), "skipped",
		json_u64(v->skipped), "layers_kept", kept_json(&v->kept), "steps", steps_json(v),
		"rows", json_u64(v->rows), "layer_rows", json_u64(v->layer_rows), "requests_begun",
		json_u64(v->requests_begun), "requests_ended", json_u64(v->requests_ended),
		"told_again",
		json_pack("{s:o, s:o, s:o}", "steps", json_u64(v->again.steps), "rows",
			  json_u64(v->again.rows), "attempts", json_u64(v->again.attempts)),
		"lost", json_lost(v->lost.steps, v->lost.rows, "none"), "lost_by_totals_only",
		lost_text_unheard_json(&v->lost), "lost_gaps_unproved", json_u64(v->lost.unproved),
		"lost_ends_unfollowed", json_u64(v->lost.unfollowed), "gaps", gaps_json(v),
		"gaps_unsized", json_u64(v->gaps_unsized), "unread",
		json_pack("{s:o, s:o, s:b}", "bytes", json_u64(v->unread.bytes), "records",
			  json_u64(v->unread.records), "more", v->unread.unsized != 0),
		"not_recorded", absent_ranks_json(&v->absent), "resumed",
		json_pack("{s:o, s:o}", "times", json_u64(v->resumed), "cut_bytes",
			  json_u64(v->cut_bytes)));
}
