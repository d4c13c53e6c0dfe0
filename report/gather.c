/* SPDX-License-Identifier: Apache-2.0 */
/* From entries of an archive to what is shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/assembler.h>

#include "archive/count.h"
#include "report/given_up.h"
#include "report/report.h"
#include "report/routes.h"

#define PROGRESS_BYTES (8u << 20)
#define STEPS_AT_ONCE 1024u /* so that fewer than 2^32 ids are between two snapshots */

struct clock { /* of a channel */
	int64_t realtime_offset_ns;
	bool known;
};

struct gathering {
	struct report *report;
	const struct report_options *options;
	struct r3ring_error *err;
	struct r3ring_assembler *assembler;
	struct r3ring_load_snapshot *snapshot;
	struct clock *clock; /* [clocks] by the reader's channel numbers */
	uint32_t clocks;
	struct archive_ranks ranks;
	uint32_t piece;       /* of the series, that what is counted belongs to */
	uint32_t steps;       /* since the newest snapshot */
	struct routes routes; /* of the requests that were asked for */
	struct given_up given_up;
	bool *found; /* [options->requests] */
	bool any;    /* an entry of the instance */
};

static int no_memory(struct gathering *g)
{
	return r3ring_error_set(g->err, -ENOMEM, "no memory for a report");
}

/* ---- which entries --------------------------------------------------------------- */

static bool of_instance(const struct report_options *options, const char *channel)
{
	size_t len = options->instance ? strlen(options->instance) : 0;

	return !len || (!strncmp(channel, options->instance, len) && channel[len] == '/');
}

static bool in_time(const struct report_options *options, uint64_t ns)
{
	return ns >= options->since_ns && (!options->until_ns || ns < options->until_ns);
}

static struct clock *clock_of(struct gathering *g, uint16_t channel)
{
	if (channel >= g->clocks) {
		struct clock *grown = reallocarray(g->clock, channel + 1u, sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + g->clocks, 0, (channel + 1u - g->clocks) * sizeof(*grown));
		g->clock = grown;
		g->clocks = channel + 1u;
	}
	return &g->clock[channel];
}

/* When a step began; not later than its block was written. */
static uint64_t time_of(const struct clock *clock, const struct archive_item *item,
			const struct r3ring_step_record *step)
{
	uint64_t ns = step->host_ns + (uint64_t)clock->realtime_offset_ns;

	return clock->known && step->host_ns && ns < item->time_ns ? ns : item->time_ns;
}

/* ---- load ------------------------------------------------------------------------- */

/* It cannot be asked for any more once the channels have ended. */
static void remember_map(struct gathering *g)
{
	struct report *report = g->report;
	struct r3ring_eplb_map *map = NULL;

	if (!report->epoch || (report->map && report->map->epoch == report->epoch))
		return;
	if (r3ring_load_map_in_force(report->load, R3RING_LOAD_MERGED, report->epoch, &map) < 0)
		return;
	r3ring_eplb_map_free(report->map);
	report->map = map;
}

/* What was counted since the last time goes to the present piece. */
static int take_load(struct gathering *g)
{
	struct report *report = g->report;
	int r = r3ring_load_read(report->load, R3RING_LOAD_MERGED, R3RING_LOAD_EVER,
				 R3RING_LOAD_ANY_EPOCH, g->snapshot);
	const struct r3ring_load_info *info = r3ring_load_snapshot_info(g->snapshot);

	g->steps = 0;
	if (r == -ENODATA)
		return 0;
	if (r == 0) {
		report->epoch = info->epoch;
		remember_map(g);
		r = series_take(&report->series, info, g->piece, &report->accounts);
	}
	return r < 0 ? no_memory(g) : 0;
}

/* Ranks are not quite in step: one that is a little behind does not turn back time. */
static bool same_piece(uint32_t piece, uint32_t now)
{
	return piece == now || (piece != SERIES_NOWHERE && now != SERIES_NOWHERE && now < piece &&
				piece - now == 1);
}

