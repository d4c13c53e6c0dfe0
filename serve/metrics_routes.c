/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the routes that are kept: how many, in how much memory, and what had to go. */
#include <stddef.h>
#include <string.h>

#include "serve/exposition.h"
#include "serve/metrics.h"

static const struct route_metric {
	const char *name, *help;
	enum metric_type type;
	size_t offset; /* of its number in struct routes_stats */
} metrics[] = {
	{"r3ring_routes_bytes", "Of rows of requests that are kept here.", METRIC_GAUGE,
	 offsetof(struct routes_stats, bytes)},
	{"r3ring_routes_bytes_max", "That rows of requests may take here.", METRIC_GAUGE,
	 offsetof(struct routes_stats, max_bytes)},
	{"r3ring_routes_requests_evicted_total",
	 "Requests that lived and lost their routes to others, for want of room.", METRIC_COUNTER,
	 offsetof(struct routes_stats, evicted)},
	{"r3ring_routes_requests_forgotten_total",
	 "Requests that had ended and are not kept any more.", METRIC_COUNTER,
	 offsetof(struct routes_stats, forgotten)},
	{"r3ring_routes_rows_total", "Rows that got a position in a request.", METRIC_COUNTER,
	 offsetof(struct routes_stats, rows)},
	{"r3ring_routes_rows_unattributed_total",
	 "Rows of requests that nobody announced, or that were evicted.", METRIC_COUNTER,
	 offsetof(struct routes_stats, rows_unattributed)},
	{"r3ring_routes_gaps_total",
	 "Times that records were gone before they were read for routes.", METRIC_COUNTER,
	 offsetof(struct routes_stats, gaps)},
};

static uint64_t number_of(const struct route_metric *metric, struct served *served)
{
	struct routes_stats stats;
	uint64_t number;

	routes_get_stats(served_routes(served), &stats);
	memcpy(&number, (const char *)&stats + metric->offset, sizeof(number));
	return number;
}

static void tell_requests(FILE *out, struct served *served)
{
	struct routes_stats stats;

	routes_get_stats(served_routes(served), &stats);
	metric_count(out, "r3ring_routes_requests",
		     METRIC_LABELS({"engine", served_name(served)}, {"state", "running"}),
		     stats.live);
	metric_count(out, "r3ring_routes_requests",
		     METRIC_LABELS({"engine", served_name(served)}, {"state", "ended"}),
		     stats.ended);
}

void metrics_of_routes(FILE *out, struct served *const *served, uint32_t count)
{
	metric_begin(out, "r3ring_routes_requests", METRIC_GAUGE,
		     "Requests whose routes are kept here.");
	for (uint32_t i = 0; i < count; i++)
		if (served_routes(served[i]))
			tell_requests(out, served[i]);
	for (size_t m = 0; m < sizeof(metrics) / sizeof(*metrics); m++) {
		metric_begin(out, metrics[m].name, metrics[m].type, metrics[m].help);
		for (uint32_t i = 0; i < count; i++)
			if (served_routes(served[i]))
				metric_count(out, metrics[m].name,
					     METRIC_LABELS({"engine", served_name(served[i])}),
					     number_of(&metrics[m], served[i]));
	}
}
