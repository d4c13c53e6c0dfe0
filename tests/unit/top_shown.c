/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/top_shown.h"

struct top_stage stage;

void top_shown_free(void)
{
	top_stage_free(&stage);
}

void expect_shown(const char *part)
{
	cr_expect(strstr(stage.text, part), "no \"%s\" in\n%s", part, stage.text);
}

void expect_not_shown(const char *part)
{
	cr_expect_not(strstr(stage.text, part), "\"%s\" in\n%s", part, stage.text);
}

enum grid_style style_at(uint32_t row, uint32_t column)
{
	return grid_at(&stage.grid, row, column)->style;
}

const double top_two_layers[2][4] = {{1000, 1000, 1000, 1000}, {400, 2000, 1200, 400}};

double *top_many(uint32_t layers, uint32_t experts)
{
	double *counts = calloc((size_t)layers * experts, sizeof(*counts));

	for (size_t i = 0; i < (size_t)layers * experts; i++)
		counts[i] = 100;
	counts[(size_t)(layers - 1) * experts + experts - 1] = 100000;
	return counts;
}