/* A step begins: what was counted before it is of another piece of time, perhaps. */
static int note_step(struct gathering *g, uint64_t ns)
{
	struct series *series = &g->report->series;
	uint32_t now = SERIES_NOWHERE;
	int r = 0;

	/* Where time has to reach farther, pieces get other numbers. */
	if (in_time(g->options, ns)) {
		if (!series_reaches(series, ns)) {
			r = take_load(g);
			g->piece = series_find(series, ns);
		}
		now = series_find(series, ns);
	}
	if (r == 0 && (!same_piece(g->piece, now) || ++g->steps >= STEPS_AT_ONCE)) {
		r = take_load(g);
		g->piece = now;
	}
	if (now != SERIES_NOWHERE)
		series->piece[now].steps++;
	return r;
}

static int other_model(struct gathering *g, const char *channel)
{
	return r3ring_error_set(g->err, -EPROTO,
				"%s: another model, or other sizes, than the channels before; a "
				"report is of one model: choose with --instance",
				channel);
}

/* Why the load does not take what a channel says. */
static int load_refused(struct gathering *g, const struct archive_item *item, int code)
{
	if (code == -EPROTO)
		return other_model(g, item->name);
	if (code == -ENOSPC)
		return r3ring_error_set(g->err, code,
					"%s: more than %u channels: choose with --instance",
					item->name, R3RING_LOAD_CHANNELS_MAX);
	return code < 0 ? no_memory(g) : 0;
}

/* @record: NULL where the recorder left it out. */
static int feed_load(struct gathering *g, const struct archive_item *item,
		     const struct r3ring_record *record)
{
	int index = r3ring_load_channel(g->report->load, item->name);
	int r = index;

	if (index >= 0 && record)
		r = r3ring_load_feed(g->report->load, (uint32_t)index, &item->view, record);
	else if (index >= 0)
		r = r3ring_load_skip(g->report->load, (uint32_t)index, &item->view);
	return load_refused(g, item, r);
}

/* ---- requests --------------------------------------------------------------------- */

static bool is_asked_for(struct gathering *g, const char *id)
{
	const struct report_options *options = g->options;
	bool asked = !options->requests;

	for (uint32_t i = 0; i < options->requests; i++) {
		if (strcmp(options->request[i], id) != 0)
			continue;
		g->found[i] = true;
		asked = true;
	}
	return asked;
}

static void cover(struct report_coverage *to, const struct r3ring_assembled_info *info)
{
	const bool evicted = info->flags & R3RING_ASSEMBLED_EVICTED;

	to->requests++;
	to->evicted += evicted;
	/* Of one that was given up nobody knows the end. */
	to->unfinished += !evicted && info->flags & R3RING_ASSEMBLED_UNFINISHED;
	to->aborted += (info->flags & R3RING_ASSEMBLED_ABORTED) != 0;
	to->tokens += info->tokens;
	to->cells += info->cells;
	to->valid += info->cells_valid;
	to->conflicts += info->conflicts;
	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		to->missing[cause] += info->cells_missing[cause];
}

static int take_request(struct gathering *g, const struct r3ring_assembled *assembled,
			uint64_t time_ns)
{
	const struct r3ring_assembled_info *info = r3ring_assembled_get_info(assembled);
	int r = given_up_take(&g->given_up, info);

	if (r)
		return r < 0 ? no_memory(g) : 0;
	if (!in_time(g->options, time_ns) || !is_asked_for(g, info->id)) {
		g->report->coverage.not_asked++;
		return 0;
	}
	cover(&g->report->coverage, info);
	r = request_table_take(&g->report->requests, info, time_ns);
	if (r == 0 && g->options->requests)
		r = routes_add(&g->routes, assembled);
	return r < 0 ? no_memory(g) : 0;
}

static int take_requests(struct gathering *g, uint64_t time_ns)
{
	struct r3ring_assembled *assembled;
	int r = 0;

	while (r == 0 && (assembled = r3ring_assembler_take(g->assembler))) {
		r = take_request(g, assembled, time_ns);
		r3ring_assembled_free(assembled);
	}
	return r;
}

