/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: one channel, from the archive's entries to a producer. */
#include "tools/replay_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#define QUEUE_BYTES (16u << 20)

struct replay_channel *replay_channel_create(const struct replay_shared *shared, const char *name)
{
	struct replay_channel *channel = calloc(1, sizeof(*channel));
	const char *rank = strrchr(name, '/');

	if (!channel)
		return NULL;
	channel->shared = shared;
	channel->name = name;
	channel->rank = rank ? (uint32_t)strtoul(rank + 1, NULL, 10) : 0;
	channel->draft = rank && strstr(rank, ".draft") != NULL;
	return channel;
}

int replay_fail(const struct replay_channel *channel, int code)
{
	const char *why = channel->producer ? r3ring_producer_error(channel->producer) : "";

	return r3ring_error_set(channel->shared->err, code, "%s: %s", channel->name,
				why[0] ? why : strerror(-code));
}

int replay_no_memory(const struct replay_channel *channel)
{
	return r3ring_error_set(channel->shared->err, -ENOMEM, "%s: no memory", channel->name);
}

bool replay_stopped(const struct replay_channel *channel)
{
	const uint32_t *stop = channel->shared->options->stop;

	return stop && r3ring_load_relaxed_u32(stop);
}

/* ---- generations ------------------------------------------------------- */

/* Beyond those that are announced as lost. */
static void count_drops(struct replay_channel *channel)
{
	struct replay_report *report = channel->shared->report;
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(channel->producer, &stats);
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		report->dropped_steps += stats.dropped_steps[cause];
	report->dropped_steps += stats.undelivered_steps;
	report->dropped_steps -= channel->announced;
}

static void end_generation(struct replay_channel *channel)
{
	if (channel->producer)
		count_drops(channel);
	r3ring_producer_close(channel->producer);
	replay_flow_close(channel->flow);
	replay_unbind(channel);
	channel->producer = NULL;
	channel->flow = NULL;
	replay_handles_free(&channel->handles);
	replay_side_free(channel);
	free(channel->layers);
	free(channel->captured);
	channel->layers = NULL;
	channel->captured = NULL;
	channel->step.head.step = 0;
	channel->newest = channel->number = channel->runs = 0;
	channel->announced = channel->ahead = 0;
	memset(channel->under_way, 0, sizeof(channel->under_way));
	memset(channel->numbers, 0, sizeof(channel->numbers));
	channel->doubt = channel->step_doubt = channel->late_begin = false;
}

void replay_channel_destroy(struct replay_channel *channel)
{
	if (!channel)
		return;
	end_generation(channel);
	replay_step_free(&channel->step);
	replay_step_free(&channel->late);
	free(channel->wide);
	free(channel);
}

/* The generation had records, and the archive does not say of what: it is not replayed, and
 * the next one begins by saying that something was lost. */
static void note_missed(struct replay_channel *channel)
{
	if (!channel->doubt)
		return;
	channel->missed = true;
	channel->shared->report->missed_generations++;
}

/* All that was submitted is told before the producer goes. */
int replay_channel_finish(struct replay_channel *channel)
{
	uint64_t newest;
	int code = 0;

	if (!channel->producer) {
		note_missed(channel);
		return 0;
	}
	channel->shared->report->unfinished += replay_handles_live(channel->handles);
	if (channel->step.head.step)
		code = replay_run_step(channel, NULL);
	if (!code)
		code = replay_lose_rest(channel);
	newest = channel->under_way[(channel->runs + REPLAY_WINDOW - 1) % REPLAY_WINDOW];
	if (!code && newest)
		code = replay_flow_wait(channel->flow, newest, channel->shared->options->stop);
	return code == -EINTR ? 0 : code;
}

static int take_generation(struct replay_channel *channel, const struct archive_item *item)
{
	const struct archive_generation *said = &item->u.generation;
	int code;

	if (channel->begun && memcmp(channel->uuid, said->uuid, sizeof(said->uuid)) == 0)
		return 0;
	/* Behind damage: how the one before ended is not known. */
	if (channel->begun && item->repeated)
		replay_doubt(channel);
	code = replay_channel_finish(channel);
	if (code)
		return code;
	end_generation(channel);
	memcpy(channel->uuid, said->uuid, sizeof(said->uuid));
	channel->begun = true;
	channel->late_begin = said->seq > 0;
	channel->doubt = channel->late_begin || channel->missed;
	channel->shared->report->late += said->seq > 0;
	channel->shared->report->late_records += said->seq;
	return 0;
}

static void take_gap(struct replay_channel *channel, const struct archive_gap *gap)
{
	struct replay_report *report = channel->shared->report;

	replay_doubt(channel);
	report->gaps++;
	report->gap_records += gap->lost;
	report->gaps_unsized += !gap->lost;
}

/* ---- opening ----------------------------------------------------------- */

static void log_warning(void *ctx, enum r3ring_log_level level, const char *line)
{
	const struct replay_channel *channel = ctx;

	if (level <= R3RING_LOG_WARN)
		channel->shared->hooks->note(channel->shared->hooks->ctx, line);
}

