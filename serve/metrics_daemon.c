/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the daemon and its channels. */
#include <string.h>

#include "channel/clock.h"
#include "monitor/daemon_totals.h"
#include "serve/exposition.h"
#include "serve/metrics.h"

/* ---- counters ------------------------------------------------------------------- */

static const struct counter {
	const char *name, *help;
	enum total total;
	double unit; /* of what is told, in one of what is counted */
} counters[] = {
	{"r3ring_steps_total", "Steps that engines announced, lost ones too.", TOTAL_STEPS, 1},
	{"r3ring_steps_partial_total", "Steps of which layers or rows are missing.",
	 TOTAL_STEPS_PARTIAL, 1},
	{"r3ring_rows_total", "Rows (tokens) of published steps.", TOTAL_ROWS, 1},
	{"r3ring_records_total", "Records published into rings.", TOTAL_RECORDS, 1},
	{"r3ring_record_bytes_total", "Bytes of the payloads of published records.", TOTAL_BYTES,
	 1},
	{"r3ring_ids_missing_total", "Expert ids that engines gave as missing.", TOTAL_IDS_MISSING,
	 1},
	{"r3ring_ids_out_of_range_total", "Expert ids that were no expert.", TOTAL_IDS_OUT_OF_RANGE,
	 1},
	{"r3ring_reader_waits_total", "Times that a channel waited for lossless readers.",
	 TOTAL_READER_WAITS, 1},
	{"r3ring_reader_wait_seconds_total", "Time that a channel waited for lossless readers.",
	 TOTAL_READER_WAITS_MS, 0.001},
	{"r3ring_readers_demoted_total", "Lossless readers that were too slow to be waited for.",
	 TOTAL_READERS_DEMOTED, 1},
};

static void tell_counters(FILE *out, const struct daemon_totals *totals)
{
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
		metric_begin(out, counters[i].name, METRIC_COUNTER, counters[i].help);
		for (uint32_t c = 0; c < totals->channels; c++) {
			const struct totals_channel *channel = &totals->channel[c];

			metric_value(out, counters[i].name,
				     METRIC_LABELS({"channel", channel->name}),
				     (double)channel->sum[counters[i].total] * counters[i].unit);
		}
	}
}

/* All causes from the beginning: an increase from nothing would not be seen. */
static void tell_losses(FILE *out, const struct daemon_totals *totals, const char *name,
			const char *help, enum total first)
{
	metric_begin(out, name, METRIC_COUNTER, help);
	for (uint32_t c = 0; c < totals->channels; c++) {
		const struct totals_channel *channel = &totals->channel[c];

		/* Those above are of single layers, never of a LOST record. */
		for (uint32_t cause = 0; cause <= R3RING_CAUSE_CONFLICT; cause++)
			metric_count(out, name,
				     METRIC_LABELS(
					     {"channel", channel->name},
					     {"cause", cause ? r3ring_cause_name(cause) : "other"}),
				     channel->sum[(uint32_t)first + cause]);
	}
}

/* ---- gauges ----------------------------------------------------------------------- */

typedef double (*gauge_fn)(const struct picture_channel *channel);

static double is_live(const struct picture_channel *channel)
{
	return channel->state[0] == 'l';
}

static double is_crashed(const struct picture_channel *channel)
{
	return channel->crashed;
}

static double producer_died(const struct picture_channel *channel)
{
	return channel->producer_died;
}

static double generation(const struct picture_channel *channel)
{
	return (double)channel->generation;
}

static double steps_per_second(const struct picture_channel *channel)
{
	return channel->steps_per_s;
}

static double layers_bound(const struct picture_channel *channel)
{
	return (double)channel->captured_count;
}

static double layers_unbound(const struct picture_channel *channel)
{
	return (double)channel->unbound_count;
}

static double readers(const struct picture_channel *channel)
{
	return (double)channel->attached_readers;
}

static double lag_records(const struct picture_channel *channel)
{
	uint64_t most = 0;

	for (size_t i = 0; i < channel->reader_count; i++)
		if (channel->readers[i].lag_records > most)
			most = channel->readers[i].lag_records;
	return (double)most;
}

static double lag_bytes(const struct picture_channel *channel)
{
	uint64_t most = 0;

	for (size_t i = 0; i < channel->reader_count; i++)
		if (channel->readers[i].lag_bytes > most)
			most = channel->readers[i].lag_bytes;
	return (double)most;
}

