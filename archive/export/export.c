/* SPDX-License-Identifier: Apache-2.0 */
/* From entries to requests, and which of them are wanted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/export_internal.h"

/* What became of a request that was asked for by its id. */
static const char FATE_ABSENT[] = "is not in the archive";
static const char FATE_OTHER_TIME[] = "did not end between --since and --until";
static const char FATE_ABORTED[] = "was aborted: --include aborted takes it";
static const char FATE_MIXED[] =
	"was joined of requests of one id that several engines ran on their own: leave --ends out, "
	"choose an engine with --instance, or have each engine's ranks tell their coordinates";
static const char FATE_CUT[] = "has more positions than 1048576, which are not put together";
static const char FATE_EVICTED[] = "was too large for the memory: raise --max-memory";
static const char FATE_UNFINISHED[] = "has no end in the archive: --include unfinished takes it";
static const char FATE_GUESSED[] =
	"has an end that does not say how many tokens were kept: --include guessed takes it";

/* ---- opening ------------------------------------------------------------ */

static int open_assembler(struct exporter *exporter, struct r3ring_error *err)
{
	const struct r3ring_assembler_options options = {
		.size = sizeof(options),
		.policy = exporter->options.policy,
		.max_bytes = exporter->options.max_bytes,
		.min_ends = exporter->options.min_ends,
	};

	return r3ring_assembler_create(&exporter->assembler, &options, err);
}

static int open_parts(struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_options *options = &exporter->options;
	int rc;

	exporter->fate = calloc(options->requests + 1, sizeof(*exporter->fate));
	for (uint32_t i = 0; exporter->fate && i < options->requests; i++)
		exporter->fate[i] = FATE_ABSENT;
	exporter->ids = export_ids_create();
	if (options->join)
		exporter->sessions = export_sessions_create();
	if (!exporter->fate || !exporter->ids || (options->join && !exporter->sessions))
		return r3ring_error_set(err, -ENOMEM, "no memory");
	rc = open_assembler(exporter, err);
	return rc ? rc : exporter->format->container->open(&exporter->writer, options->out, err);
}

int export_open(struct exporter **exporter, const struct export_options *options,
		struct r3ring_error *err)
{
	const struct export_format *format = export_format_find(options->format);
	struct exporter *made;
	int rc;

	if (!format)
		return r3ring_error_set(err, -EINVAL,
					"--format %s: there is no such format (--help lists them)",
					options->format);
	rc = export_options_check(options, format, err);
	if (rc)
		return rc;
	made = calloc(1, sizeof(*made));
	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory");
	made->options = *options;
	made->format = format;
	rc = open_parts(made, err);
	if (rc) {
		export_close(made);
		return rc;
	}
	*exporter = made;
	return 0;
}

void export_close(struct exporter *exporter)
{
	if (!exporter)
		return;
	if (exporter->writer)
		exporter->format->container->close(exporter->writer);
	export_reader_close(&exporter->reader);
	export_sessions_destroy(exporter->sessions);
	export_ids_destroy(exporter->ids);
	export_gaps_free(&exporter->gaps);
	r3ring_assembler_destroy(exporter->assembler);
	free(exporter->plan.layer);
	free(exporter->known.layer);
	export_stages_free(&exporter->stages);
	archive_ranks_free(&exporter->ranks);
	free(exporter->fate);
	free(exporter);
}

/* ---- which requests ----------------------------------------------------- */

static bool asked_for(const struct exporter *exporter, const char *id)
{
	const struct export_options *options = &exporter->options;

	for (uint32_t i = 0; i < options->requests; i++)
		if (!strcmp(options->request[i], id))
			return true;
	return !options->requests;
}

/* One that did not fit would have ended later than it was given up. */
static bool in_time(const struct export_options *options, uint32_t flags, uint64_t time_ns)
{
	return (time_ns >= options->since_ns || (flags & R3RING_ASSEMBLED_EVICTED)) &&
	       (!options->until_ns || time_ns < options->until_ns);
}

