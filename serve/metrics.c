/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "monitor/daemon_totals.h"
#include "serve/exposition.h"

struct metrics {
	struct daemon_watch *watch;
	struct served *const *served; /* [count] */
	uint32_t count;
	pthread_mutex_t lock; /* of what follows */
	struct daemon_totals totals;
};

static void take_picture(void *context, const struct daemon_picture *picture)
{
	struct metrics *metrics = context;

	pthread_mutex_lock(&metrics->lock);
	daemon_totals_take(&metrics->totals, picture);
	pthread_mutex_unlock(&metrics->lock);
}

int metrics_start(struct metrics **metrics, struct daemon_watch *watch,
		  struct served *const *served, uint32_t count, struct r3ring_error *err)
{
	struct metrics *made = calloc(1, sizeof(*made));

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for metrics");
	made->watch = watch;
	made->served = served;
	made->count = count;
	pthread_mutex_init(&made->lock, NULL);
	daemon_watch_tell(watch, take_picture, made);
	*metrics = made;
	return 0;
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	pthread_mutex_destroy(&metrics->lock);
	free(metrics);
}

int metrics_write(struct metrics *metrics, FILE *out)
{
	struct daemon_totals *totals = malloc(sizeof(*totals));
	struct daemon_picture *before, *now;

	if (!totals)
		return -ENOMEM;
	pthread_mutex_lock(&metrics->lock);
	*totals = metrics->totals;
	pthread_mutex_unlock(&metrics->lock);
	daemon_watch_look(metrics->watch, &before, &now);
	metric_begin(out, "r3ring_build_info", METRIC_GAUGE, "Version of r3ring serve.");
	metric_count(out, "r3ring_build_info", METRIC_LABELS({"version", R3RING_VERSION}), 1);
	metrics_of_daemon(out, now, totals);
	daemon_picture_put(before);
	daemon_picture_put(now);
	free(totals);
	return metrics_of_engines(out, metrics->served, metrics->count);
}
