/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the routes of single requests, as they were assembled. */
#ifndef REPORT_ROUTES_H
#define REPORT_ROUTES_H

#include <r3ring/assembler.h>

struct report;

/* Zeroed: of no request. */
struct routes {
	uint32_t layers, experts;
	uint16_t top_k;
	struct r3ring_layer_entry *layer; /* [layers] */
	double *counts, *rows;            /* [layers][experts], [layers] */
};

/* All requests of a report are of one model; their layers may differ only where one saw no
 * channel of some. Returns 0 or -ENOMEM. */
int routes_add(struct routes *routes, const struct r3ring_assembled *assembled);

/* Gives them to the report, as what it shows. Returns 0, -ENODATA or -ENOMEM. */
int routes_settle(struct routes *routes, struct report *report);
void routes_free(struct routes *routes);

#endif
