/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that Prometheus reads.
 *
 * Source: Prometheus, "Exposition formats", text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
#ifndef SERVE_EXPOSITION_H
#define SERVE_EXPOSITION_H

#include <stdint.h>
#include <stdio.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_HISTOGRAM,
};

/* Begins a metric: all its samples follow, and then none of it. @help: ASCII, one line. */
void metric_begin(FILE *out, const char *name, enum metric_type type, const char *help);

struct metric_label {
	const char *name; /* NULL ends the list */
	const char *value;
};

#define METRIC_LABELS(...) ((const struct metric_label[]){__VA_ARGS__, {0}})

/* A sample; @labels may be NULL. Values of labels are anybody's: they are escaped, and what is
 * not UTF-8 becomes U+FFFD, since one such byte would spoil the whole answer. */
void metric_count(FILE *out, const char *name, const struct metric_label *labels, uint64_t value);
void metric_value(FILE *out, const char *name, const struct metric_label *labels, double value);

#endif
