/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that flows over as many rows of a grid as there are: pieces, the most important first,
 * broken between words, and before a clause that has no room in the rest of a row. What has no room is never cut in silence: it is counted, and told.
 */
#ifndef TOOLS_TOP_FLOW_H
#define TOOLS_TOP_FLOW_H

#include "tools/top_grid.h"

#define FLOW_PIECES 64u
#define FLOW_TEXT 4096u

struct flow_piece {
	uint32_t begin; /* in flow.text */
	enum grid_style style;
	bool clause;    /* begins one */
	uint64_t steps; /* that it tells of: their sum is told of pieces without room */
};

struct flow {
	uint32_t pieces, used;
	bool clause;      /* the next piece begins one */
	uint32_t dropped; /* pieces that are too much for it */
	uint64_t dropped_steps;
	uint32_t indent;   /* of all rows but the first */
	const char *label; /* that stands in front, in the indent; NULL: none */
	const char *more;  /* how to see what has no room, as "d shows them"; NULL: no way */
	struct flow_piece piece[FLOW_PIECES];
	char text[FLOW_TEXT]; /* each ends with a NUL */
};

/* Rows of the grid that a part may use: @row receives the first that it has left. */
struct top_space {
	struct grid *grid;
	uint32_t row, end;
};

/* Adds a piece. One that is too much for the flow counts as one without room. */
void flow_add(struct flow *flow, enum grid_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The next piece begins a clause: a bar in front of it, or a row of its own. */
void flow_clause(struct flow *flow);

/* Nothing comes any more: takes the semicolon away that the last piece ends in. */
void flow_end_list(struct flow *flow);

/* The same as flow_add(), of so many steps. */
void flow_add_steps(struct flow *flow, enum grid_style style, uint64_t steps, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));

/* How many rows all of it takes. */
uint32_t flow_rows(const struct flow *flow, const struct grid *grid);

/* Draws what there is room for, and behind it how much there is not; space->row goes on. */
void flow_draw(const struct flow *flow, struct top_space *space);

#endif