/* Why a request is left out; NULL: it is not. */
static const char *fate_of(const struct exporter *exporter,
			   const struct r3ring_assembled_info *info, uint64_t time_ns)
{
	const uint32_t include = exporter->options.include;

	if (!in_time(&exporter->options, info->flags, time_ns))
		return FATE_OTHER_TIME;
	if (info->flags & R3RING_ASSEMBLED_MIXED)
		return FATE_MIXED;
	if (info->flags & R3RING_ASSEMBLED_CUT)
		return FATE_CUT;
	if (info->flags & R3RING_ASSEMBLED_ABORTED)
		return include & EXPORT_INCLUDE_ABORTED ? NULL : FATE_ABORTED;
	if (info->flags & R3RING_ASSEMBLED_EVICTED)
		return FATE_EVICTED; /* what it has later would look like another's */
	if (info->flags & R3RING_ASSEMBLED_UNFINISHED)
		return include & EXPORT_INCLUDE_UNFINISHED ? NULL : FATE_UNFINISHED;
	if (info->flags & R3RING_ASSEMBLED_LENGTH_GUESSED)
		return include & EXPORT_INCLUDE_GUESSED ? NULL : FATE_GUESSED;
	return NULL;
}

static void tell(struct export_told *told, const char *id, uint64_t time_ns)
{
	if (told->told == EXPORT_IDS_TOLD)
		return;
	snprintf(told->request[told->told].id, EXPORT_ID_BYTES, "%s", id);
	told->request[told->told++].time_ns = time_ns;
}

static void tell_mixed(struct export_mixed *mixed, const struct r3ring_assembled_info *info)
{
	if (mixed->told == EXPORT_IDS_TOLD)
		return;
	snprintf(mixed->request[mixed->told].id, EXPORT_ID_BYTES, "%s", info->id);
	for (int i = 0; i < 2; i++)
		snprintf(mixed->request[mixed->told].by[i], EXPORT_CHANNEL_BYTES, "%s",
			 info->mixed_by[i]);
	mixed->told++;
}

static void count_fate(struct export_summary *summary, const char *fate,
		       const struct r3ring_assembled_info *info, uint64_t time_ns)
{
	summary->not_asked += fate == FATE_OTHER_TIME;
	summary->other_times += fate == FATE_OTHER_TIME;
	summary->aborted += fate == FATE_ABORTED;
	summary->unfinished += fate == FATE_UNFINISHED;
	summary->guessed += fate == FATE_GUESSED;
	summary->mixed += fate == FATE_MIXED;
	summary->cut += fate == FATE_CUT;
	summary->evicted += fate == FATE_EVICTED;
	if (fate == FATE_MIXED)
		tell_mixed(&summary->mixed_told, info);
	if (fate == FATE_CUT)
		tell(&summary->too_long, info->id, time_ns);
	if (fate == FATE_EVICTED)
		tell(&summary->too_large, info->id, time_ns);
}

/* Of two with one id, the one that is exported counts. */
static void note_fate(struct exporter *exporter, const char *id, const char *fate)
{
	const struct export_options *options = &exporter->options;

	for (uint32_t i = 0; i < options->requests; i++)
		if (exporter->fate[i] && !strcmp(options->request[i], id))
			exporter->fate[i] = fate;
}

/* Asks under each word for it: its id, which all that have it share, its own name, and ID#1 of
 * the first. Returns whether it is asked for. */
static bool asked_by_any(struct exporter *exporter, const char *id, const char *name, bool first)
{
	char number_one[EXPORT_ID_BYTES + 2];
	const char *const words[] = {id, name, number_one};
	bool asked = false;

	snprintf(number_one, sizeof(number_one), "%s#1", id);
	for (size_t i = 0; i < (first ? 3 : 2); i++) {
		asked |= asked_for(exporter, words[i]);
		note_fate(exporter, words[i], NULL);
	}
	return asked;
}

/* Writes one that may be written, if it is asked for by its id or its name. */
static int take_named(struct exporter *exporter, const struct r3ring_assembled *assembled,
		      uint64_t time_ns, struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	char name[EXPORT_ID_BYTES];
	int again = export_ids_name(exporter->ids, info->id, name);

	if (again < 0)
		return r3ring_error_set(err, again, "no memory");
	if (!asked_by_any(exporter, info->id, name, !again)) {
		exporter->summary.not_asked++;
		return 0;
	}
	if (again) {
		exporter->summary.repeated_ids++;
		tell(&exporter->summary.repeated, name, exporter->flushed ? 0 : time_ns);
	}
	exporter->summary.conflicts += info->conflicts;
	return export_write_request(exporter, assembled, name, err);
}

