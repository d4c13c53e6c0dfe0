/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of `r3ring top` from figures that a test gives, drawn onto a grid. */
#ifndef TESTS_SUPPORT_TOP_STAGE_H
#define TESTS_SUPPORT_TOP_STAGE_H

#include "tools/top_frame.h"

struct top_stage {
	struct top_frame frame;
	struct top_losses losses;
	struct daemon_picture *picture;
	struct picture_rates *rates;
	struct top_load *load;
	struct grid grid;
	char *text; /* what was drawn */
};

/* A daemon that told @json; losses are those of the picture. In C.UTF-8. */
void top_stage_make(struct top_stage *stage, const char *json);

/* Gives it a load: the layers are numbered from @first on; each of @counts. */
void top_stage_load(struct top_stage *stage, int32_t first, uint32_t layers, uint32_t experts,
		    const double *counts);

/* Gives that load GPUs, its experts in order over them. */
void top_stage_gpus(struct top_stage *stage, uint32_t gpus);

/* Draws; the text of it, line by line, is in stage->text. */
void top_stage_draw(struct top_stage *stage, uint32_t rows, uint32_t columns);

/* The text of one row, from a column on, in a buffer of this call's. */
const char *top_stage_row(const struct top_stage *stage, uint32_t row);

void top_stage_free(struct top_stage *stage);

#endif
