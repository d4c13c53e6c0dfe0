/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and durations as people read them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tools/quantity.h"

const char *quantity_bytes(char text[QUANTITY_TEXT], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024) {
		value /= 1024;
		unit++;
	}
	snprintf(text, QUANTITY_TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static const char *short_duration(char text[QUANTITY_TEXT], uint64_t ns)
{
	if (ns < 1000)
		snprintf(text, QUANTITY_TEXT, "%u ns", (unsigned int)ns);
	else if (ns < 1000000)
		snprintf(text, QUANTITY_TEXT, "%.1f us", (double)ns / 1e3);
	else
		snprintf(text, QUANTITY_TEXT, "%.1f ms", (double)ns / 1e6);
	return text;
}

const char *quantity_duration(char text[QUANTITY_TEXT], uint64_t ns)
{
	uint64_t seconds = ns / 1000000000u;

	if (!seconds)
		return short_duration(text, ns);
	if (seconds < 120)
		snprintf(text, QUANTITY_TEXT, "%" PRIu64 " s", seconds);
	else if (seconds < 7200)
		snprintf(text, QUANTITY_TEXT, "%" PRIu64 " min", seconds / 60);
	else if (seconds < 172800)
		snprintf(text, QUANTITY_TEXT, "%" PRIu64 " h", seconds / 3600);
	else
		snprintf(text, QUANTITY_TEXT, "%" PRIu64 " d", seconds / 86400);
	return text;
}