static int take(struct exporter *exporter, const struct r3ring_assembled *assembled,
		uint64_t time_ns, struct r3ring_error *err)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	const char *fate = fate_of(exporter, info, time_ns);
	int rc = export_join_before(exporter, assembled, err);

	if (rc)
		return rc;
	if (!fate)
		return take_named(exporter, assembled, time_ns, err);
	if (asked_for(exporter, info->id)) {
		note_fate(exporter, info->id, fate);
		count_fate(&exporter->summary, fate, info, time_ns);
	} else {
		exporter->summary.not_asked++;
	}
	return 0;
}

int export_take(struct exporter *exporter, uint64_t time_ns, struct r3ring_error *err)
{
	struct r3ring_assembled *assembled;
	int rc = 0;

	while (!rc && (assembled = r3ring_assembler_take(exporter->assembler))) {
		rc = take(exporter, assembled, time_ns, err);
		r3ring_assembled_free(assembled);
	}
	return rc;
}

struct r3ring_assembler *export_assembler(struct exporter *exporter)
{
	return exporter->assembler;
}

/* ---- entries ------------------------------------------------------------ */

static bool of_instance(const struct exporter *exporter, const char *channel)
{
	const char *instance = exporter->options.instance;
	size_t len = instance ? strlen(instance) : 0;

	return !instance || (!strncmp(channel, instance, len) && channel[len] == '/');
}

/* Those that there are instead of the one that was asked for, as far as there is room. */
static void note_other(struct exporter *exporter, const char *channel)
{
	const int len = (int)strcspn(channel, "/");
	const size_t used = strlen(exporter->others);
	char found[R3RING_INSTANCE_MAX + 4];

	snprintf(found, sizeof(found), " %.*s,", len, channel);
	if (strstr(exporter->others, found) || used + strlen(found) >= sizeof(exporter->others))
		return;
	memcpy(exporter->others + used, found, strlen(found) + 1);
}

static int place_error(struct r3ring_error *err, int code, const struct archive_item *item,
		       const char *what)
{
	return r3ring_error_set(err, code, "segment %llu, block at %llu, entry %u (channel %s): %s",
				(unsigned long long)item->place.segment,
				(unsigned long long)item->place.offset, item->place.entry,
				item->name, what);
}

static bool is_draft(const char *channel)
{
	const char *end = strrchr(channel, '.');

	return end && !strcmp(end, ".draft");
}

static int note_schema(struct exporter *exporter, const char *channel,
		       const struct r3ring_record *record, struct r3ring_error *err)
{
	int rc = archive_ranks_note(&exporter->ranks, channel, &record->u.schema.head);

	if (!rc && !exporter->begun)
		rc = export_layers_add(&exporter->known, record->u.schema.layers,
				       record->u.schema.head.layers);
	if (!rc && !exporter->begun)
		rc = export_stages_note(&exporter->stages, record);
	return rc ? r3ring_error_set(err, rc, "no memory") : 0;
}

static int feed_record(struct exporter *exporter, uint32_t channel, const struct archive_item *item,
		       struct r3ring_error *err)
{
	const struct r3ring_view *view = &item->view;
	struct r3ring_record record;
	struct r3ring_error why = {0};
	int rc = r3ring_record_decode(&record, view->type, view->data, view->len, &why);

	if (rc == -ENOTSUP)
		return 0;
	if (rc)
		return place_error(err, rc, item, why.text);
	rc = r3ring_assembler_feed(exporter->assembler, channel, view, &record);
	if (rc == -EPROTO)
		return place_error(err, rc, item,
				   "is of another model than those before it: export them apart, "
				   "with --instance");
	if (rc)
		return place_error(err, rc, item, "no memory");
	if (view->type == R3RING_SCHEMA && !is_draft(item->name))
		return note_schema(exporter, item->name, &record, err);
	return 0;
}

static int feed_skipped(struct exporter *exporter, uint32_t channel,
			const struct archive_item *item, struct r3ring_error *err)
{
	exporter->summary.kept = item->u.kept;
	if (r3ring_assembler_skip(exporter->assembler, channel, &item->view,
				  item->u.kept.layer_first, item->u.kept.layer_end))
		return place_error(err, -ENOMEM, item, "no memory");
	return 0;
}

/* Of an instance that is wanted. */
static int feed_wanted(struct exporter *exporter, const struct archive_item *item,
		       struct r3ring_error *err)
{
	int channel = r3ring_assembler_channel(exporter->assembler, item->name);
	int rc = 0;