static int open_producer(struct replay_channel *channel)
{
	const struct r3ring_schema_record *head = &channel->schema;
	const struct r3ring_producer_options options = {
		.size = sizeof(options),
		.instance = channel->shared->options->instance,
		.rank = channel->rank,
		.draft = channel->draft,
		.device = "host",
		.model = head->model,
		.experts = head->experts,
		.top_k = head->top_k,
		.max_rows = head->max_rows,
		.layer_count = head->layers,
		.layers = channel->layers,
		.coordinates = head->rank,
		.replica = head->replica,
		.capture_rows = head->captures_rows,
		.weight_version = head->weight_version,
		.queue_bytes = QUEUE_BYTES,
		.log = log_warning,
		.log_ctx = channel,
	};
	char name[R3RING_INSTANCE_MAX + 24];
	int code = r3ring_producer_open(&channel->producer, &options, channel->shared->err);

	if (!code)
		code = replay_bind(channel);
	if (code)
		return code;
	channel->shared->report->generations++;
	snprintf(name, sizeof(name), "%s/%u%s", options.instance, channel->rank,
		 channel->draft ? ".draft" : "");
	return replay_flow_open(&channel->flow, name, channel->shared->err);
}

/* The first schema of a generation opens the channel; it comes again when layers are
 * bound, and in keyframes. */
static int take_schema(struct replay_channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_schema_record *head = &record->u.schema.head;

	if (channel->producer)
		return 0;
	channel->layers = calloc(head->layers + 1u, sizeof(*channel->layers));
	channel->captured = calloc(head->layers + 1u, sizeof(*channel->captured));
	if (!channel->layers || !channel->captured)
		return replay_no_memory(channel);
	for (uint32_t i = 0; i < head->layers; i++) {
		channel->layers[i] = record->u.schema.layers[i];
		channel->layers[i].bound = 0;
	}
	channel->schema = *head;
	return open_producer(channel);
}

uint64_t replay_channel_begun(const struct replay_channel *channel,
			      const struct r3ring_step_record *step)
{
	return channel->producer ? step->host_ns + (uint64_t)channel->schema.realtime_offset_ns : 0;
}

/* ---- records ----------------------------------------------------------- */

static int take_step(struct replay_channel *channel, const struct r3ring_record *record)
{
	int code = channel->step.head.step ? replay_run_step(channel, NULL) : 0;

	if (code)
		return code;
	/* Not one that goes back: verify says so. */
	if (record->u.step.head.step <= channel->newest)
		return 0;
	return replay_step_begin(&channel->step, record) ? replay_no_memory(channel) : 0;
}

static bool is_open(const struct replay_channel *channel, uint64_t step)
{
	return step && channel->step.head.step == step;
}

static int take_part(struct replay_channel *channel, const struct r3ring_record *record)
{
	int code = 0;

	switch (record->type) {
	case R3RING_LAYER:
		if (is_open(channel, record->u.layer.head.step))
			code = replay_step_layer(&channel->step, record);
		break;
	case R3RING_ROWS:
		if (is_open(channel, record->u.rows.head.step))
			code = replay_step_rows(&channel->step, record);
		break;
	default:
		if (is_open(channel, record->u.spans.head.step))
			code = replay_step_spans(&channel->step, record);
		break;
	}
	return code ? replay_no_memory(channel) : 0;
}

static int take_end(struct replay_channel *channel, const struct r3ring_record *record)
{
	if (!channel->step.head.step)
		return 0;
	return replay_run_step(channel,
			       is_open(channel, record->u.step_end.head.step) ? record : NULL);
}

static int take_decoded(struct replay_channel *channel, const struct archive_item *item,
			const struct r3ring_record *record)
{
	if (record->type == R3RING_SCHEMA)
		return take_schema(channel, record);
	if (!channel->producer)
		return 0; /* nothing can be said before it */
	switch (record->type) {
	case R3RING_STEP:
		return take_step(channel, record);
	case R3RING_LAYER:
	case R3RING_ROWS:
		return take_part(channel, record);
	case R3RING_SPANS:
		if (!(record->u.spans.head.flags & R3RING_SPANS_REPLACE))
			return take_part(channel, record);
		return replay_side_take(channel, item, record);
	case R3RING_STEP_END:
		return take_end(channel, record);
	case R3RING_LOST:
		return replay_take_lost(channel, &record->u.lost);
	case R3RING_REQUEST:
	case R3RING_EPLB:
	case R3RING_KEY_COPY:
		return replay_side_take(channel, item, record);
	default:
		return 0; /* keyframes and the end are the daemon's to tell */
	}
}

int replay_channel_take(struct replay_channel *channel, const struct archive_item *item)
{
	struct r3ring_record record;
	int code;

	switch (item->kind) {
	case ARCHIVE_GENERATION:
		return take_generation(channel, item);
	case ARCHIVE_GAP:
		take_gap(channel, &item->u.gap);
		return 0;
	case ARCHIVE_SKIPPED:
		channel->shared->report->skipped++;
		return 0;
	case ARCHIVE_RECORD:
		code = r3ring_record_decode(&record, item->view.type, item->view.data,
					    item->view.len, NULL);
		if (!code)
			return take_decoded(channel, item, &record);
		channel->shared->report->unreadable++;
		replay_doubt(channel);
		return 0;
	default:
		return 0;
	}
}
