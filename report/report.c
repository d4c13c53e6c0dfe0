/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

void report_free(struct report *report)
{
	for (uint32_t i = 0; i < REPORT_PROBLEMS_TOLD; i++)
		free(report->problem[i]);
	for (uint32_t i = 0; i < report->channels; i++)
		free(report->channel[i].name);
	free(report->channel);
	series_free(&report->series);
	r3ring_eplb_map_free(report->map);
	r3ring_load_destroy(report->load);
	request_table_free(&report->requests);
	free(report->layer);
	free(report->load_counts);
	free(report->load_rows);
	placing_free(&report->placing);
	*report = (struct report){0};
}

void report_problem(struct report *report, const char *text)
{
	if (report->problems < REPORT_PROBLEMS_TOLD)
		report->problem[report->problems] = strdup(text);
	report->problems++;
}

struct report_channel *report_channel_of(struct report *report, const struct archive_item *item)
{
	struct report_channel *channel;

	if (item->channel >= report->channels) {
		channel = reallocarray(report->channel, item->channel + 1u, sizeof(*channel));
		if (!channel)
			return NULL;
		memset(channel + report->channels, 0,
		       (item->channel + 1u - report->channels) * sizeof(*channel));
		report->channel = channel;
		report->channels = item->channel + 1u;
	}
	channel = &report->channel[item->channel];
	if (!channel->name)
		channel->name = strdup(item->name);
	return channel->name ? channel : NULL;
}

/* ---- what is shown ---------------------------------------------------------------- */

static int make_room(struct report *report, uint32_t layers, uint32_t experts)
{
	report->layer = calloc(layers, sizeof(*report->layer));
	report->load_counts = calloc((size_t)layers * experts, sizeof(*report->load_counts));
	report->load_rows = calloc(layers, sizeof(*report->load_rows));
	return report->layer && report->load_counts && report->load_rows ? 0 : -ENOMEM;
}

int report_show(struct report *report, uint32_t layers, uint32_t experts, uint16_t top_k)
{
	int r = layers && experts ? make_room(report, layers, experts) : -ENODATA;

	if (r < 0)
		return r;
	report->info = (struct r3ring_load_info){
		.layers = layers,
		.experts = experts,
		.top_k = top_k,
		.layer = report->layer,
		.counts = report->load_counts,
		.rows = report->load_rows,
		.epoch = report->epoch,
		.accounts = report->accounts,
	};
	return 0;
}

int report_settle(struct report *report)
{
	struct series *series = &report->series;
	bool any = false;
	int r;

	series_sort(series);
	for (uint32_t i = 0; i < series->layers; i++)
		any |= series->layer[i].rows > 0;
	r = any ? report_show(report, series->layers, series->experts, series->top_k) : -ENODATA;
	for (uint32_t i = 0; r == 0 && i < series->layers; i++) {
		report->layer[i] = series->layer[i].entry;
		report->load_rows[i] = series->layer[i].rows;
		for (uint32_t e = 0; e < series->experts; e++)
			report->load_counts[(size_t)i * series->experts + e] =
				(double)series->layer[i].counts[e];
	}
	return r;
}

int report_place(struct report *report, const struct r3ring_eplb_options *place,
		 struct r3ring_error *err)
{
	struct r3ring_eplb_map *captured = report->map;
	int r;

	report->map = NULL;
	r = placing_make(&report->placing, captured, &report->info, place, err);
	report->placed = r == 0;
	return r;
}