	exporter->instance_seen = true;
	if (channel < 0)
		return place_error(err, channel == -ENOMEM ? -ENOMEM : -EBADMSG, item,
				   "no name of a channel");
	if (!is_draft(item->name) &&
	    export_gaps_note(&exporter->gaps, (uint32_t)channel, item, &exporter->summary.losses))
		return place_error(err, -ENOMEM, item, "no memory");
	if (item->kind == ARCHIVE_GAP)
		r3ring_assembler_gap(exporter->assembler, (uint32_t)channel);
	else if (item->kind == ARCHIVE_UNFOLLOWED)
		r3ring_assembler_unfollowed(exporter->assembler, (uint32_t)channel);
	else if (item->kind == ARCHIVE_SKIPPED)
		rc = feed_skipped(exporter, (uint32_t)channel, item, err);
	else if (item->kind == ARCHIVE_RECORD)
		rc = feed_record(exporter, (uint32_t)channel, item, err);
	return rc ? rc : export_take(exporter, item->time_ns, err);
}

int export_feed(struct exporter *exporter, const struct archive_item *item,
		struct r3ring_error *err)
{
	export_gaps_begin(&exporter->gaps, item, &exporter->summary.losses);
	if (item->kind == ARCHIVE_CHANNEL || item->kind == ARCHIVE_RESUMED)
		return 0;
	if (of_instance(exporter, item->name))
		return feed_wanted(exporter, item, err);
	if (item->kind == ARCHIVE_GENERATION)
		note_other(exporter, item->name);
	return 0;
}

void export_note_damage(struct exporter *exporter, const struct export_damage *damage)
{
	exporter->summary.losses.damage = *damage;
}

void export_note_beginning_lost(struct exporter *exporter)
{
	exporter->gaps.lacks_beginning = true;
}

/* ---- the end ------------------------------------------------------------ */

uint64_t export_summary_filled(const struct export_summary *summary)
{
	uint64_t cells = 0;

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		cells += summary->filled[cause];
	return cells;
}

static void sum_up(const struct exporter *exporter, struct export_summary *summary)
{
	struct r3ring_assembler_stats stats;

	r3ring_assembler_get_stats(exporter->assembler, &stats);
	*summary = exporter->summary;
	export_gaps_sum(&exporter->gaps, &summary->losses);
	archive_ranks_absent(&exporter->ranks, &summary->losses.absent);
	summary->format = exporter->format->name;
	summary->warning = exporter->format->missing[exporter->plan.missing].why;
	summary->dtype = exporter->plan.dtype;
	summary->missing = exporter->plan.missing;
	summary->pad = exporter->plan.pad;
	summary->rule = exporter->plan.rows;
	summary->layers = exporter->plan.layers;
	summary->mtp_layers = export_plan_mtp_layers(&exporter->plan);
	summary->top_k = exporter->plan.top_k;
	summary->experts = exporter->plan.experts;
	summary->cells = summary->rows * exporter->plan.layers;
	summary->unattributed = stats.rows_unattributed;
	summary->keys_forgotten = stats.keys_forgotten;
	summary->rows_beyond = stats.rows_beyond;
}

/* All ranks of an engine must tell of a request's end: it is over where the archive is, else. */
static int check_times(const struct exporter *exporter, struct r3ring_error *err)
{
	const struct export_options *options = &exporter->options;
	struct archive_absent_ranks absent;

	archive_ranks_absent(&exporter->ranks, &absent);
	if ((!options->since_ns && !options->until_ns) || options->min_ends || !absent.parts)
		return 0;
	return r3ring_error_set(err, -ENODATA,
				"%s: %" PRIu64 " ranks of the engine were not recorded, so that "
				"not all told of the ends of requests; nothing is written. Give "
				"--ends N, how many of its ranks are here",
				options->since_ns ? "--since" : "--until", absent.parts);
}

int export_finish(struct exporter *exporter, struct export_summary *summary,
		  struct r3ring_error *err)
{
	int rc = check_times(exporter, err);

	if (rc)
		return rc;
	exporter->flushed = true;
	r3ring_assembler_flush(exporter->assembler);
	rc = export_take(exporter, exporter->options.since_ns, err);
	if (!rc)
		rc = export_check_found(exporter, err);
	if (!rc)
		rc = exporter->format->container->finish(exporter->writer, &exporter->summary.bytes,
							 err);
	if (!rc && summary)
		sum_up(exporter, summary);
	return rc;
}
