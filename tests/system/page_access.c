/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of r3ring serve for everybody: names and order of what keys reach, contrast of what is
 * read, and screens that are narrow, with everything shown that it can show.
 *
 * Source: Web Content Accessibility Guidelines (WCAG) 2.2, 1.4.3, 1.4.10, 1.4.11, 2.1.1, 2.4.3,
 * 2.4.7, 4.1.2; contrast as it is defined there.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/system/page_stage.h"

#define TABS_MAX 60

TestSuite(page_access, .init = page_stage_start, .fini = page_stage_stop);

/* ---- everything that there is to show -------------------------------------------- */

static void run_request_that_misses_something(void)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = "part", .prompt_tokens = 2};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request), step;

	cr_assert_gt(handle, 0);
	step = engine_begin(&stage.tool.engine, handle, 2);
	cr_assert_gt(step, 0);
	engine_capture(&stage.tool.engine, step, 0, 2);
	engine_end(&stage.tool.engine);
}

static void look_up_request(void)
{
	expect_becomes("(() => { if (document.querySelector('#routes td.missing')) return true;"
		       "document.getElementById('request').value = 'part';"
		       "document.getElementById('request-form').requestSubmit();"
		       "return false; })()");
	expect_becomes("document.querySelectorAll('#request-layers tbody tr').length === 5");
}

/* Losses in all their colours, a request with causes, what a cell says. */
static void show_everything(void)
{
	page_five_steps();
	page_lose(1);
	run_request_that_misses_something();
	expect_becomes("document.querySelector('#losses tbody tr.bad')");
	look_up_request();
	expect_becomes(WORD("losses") " === 'being lost'");
	browser_run(&browser,
		    "document.getElementById('token-form').hidden = false;"
		    "document.getElementById('threshold').value = '1.1';"
		    "document.getElementById('threshold').dispatchEvent(new Event('input'));");
	browser_type(&browser, "#heat", BROWSER_RIGHT);
	expect_becomes("!document.querySelector('#heat-box .tip').hidden");
}

/* ---- contrast ---------------------------------------------------------------------- */

/* Functions of the scripts below: `contrast` of two colours, `ground` that an element stands on. */
#define COLOURS                                                                                    \
	"const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);"   \
	"return {r, g, b, a}; };"                                                                  \
	"const over = (top, below) => ({r: top.r * top.a + below.r * (1 - top.a),"                 \
	"g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a),"      \
	"a: 1});"                                                                                  \
	"const linear = (part) => part / 255 <= 0.04045 ? part / 255 / 12.92"                      \
	": ((part / 255 + 0.055) / 1.055) ** 2.4;"                                                 \
	"const luminance = ({r, g, b}) => 0.2126 * linear(r) + 0.7152 * linear(g)"                 \
	"+ 0.0722 * linear(b);"                                                                    \
	"const contrast = (x, y) => { const [a, b] = [luminance(x), luminance(y)];"                \
	"return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };"                             \
	"const ground = (element) => { const own = element"                                        \
	"? parse(getComputedStyle(element).backgroundColor) : {r: 255, g: 255, b: 255, a: 1};"     \
	"return own.a === 1 ? own : over(own, ground(element.parentElement)); };"                  \
	"const seen = (element) => element.checkVisibility({visibilityProperty: true})"            \
	"&& !element.disabled;"                                                                    \
	"const name = (element) => `${element.tagName}${element.id ? '#' + element.id : ''}"       \
	".${element.className} \"${element.textContent.trim().slice(0, 30)}\"`;"

static double contrast_of(const char *one, const char *other)
{
	char script[4096];
	json_t *value;
	double contrast;

	snprintf(script, sizeof(script), COLOURS "return contrast(parse('%s'), parse('%s'));", one,
		 other);
	value = browser_run(&browser, script);
	contrast = json_number_value(value);
	json_decref(value);
	return contrast;
}

Test(page_access, contrast_is_measured_as_it_is_defined)
{
	cr_expect_float_eq(contrast_of("rgb(0, 0, 0)", "rgb(255, 255, 255)"), 21, 1e-9);
	/* The darkest grey that white does not do on, and the next. */
	cr_expect_lt(contrast_of("rgb(119, 119, 119)", "rgb(255, 255, 255)"), 4.5);
	cr_expect_gt(contrast_of("rgb(118, 118, 118)", "rgb(255, 255, 255)"), 4.5);
}

/* Of every text that is seen; of disabled controls none is asked for. */
static void expect_contrast(const char *theme)
{
	browser_prefer(&browser, "prefers-color-scheme", theme);
	expect_becomes(strcmp(theme, "dark") == 0
			       ? "getComputedStyle(document.body).backgroundColor === "
				 "'rgb(17, 20, 27)'"
			       : "getComputedStyle(document.body).backgroundColor === "
				 "'rgb(251, 251, 253)'");
	cr_expect_str_eq(
		browser_text(
			&browser, COLOURS
			"const texts = [...document.body.querySelectorAll('*')].filter((e) => "
			"seen(e)"
			"&& (e.matches('input, select') || [...e.childNodes].some((n) =>"
			"n.nodeType === 3 && n.textContent.trim())));"
			"const bad = texts.map((e) => [e, contrast(over(parse(getComputedStyle(e)"
			".color), ground(e)), ground(e))]).filter(([e, ratio]) => ratio < 4.5);"
			"return texts.length < 100 ? `only ${texts.length} texts`"
			": bad.map(([e, ratio]) => `${name(e)}: ${ratio.toFixed(2)}`).join('; ');"),
		"", "in the %s", theme);
}