static int feed_assembler(struct gathering *g, const struct archive_item *item,
			  const struct r3ring_record *record)
{
	int channel = r3ring_assembler_channel(g->assembler, item->name);
	int r = channel < 0 ? channel : 0;

	if (record)
		given_up_note(&g->given_up, &item->view, record);
	if (r == 0 && record)
		r = r3ring_assembler_feed(g->assembler, (uint32_t)channel, &item->view, record);
	else if (r == 0 && item->kind == ARCHIVE_SKIPPED)
		r = r3ring_assembler_skip(g->assembler, (uint32_t)channel, &item->view,
					  item->u.kept.layer_first, item->u.kept.layer_end);
	else if (r == 0 && item->kind == ARCHIVE_UNFOLLOWED)
		r3ring_assembler_unfollowed(g->assembler, (uint32_t)channel);
	else if (r == 0)
		r3ring_assembler_gap(g->assembler, (uint32_t)channel);
	if (r == -EPROTO)
		return other_model(g, item->name);
	return r < 0 ? no_memory(g) : take_requests(g, item->time_ns);
}

/* ---- entries ---------------------------------------------------------------------- */

static int note_schema(struct gathering *g, struct clock *clock, const char *channel,
		       const struct r3ring_schema_record *schema)
{
	*clock = (struct clock){schema->realtime_offset_ns, true};
	if (!g->report->model[0])
		memcpy(g->report->model, schema->model, sizeof(g->report->model));
	return archive_ranks_note(&g->ranks, channel, schema) ? no_memory(g) : 0;
}

/* False where it cannot be decoded; a type of a later version is none of our business. */
static bool decode(struct gathering *g, const struct archive_item *item,
		   struct r3ring_record *record)
{
	struct r3ring_error why = {0};
	char text[R3RING_ERROR_TEXT];
	int r = r3ring_record_decode(record, item->view.type, item->view.data, item->view.len,
				     &why);

	if (r == 0 || r == -ENOTSUP)
		return r == 0;
	snprintf(text, sizeof(text), "segment %llu, %s, record %llu: %.160s",
		 (unsigned long long)item->place.segment, item->name,
		 (unsigned long long)item->view.seq, why.text);
	report_problem(g->report, text);
	return false;
}

static int take_record(struct gathering *g, const struct archive_item *item,
		       const struct r3ring_record *record)
{
	struct clock *clock = clock_of(g, item->channel);
	int r = clock ? 0 : no_memory(g);

	if (r == 0 && record->type == R3RING_CLOSED)
		r = take_load(g);

	if (r == 0 && record->type == R3RING_SCHEMA)
		r = note_schema(g, clock, item->name, &record->u.schema.head);
	if (r == 0 && record->type == R3RING_STEP && !item->repeated)
		r = note_step(g, time_of(clock, item, &record->u.step.head));
	if (r == 0)
		r = feed_load(g, item, record);
	return r < 0 ? r : feed_assembler(g, item, record);
}

static int take_skipped(struct gathering *g, const struct archive_item *item)
{
	int r = feed_load(g, item, NULL);

	g->report->kept = item->u.kept;
	return r < 0 ? r : feed_assembler(g, item, NULL);
}