static const struct gauge {
	const char *name, *help;
	gauge_fn value;
} gauges[] = {
	{"r3ring_channel_live", "1 while the channel's engine is connected.", is_live},
	{"r3ring_channel_crashed", "1 when its daemon died and its engine is not back.",
	 is_crashed},
	{"r3ring_channel_producer_died", "1 when its engine went without closing it.",
	 producer_died},
	{"r3ring_channel_generation", "Number of the channel's present ring.", generation},
	{"r3ring_channel_steps_per_second",
	 "Steps a second, as the daemon measures them; 0 once none came for a second and 16 "
	 "periods.",
	 steps_per_second},
	{"r3ring_channel_layers_bound", "Layers that are captured.", layers_bound},
	{"r3ring_channel_layers_unbound", "Layers that are missing in every step.", layers_unbound},
	{"r3ring_channel_readers", "Readers that are connected.", readers},
	{"r3ring_reader_lag_records", "Records that the slowest registered reader is behind.",
	 lag_records},
	{"r3ring_reader_lag_bytes", "Bytes that the slowest registered reader is behind.",
	 lag_bytes},
};

static bool is_told(const struct daemon_totals *totals, const char *name)
{
	for (uint32_t i = 0; i < totals->channels; i++)
		if (strcmp(totals->channel[i].name, name) == 0)
			return true;
	return false;
}

static void tell_gauges(FILE *out, const struct daemon_picture *now,
			const struct daemon_totals *totals)
{
	for (size_t i = 0; i < sizeof(gauges) / sizeof(*gauges); i++) {
		metric_begin(out, gauges[i].name, METRIC_GAUGE, gauges[i].help);
		for (size_t c = 0; c < now->channel_count; c++)
			if (is_told(totals, now->channels[c].name))
				metric_value(out, gauges[i].name,
					     METRIC_LABELS({"channel", now->channels[c].name}),
					     gauges[i].value(&now->channels[c]));
	}
}

static void tell_ages(FILE *out, const struct daemon_picture *now,
		      const struct daemon_totals *totals)
{
	metric_begin(out, "r3ring_step_age_seconds", METRIC_GAUGE,
		     "Since the newest step of the channel; none before the first.");
	for (size_t c = 0; c < now->channel_count; c++) {
		const struct picture_channel *channel = &now->channels[c];

		if (channel->last_step_age_ms >= 0 && is_told(totals, channel->name))
			metric_value(out, "r3ring_step_age_seconds",
				     METRIC_LABELS({"channel", channel->name}),
				     (double)channel->last_step_age_ms / 1000 +
					     (double)(clock_now_ns() - now->taken_ns) / 1e9);
	}
	metric_begin(out, "r3ring_channel_info", METRIC_GAUGE, "Which model the channel is of.");
	for (size_t c = 0; c < now->channel_count; c++)
		if (is_told(totals, now->channels[c].name))
			metric_count(out, "r3ring_channel_info",
				     METRIC_LABELS({"channel", now->channels[c].name},
						   {"model", now->channels[c].model}),
				     1);
}

static void tell_daemon(FILE *out, const struct daemon_picture *now,
			const struct daemon_totals *totals)
{
	bool live = now && now->state == PICTURE_LIVE;

	metric_begin(out, "r3ring_daemon_up", METRIC_GAUGE, "1 when the daemon answered last.");
	metric_count(out, "r3ring_daemon_up", NULL, live);
	metric_begin(out, "r3ring_channels_left_out", METRIC_GAUGE,
		     "Channels that are not told, as there are too many.");
	metric_count(out, "r3ring_channels_left_out", NULL, totals->left_out);
	if (!now)
		return;
	metric_begin(out, "r3ring_daemon_picture_age_seconds", METRIC_GAUGE,
		     "Since the daemon was asked last.");
	metric_value(out, "r3ring_daemon_picture_age_seconds", NULL,
		     (double)(clock_now_ns() - now->taken_ns) / 1e9);
	if (!live)
		return;
	metric_begin(out, "r3ring_daemon_uptime_seconds", METRIC_GAUGE, "Since the daemon began.");
	metric_count(out, "r3ring_daemon_uptime_seconds", NULL, now->uptime_s);
	metric_begin(out, "r3ring_daemon_info", METRIC_GAUGE, "Version of the daemon.");
	metric_count(out, "r3ring_daemon_info", METRIC_LABELS({"version", now->version}), 1);
}

void metrics_of_daemon(FILE *out, const struct daemon_picture *now,
		       const struct daemon_totals *totals)
{
	tell_daemon(out, now, totals);
	tell_counters(out, totals);
	tell_losses(out, totals, "r3ring_lost_steps_total", "Steps lost by the channel, by cause.",
		    TOTAL_LOST_STEPS);
	tell_losses(out, totals, "r3ring_lost_rows_total", "Rows lost by the channel, by cause.",
		    TOTAL_LOST_ROWS);
	if (!now || now->state != PICTURE_LIVE)
		return;
	tell_gauges(out, now, totals);
	tell_ages(out, now, totals);
}