Test(page_access, every_text_has_contrast_in_the_light_and_in_the_dark)
{
	show_everything();
	expect_contrast("light");
	expect_contrast("dark");
	/* And once all of it is old. */
	command_free(&stage.server);
	expect_becomes(WORD("data") " === 'server gone'");
	expect_contrast("dark");
	expect_contrast("light");
}

/* Edges of controls, the mark of the focus, and what stands beside a layer or a verdict. */
static void expect_edges(const char *theme)
{
	browser_prefer(&browser, "prefers-color-scheme", theme);
	cr_expect_str_eq(
		browser_text(
			&browser, COLOURS
			"const edges = [...document.querySelectorAll('select, button,"
			"input:not([type=range])')].filter(seen);"
			"const bad = edges.filter((e) => contrast(parse(getComputedStyle(e)"
			".borderTopColor), ground(e.parentElement)) < 3).map(name);"
			"const root = getComputedStyle(document.documentElement), hex = (v) => {"
			"const n = parseInt(root.getPropertyValue(v).trim().slice(1), 16);"
			"return {r: n >> 16, g: n >> 8 & 255, b: n & 255, a: 1}; };"
			"for (const mark of ['--mark', '--warn', '--bad', '--good'])"
			"for (const on of ['--panel', '--back'])"
			"if (contrast(hex(mark), hex(on)) < 3) bad.push(mark + on);"
			"return edges.length < 10 ? `only ${edges.length}` : bad.join('; ');"),
		"", "in the %s", theme);
}

Test(page_access, controls_and_marks_stand_out_from_what_they_stand_on)
{
	show_everything();
	expect_edges("light");
	expect_edges("dark");
}

/* ---- keys ---------------------------------------------------------------------------- */

/* What the focus is on, as its place in the document's order: each is given a number. */
static void number_what_keys_reach(void)
{
	browser_run(&browser,
		    "let n = 0; for (const e of document.querySelectorAll('a[href], input, select,"
		    "button, [tabindex=\"0\"]')) if (e.checkVisibility() && !e.disabled)"
		    "e.dataset.place = String(n++); document.body.dataset.places = String(n);");
}

static int integer_of(const char *script)
{
	json_t *value = browser_run(&browser, script);
	int number = (int)json_integer_value(value);

	json_decref(value);
	return number;
}

static void expect_marked(int place)
{
	cr_expect(browser_becomes(&browser,
				  "(() => { const s = getComputedStyle(document.activeElement);"
				  "return s.outlineStyle === 'solid' && parseFloat(s.outlineWidth) "
				  ">= 2; })()"),
		  "nobody sees that the focus is on %d", place);
}

Test(page_access, tab_goes_through_all_in_the_order_that_it_stands_in)
{
	int places;

	show_everything();
	number_what_keys_reach();
	places = integer_of("return Number(document.body.dataset.places);");
	cr_assert_gt(places, 15);
	cr_assert_lt(places, TABS_MAX);
	browser_run(&browser, "document.querySelector('.skip').focus();");
	for (int place = 1; place < places; place++) {
		browser_press(&browser, BROWSER_TAB);
		cr_assert_eq(
			integer_of("return Number(document.activeElement.dataset.place ?? -1);"),
			place, "before %d: %s", place,
			browser_text(&browser, "return document.activeElement.outerHTML;"));
		expect_marked(place);
	}
}

Test(page_access, the_first_key_leads_past_the_controls_to_the_heatmap)
{
	page_five_steps();
	browser_press(&browser, BROWSER_TAB);
	cr_expect(browser_becomes(&browser, "document.activeElement.className === 'skip'"));
	cr_expect(browser_becomes(&browser,
				  "document.activeElement.getBoundingClientRect().left >= 0"));
	browser_press(&browser, BROWSER_ENTER);
	cr_expect(browser_becomes(&browser, "document.activeElement.id === 'heat'"));
}

Test(page_access, whatever_keys_reach_has_a_name_of_its_own)
{
	int places;

	show_everything();
	number_what_keys_reach();
	places = integer_of("return Number(document.body.dataset.places);");
	for (int place = 0; place < places; place++) {
		char selector[48];

		snprintf(selector, sizeof(selector), "[data-place=\"%d\"]", place);
		cr_expect_geq(strlen(browser_name(&browser, selector)), strlen("Go"), "no name: %d",
			      place);
	}
	cr_expect_str_eq(browser_name(&browser, "#threshold"), "Uneven from \u00d7 mean");
	cr_expect_str_eq(browser_name(&browser, "#time"), "Moment that is shown");
}

/* ---- room ------------------------------------------------------------------------------ */

/* Nothing reaches beyond the screen but what scrolls within it, or is hidden on purpose. */
static void expect_fits(int width)
{
	char script[1024];

	browser_resize(&browser, width, 740);
	snprintf(script, sizeof(script), "innerWidth === %d", width);
	expect_becomes(script);
	snprintf(script, sizeof(script),
		 "const beyond = [...document.body.querySelectorAll('*')].filter((e) =>"
		 "e.checkVisibility() && !e.closest('.scroll, .skip, .unseen')"
		 "&& e.getBoundingClientRect().right > %d.5);"
		 "const wide = document.documentElement.scrollWidth > %d;"
		 "return (wide ? `scrolls to ${document.documentElement.scrollWidth}: ` : '')"
		 "+ beyond.map((e) => e.tagName + '#' + e.id + '.' + e.className).join('; ');",
		 width, width);
	cr_expect_str_eq(browser_text(&browser, script), "");
}

Test(page_access, nothing_reaches_beyond_a_screen_of_360_pixels_whatever_is_shown)
{
	show_everything();
	expect_fits(360);
	expect_fits(320);
	expect_fits(800);
}