static int take(struct gathering *g, const struct archive_item *item)
{
	struct report_channel *channel;
	struct r3ring_record record;
	bool decoded, timely;

	if (item->kind == ARCHIVE_RESUMED) {
		archive_count(&g->report->counts, item, NULL);
		return 0;
	}
	if (!of_instance(g->options, item->name))
		return 0;
	g->any = true;
	channel = report_channel_of(g->report, item);
	if (!channel)
		return no_memory(g);
	decoded = item->kind == ARCHIVE_RECORD && decode(g, item, &record);
	timely = in_time(g->options, item->time_ns);
	archive_losses_take(&channel->losses, item, decoded ? &record : NULL, timely);
	if (timely) {
		archive_count(&channel->counts, item, decoded ? &record : NULL);
		archive_count(&g->report->counts, item, decoded ? &record : NULL);
	}
	if (item->kind == ARCHIVE_GAP || item->kind == ARCHIVE_UNFOLLOWED ||
	    (item->kind == ARCHIVE_RECORD && !decoded))
		return feed_assembler(g, item, NULL);
	if (item->kind == ARCHIVE_SKIPPED)
		return take_skipped(g, item);
	return decoded ? take_record(g, item, &record) : 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int read_all(struct gathering *g, struct archive_reader *reader, report_progress_fn progress,
		    void *ctx)
{
	struct archive_extent extent;
	struct archive_item item;
	struct r3ring_error said = {0};
	uint64_t told = 0;
	int r;

	archive_reader_get_extent(reader, &extent);
	while ((r = archive_reader_next(reader, &item, &said)) != 0) {
		uint64_t passed = archive_reader_passed(reader);

		if (r == 1)
			r = take(g, &item);
		else if (r == -EBADMSG)
			report_problem(g->report, said.text);
		else
			r = r3ring_error_set(g->err, r, "%s", said.text);
		if (r < 0 && r != -EBADMSG)
			return r;
		if (progress && passed - told >= PROGRESS_BYTES)
			progress(ctx, told = passed, extent.bytes);
	}
	return 0;
}

static int check_found(struct gathering *g)
{
	if (!g->any && g->options->instance)
		return r3ring_error_set(g->err, -ENOENT, "instance '%s' is not in the archive",
					g->options->instance);
	for (uint32_t i = 0; i < g->options->requests; i++)
		if (!g->found[i])
			return r3ring_error_set(g->err, -ENOENT,
						"request '%s' is not in the archive, or not of the "
						"instance and the time that were asked for",
						g->options->request[i]);
	return 0;
}

static void count_losses(struct report *report)
{
	for (uint32_t i = 0; i < report->channels; i++) {
		struct report_channel *channel = &report->channel[i];

		channel->counts.lost = channel->losses.of.account;
		lost_account_add(&report->counts.lost, &channel->counts.lost);
	}
}

static int finish(struct gathering *g)
{
	struct r3ring_assembler_stats stats;
	struct r3ring_load_stats load;
	int r;

	count_losses(g->report);
	archive_ranks_absent(&g->ranks, &g->report->counts.absent);
	r3ring_assembler_flush(g->assembler);
	r3ring_load_flush(g->report->load);
	r = take_requests(g, g->report->counts.last_ns);
	if (r == 0)
		r = take_load(g);
	r3ring_assembler_get_stats(g->assembler, &stats);
	g->report->coverage.unattributed = stats.rows_unattributed;
	r3ring_load_get_stats(g->report->load, &load);
	g->report->steps_unknown = load.steps_unknown;
	request_table_sort(&g->report->requests);
	if (r == 0)
		r = check_found(g);
	if (r == 0)
		r = g->options->requests ? routes_settle(&g->routes, g->report)
					 : report_settle(g->report);
	if (r == -ENODATA)
		return r3ring_error_set(g->err, r, "no route of what was asked for is there");
	return r == -ENOMEM ? no_memory(g) : r;
}

static int prepare(struct gathering *g)
{
	const struct r3ring_assembler_options assembler = {
		.size = sizeof(assembler),
		.max_bytes = g->options->max_bytes,
	};
	const struct r3ring_load_options load = {.size = sizeof(load)};
	int r = r3ring_load_create(&g->report->load, &load, g->err);

	if (r == 0)
		r = r3ring_load_snapshot_create(&g->snapshot);
	if (r == 0)
		r = r3ring_assembler_create(&g->assembler, &assembler, g->err);
	if (r == 0)
		r = request_table_make(&g->report->requests, g->options->table);
	g->found = calloc(g->options->requests + 1u, sizeof(*g->found));
	g->piece = SERIES_NOWHERE;
	return g->found ? r : -ENOMEM;
}

int report_read(struct report *report, const char *dir, const struct report_options *options,
		report_progress_fn progress, void *ctx, struct r3ring_error *err)
{
	struct gathering g = {.report = report, .options = options, .err = err};
	struct archive_reader *reader = NULL;
	int r;

	*report = (struct report){0};
	r = prepare(&g);
	if (r == 0)
		r = archive_reader_open(&reader, dir, err);
	if (r == 0)
		r = read_all(&g, reader, progress, ctx);
	if (r == 0)
		archive_verified_describe(&report->counts, reader);
	if (r == 0)
		r = finish(&g);
	archive_reader_close(reader);
	r3ring_assembler_destroy(g.assembler);
	r3ring_load_snapshot_free(g.snapshot);
	routes_free(&g.routes);
	given_up_free(&g.given_up);
	archive_ranks_free(&g.ranks);
	free(g.clock);
	free(g.found);
	return r;
}
