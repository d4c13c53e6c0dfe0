/* SPDX-License-Identifier: Apache-2.0 */
/* docs/grafana.json: that it can be imported anywhere, and calls uneven what all else does. */
#include <criterion/criterion.h>

#include <string.h>

#include <jansson.h>

#include "monitor/balance.h"

#define COLUMNS 24 /* of Grafana's grid */
#define ROWS_MAX 400

static json_t *dashboard;

static void open_dashboard(void)
{
	json_error_t error;

	dashboard = json_load_file("docs/grafana.json", JSON_REJECT_DUPLICATES, &error);
	cr_assert(dashboard, "docs/grafana.json, line %d: %s", error.line, error.text);
}

static void close_dashboard(void)
{
	json_decref(dashboard);
}

TestSuite(dashboard, .init = open_dashboard, .fini = close_dashboard);

static const json_t *panels(void)
{
	return json_object_get(dashboard, "panels");
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
	cr_assert(json_is_integer(json_object_get(object, key)), "no number \"%s\"", key);
	return json_integer_value(json_object_get(object, key));
}

/* ---- where its figures come from ----------------------------------------------- */

/* One that is chosen where it is imported, not one of whoever made it. */
static void expect_chosen(const json_t *object, const char *title)
{
	const json_t *source = json_object_get(object, "datasource");

	cr_expect_str_eq(text_of(source, "uid"), "${datasource}", "%s", title);
	cr_expect_str_eq(text_of(source, "type"), "prometheus", "%s", title);
}

Test(dashboard, every_panel_and_target_has_the_source_that_is_chosen)
{
	const json_t *panel, *target;
	size_t i, j, targets = 0;

	json_array_foreach (panels(), i, panel) {
		expect_chosen(panel, text_of(panel, "title"));
		json_array_foreach (json_object_get(panel, "targets"), j, target) {
			expect_chosen(target, text_of(panel, "title"));
			targets++;
		}
	}
	cr_expect_geq(targets, 20);
}

static bool is_variable(const char *name, size_t length)
{
	const json_t *list = json_object_get(json_object_get(dashboard, "templating"), "list");
	const json_t *variable;
	size_t i;

	json_array_foreach (list, i, variable) {
		if (strlen(text_of(variable, "name")) == length &&
		    strncmp(text_of(variable, "name"), name, length) == 0)
			return true;
	}
	return false;
}

Test(dashboard, its_variables_are_there_or_grafanas_own)
{
	char *text = json_dumps(dashboard, 0);
	unsigned int used = 0;

	for (const char *at = text; (at = strchr(at, '$')); used++) {
		const char *name = at + 1 + (at[1] == '{');
		size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

		cr_expect(length && (strncmp(name, "__", 2) == 0 || is_variable(name, length)),
			  "there is no %.20s", at);
		at = name;
	}
	cr_expect_gt(used, 40);
	free(text);
}

/* ---- where its panels are ------------------------------------------------------- */

Test(dashboard, panels_have_numbers_of_their_own)
{
	const json_t *one, *other;
	size_t i, j;

	json_array_foreach (panels(), i, one)
		json_array_foreach (panels(), j, other)
			cr_expect(i == j || number_of(one, "id") != number_of(other, "id"),
				  "\"%s\" and \"%s\"", text_of(one, "title"),
				  text_of(other, "title"));
}

Test(dashboard, panels_lie_beside_each_other_and_within_the_grid)
{
	static const char *taken[ROWS_MAX][COLUMNS];
	const json_t *panel;
	size_t i;

	json_array_foreach (panels(), i, panel) {
		const json_t *place = json_object_get(panel, "gridPos");
		long long x = number_of(place, "x"), y = number_of(place, "y");
		long long w = number_of(place, "w"), h = number_of(place, "h");
		const char *title = text_of(panel, "title");

		cr_assert(x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= COLUMNS &&
				  y + h <= ROWS_MAX,
			  "\"%s\" reaches beyond the grid", title);
		for (long long cell = 0; cell < w * h; cell++) {
			const char **at = &taken[y + cell / w][x + cell % w];

			cr_assert_null(*at, "\"%s\" lies on \"%s\"", title, *at);
			*at = title;
		}
	}
}

/* ---- what it calls bad ------------------------------------------------------------ */

/* The value of a panel's second colour: the first is that of all below. */
static double limit_of(const char *title)
{
	const json_t *panel, *steps;
	size_t i;

	json_array_foreach (panels(), i, panel) {
		if (strcmp(text_of(panel, "title"), title))
			continue;
		steps = json_object_get(json_object_get(panel, "fieldConfig"), "defaults");
		steps = json_object_get(json_object_get(steps, "thresholds"), "steps");
		return json_number_value(json_object_get(json_array_get(steps, 1), "value"));
	}
	return 0;
}

Test(dashboard, it_has_the_limits_that_top_the_page_and_the_alerts_have)
{
	cr_expect_eq(limit_of("Worst layer, GPUs"), BALANCE_GPUS_UNEVEN);
	cr_expect_eq(limit_of("Worst layer, experts"), BALANCE_UNEVEN);
}
