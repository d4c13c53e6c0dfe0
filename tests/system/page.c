/* SPDX-License-Identifier: Apache-2.0 */
/* The page of r3ring serve, in a real browser, of an engine that really runs. */
#include <criterion/criterion.h>

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/stand_still.h"
#include "tests/system/page_stage.h"

#define LEVELS 256
#define CELLS (ENGINE_LAYERS * ENGINE_EXPERTS)

TestSuite(page, .init = page_stage_start, .fini = page_stage_stop);

/* ---- the heatmap -------------------------------------------------------------- */

/* Worked out again by the rule that the engine makes its ids by. */
static uint32_t count_of(uint64_t steps, uint32_t layer, uint32_t expert)
{
	uint32_t count = 0;

	for (uint64_t step = 1; step <= steps; step++)
		for (uint32_t i = 0; i < 4 * ENGINE_TOP_K; i++)
			count += engine_id(step, layer, i / ENGINE_TOP_K, i % ENGINE_TOP_K) ==
				 expert;
	return count;
}

static uint32_t largest_count(uint64_t steps)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < CELLS; i++) {
		uint32_t count = count_of(steps, i / ENGINE_EXPERTS, i % ENGINE_EXPERTS);

		most = count > most ? count : most;
	}
	return most;
}

/* Every pixel has the colour that the legend has at its count's level: of 255, rounded up. */
static void expect_pixels(uint64_t steps, bool logarithmic)
{
	json_t *drawn = browser_run(
		&browser,
		"const pixels = (id) => { const c = document.getElementById(id);"
		"return [...new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, "
		"c.height).data.buffer)]; };"
		"return {heat: pixels('heat'), legend: pixels('legend')};");
	const json_t *heat = json_object_get(drawn, "heat");
	const json_t *legend = json_object_get(drawn, "legend");
	double most = largest_count(steps);

	cr_assert_eq(json_array_size(heat), CELLS);
	cr_assert_eq(json_array_size(legend), LEVELS);
	cr_expect_neq(json_integer_value(json_array_get(legend, 0)),
		      json_integer_value(json_array_get(legend, 1)), "nothing is not little");
	for (uint32_t i = 0; i < CELLS; i++) {
		double count = count_of(steps, i / ENGINE_EXPERTS, i % ENGINE_EXPERTS);
		double part = logarithmic ? log1p(count) / log1p(most) : count / most;
		size_t level = (size_t)ceil((LEVELS - 1) * part - 1e-9);

		cr_assert_eq(json_integer_value(json_array_get(heat, i)),
			     json_integer_value(json_array_get(legend, level)),
			     "layer %u, expert %u: %g of %g", i / ENGINE_EXPERTS,
			     i % ENGINE_EXPERTS, count, most);
	}
	json_decref(drawn);
}

/* Of the largest count: by its theme's last colour. */
static void expect_brightest(unsigned int red, unsigned int green, unsigned int blue)
{
	char script[256];

	snprintf(script, sizeof(script),
		 "(() => { const c = document.getElementById('legend'); return [...c.getContext("
		 "'2d').getImageData(c.width - 1, 0, 1, 1).data].join() === '%u,%u,%u,255'; })()",
		 red, green, blue);
	expect_becomes(script);
}

static void keep_picture(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s", test_program("r3ring"));
	snprintf(strrchr(path, '/'), 32, "/tests/page.png");
	browser_picture(&browser, path);
}

Test(page, the_heatmaps_pixels_are_the_counts_that_were_fed)
{
	page_five_steps();
	expect_pixels(5, false);
	expect_brightest(58, 6, 66);
	browser_run(&browser, "const scale = document.getElementById('scale'); scale.value = 'log';"
			      "scale.dispatchEvent(new Event('change'));");
	expect_becomes("document.getElementById('legend-max').textContent.includes('log')");
	expect_pixels(5, true);
	page_run(1);
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 24 tokens')");
	expect_pixels(6, true);
	browser_prefer(&browser, "prefers-color-scheme", "dark");
	expect_becomes("getComputedStyle(document.body).backgroundColor === 'rgb(17, 20, 27)'");
	page_run(1);
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 28 tokens')");
	expect_pixels(7, true);
	expect_brightest(252, 232, 130);
	keep_picture();
	cr_expect_str_eq(browser_errors(&browser), "");
}

/* What is said of the cell in layer @layer (index) at expert @expert. */
static void expect_words(const char *words, uint32_t layer, uint32_t expert)
{
	uint32_t count = count_of(5, layer, expert);
	char expected[160];

	snprintf(expected, sizeof(expected),
		 "Layer %u, expert %u: %u tokens, %.2f %% of the layer, %.2f \xc3\x97 its mean",
		 ENGINE_FIRST_LAYER + layer, expert, count, 100.0 * count / (5 * 4 * ENGINE_TOP_K),
		 (double)count * ENGINE_EXPERTS / (5 * 4 * ENGINE_TOP_K));
	cr_expect_str_eq(words, expected);
}

/* Where the middles of an axis' numbers lie, in cells of the heatmap, beside the numbers. */
static json_t *marks_of(const char *axis, const char *middle, const char *cells)
{
	char script[640];

	snprintf(script, sizeof(script),
		 "const c = document.getElementById('heat'), b = c.getBoundingClientRect();"
		 "return [...document.querySelectorAll('#%s span')].map((mark) => {"
		 "const m = mark.getBoundingClientRect();"
		 "return [Number(mark.textContent), %s / %s];});",
		 axis, middle, cells);
	return browser_run(&browser, script);
}

static void expect_marks(json_t *marks, size_t least, int first_number)
{
	const json_t *mark;
	size_t i;

	cr_expect_geq(json_array_size(marks), least);
	json_array_foreach (marks, i, mark) {
		double number = json_number_value(json_array_get(mark, 0));
		double cell = json_number_value(json_array_get(mark, 1));

		cr_expect_float_eq(cell, number - first_number + 0.5, 0.5, "%g at %g", number,
				   cell);
	}
	json_decref(marks);
}

Test(page, numbers_of_layers_and_experts_stand_at_theirs)
{
	page_five_steps();
	expect_becomes("document.querySelectorAll('#layer-axis span').length === 5");
	expect_marks(
		marks_of("layer-axis", "((m.top + m.bottom) / 2 - b.top)", "(b.height / c.height)"),
		ENGINE_LAYERS, ENGINE_FIRST_LAYER);
	expect_marks(
		marks_of("expert-axis", "((m.left + m.right) / 2 - b.left)", "(b.width / 256)"), 8,
		0);
	browser_resize(&browser, 360, 740);
	/* Fewer where there is less room, at their places all the same. */
	expect_becomes("document.querySelectorAll('#expert-axis span').length <= 8");
	expect_marks(
		marks_of("expert-axis", "((m.left + m.right) / 2 - b.left)", "(b.width / 256)"), 4,
		0);
}

/* From now on all that is said aloud is kept: what comes next may take its place at once. */
static void listen(void)
{
	browser_run(&browser, "window.said = []; const say = document.getElementById('say');"
			      "new MutationObserver(() => said.push(say.textContent)).observe("
			      "say, {childList: true, characterData: true, subtree: true});");
}

/* What was said that begins with @begin; all of it where there is none. */
static const char *heard(const char *begin)
{
	char script[160];

	snprintf(script, sizeof(script),
		 "return said.findLast((text) => text.startsWith('%s')) || said.join('|');", begin);
	return browser_text(&browser, script);
}

Test(page, a_cell_says_what_it_is_to_pointers_and_to_keys)
{
	uint32_t expert = engine_id(1, 2, 0, 0);
	char script[512];

	page_five_steps();
	snprintf(script, sizeof(script),
		 "const c = document.getElementById('heat'), b = c.getBoundingClientRect();"
		 "c.dispatchEvent(new PointerEvent('pointermove', {"
		 "clientX: b.left + %g * b.width, clientY: b.top + %g * b.height}));"
		 "return document.querySelector('#heat-box .tip').textContent;",
		 (expert + 0.5) / ENGINE_EXPERTS, 2.5 / ENGINE_LAYERS);
	expect_words(browser_text(&browser, script), 2, expert);
	browser_run(&browser, "document.getElementById('heat').dispatchEvent("
			      "new PointerEvent('pointerleave'));");
	listen();
	browser_type(&browser, "#heat", BROWSER_RIGHT BROWSER_RIGHT BROWSER_DOWN);
	expect_words(browser_text(&browser,
				  "return document.querySelector('#heat-box .tip').textContent;"),
		     1, 1);
	expect_words(heard("Layer"), 1, 1);
	/* The same in a table, for those who see no picture. */
	cr_expect_str_eq(browser_text(&browser, "return document.querySelector('#balance tbody td')"
						".textContent;"),
			 "3");
	cr_expect(browser_becomes(&browser, "document.querySelectorAll('#balance tbody tr')"
					    ".length === 5"));
}

/* ---- now, and not any more ------------------------------------------------------ */

Test(page, it_says_when_the_server_is_gone_and_goes_on_with_the_next)
{
	page_five_steps();
	expect_becomes(WORD("data") " === 'live' || " WORD("data") " === 'engine silent'");
	expect_becomes(WORD("losses") " === 'nothing lost'");
	command_free(&stage.server);
	expect_becomes(WORD("data") " === 'server gone'");
	expect_becomes(WORD("losses") " === 'not known now'");
	cr_expect(browser_becomes(&browser, "/ ago: nothing lost/.test(document.querySelector("
					    "'#verdict-losses .more').textContent) && document."
					    "getElementById('verdict-losses').className.trim() === "
					    "'verdict'"));
	cr_expect(browser_becomes(&browser, "document.body.classList.contains('stale')"));
	page_serve((const char *[]){NULL});
	page_run(1);
	expect_becomes(WORD("data") " === 'live'");
	expect_becomes("!document.body.classList.contains('stale')");
}

Test(page, it_says_when_the_engine_is_silent_or_not_there)
{
	page_five_steps();
	expect_becomes(WORD("data") " === 'engine silent'");
	cr_expect(browser_becomes(&browser, "document.body.classList.contains('stale')"));
	page_run(1);
	expect_becomes(WORD("data") " === 'live'");
	command_free(&stage.server);
	engine_close(&stage.tool.engine);
	test_daemon_kill(&stage.tool.daemon);
	page_serve((const char *[]){NULL});
	expect_becomes(WORD("data") " === 'no engine'");
	expect_becomes(WORD("losses") " === 'not known'");
}

static void choose_instance(const char *name)
{
	char script[256];

	snprintf(script, sizeof(script),
		 "const i = document.getElementById('instance'); i.value = '%s';"
		 "i.dispatchEvent(new Event('change'));",
		 name);
	browser_run(&browser, script);
}

Test(page, of_an_engine_that_is_not_there_no_other_ones_figures_are_shown)
{
	page_five_steps();
	expect_becomes("document.querySelectorAll('#balance tbody tr').length === 5");
	expect_becomes(WORD("losses") " === 'nothing lost'");
	/* What was lost lately is said for ten seconds, of this engine. */
	page_lose(1);
	expect_becomes(WORD("losses") " === 'being lost'");
	choose_instance(page_nobody());
	expect_becomes(WORD("data") " === 'no engine'");
	expect_becomes("/^No such engine|too_big/.test(document.querySelector('#verdict-losses "
		       ".more').textContent)");
	cr_expect_str_eq(browser_text(&browser, "return " WORD("losses") ";"), "waiting");
	expect_becomes("document.querySelector('#verdict-losses .more').textContent === "
		       "'No such engine yet.'");
	cr_expect_str_eq(browser_text(&browser, "return " WORD("balance") ";"), "waiting");
	cr_expect_str_eq(browser_text(&browser, "return document.getElementById('heat-says')"
						".textContent;"),
			 "");
	cr_expect(browser_becomes(&browser, "document.querySelectorAll('#balance tbody tr')"
					    ".length === 1"));
	cr_expect(browser_becomes(&browser,
				  "(() => { const c = document.getElementById('heat');"
				  "return new Uint32Array(c.getContext('2d').getImageData(0, 0, "
				  "c.width, c.height).data.buffer).every((p) => p === 0); })()"));
	choose_instance(serve_stage_instance());
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 20 tokens')");
	expect_pixels(5, false);
	cr_expect_str_eq(browser_errors(&browser), "");
}

Test(page, it_says_when_the_engine_has_ended)
{
	page_five_steps();
	engine_close(&stage.tool.engine);
	expect_becomes(WORD("data") " === 'engine ended'");
	expect_becomes("document.querySelector('#verdict-losses .more').textContent"
		       ".startsWith('Until it ended')");
	/* Who comes only now sees its last load. */
	page_look();
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 20 tokens')");
	expect_becomes(WORD("data") " === 'engine ended'");
}

Test(page, it_says_when_the_daemon_does_not_answer)
{
	bool said;

	page_five_steps();
	stand_still(stage.tool.daemon.pid);
	said = browser_becomes(&browser, WORD("data") " === 'daemon does not answer'");
	kill(stage.tool.daemon.pid, SIGCONT);
	cr_expect(said);
	expect_becomes(WORD("data") " === 'engine silent'");
}

Test(page, what_is_paused_stands_still_a_sum_begins_anew_and_the_past_comes_back)
{
	page_five_steps();
	browser_click(&browser, "#pause");
	page_run(1);
	expect_becomes("Number(document.getElementById('heat').dataset.heard) > 1");
	expect_becomes(WORD("data") " === 'paused'");
	expect_pixels(5, false);
	browser_click(&browser, "#pause");
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 24 tokens')");
	expect_pixels(6, false);
	browser_click(&browser, "#reset");
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 0 tokens')");
	expect_becomes(WORD("balance") " === 'no load'");
	/* The steps before lie in the past, all in one second or in some. */
	expect_becomes("Number(document.getElementById('time').max) > 0");
	browser_run(&browser, "const t = document.getElementById('time'); t.value = '0';"
			      "t.dispatchEvent(new Event('input'));");
	expect_becomes(WORD("data") " === 'the past'");
	expect_becomes("document.getElementById('heat-says').textContent.startsWith('At ')");
	expect_becomes("!document.getElementById('heat-says').textContent.includes(', 0 tokens')");
	browser_click(&browser, "#live");
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 0 tokens')");
}

#define ABSENT "document.getElementById('channels-says').textContent"

Test(page, a_pipelines_stage_of_which_there_is_no_channel_is_named)
{
	struct r3ring_producer *producer;

	page_five_steps();
	expect_becomes("document.querySelector('#channels tbody').rows.length === 1");
	cr_expect_str_eq(browser_text(&browser, "return " ABSENT ";"), "");
	producer = page_open_rank("engine", (struct r3ring_coordinate){1, 3});
	expect_becomes(ABSENT ".startsWith('No channel here of pipeline stage 0 of 3, counted from "
			      "0, of ') && " ABSENT ".includes('; pipeline stage 2 of 3, ')");
	r3ring_producer_close(producer);
	expect_becomes(ABSENT " === ''");
}

/* ---- figures --------------------------------------------------------------------- */

#define RATE                                                                                       \
	"/^[1-9][\\d.]* K?B\\/s$/.test(document.querySelector('#channels tbody').rows[0]"          \
	".cells[5].textContent)"

Test(page, few_bytes_are_not_none)
{
	static const char *const figures[] = {
		"asBytes(0) === '0 B'",           "asBytes(999) === '999 B'",
		"asBytes(1000) === '1 KB'",       "asBytes(45678) === '45.7 KB'",
		"asBytes(1e6) === '1 MB'",        "asBytes(1234567) === '1.2 MB'",
		"asBytes('16128') === '16.1 KB'",
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		cr_expect_eq(page_computes("dom.js", figures[i]), 1, "%s", figures[i]);
	page_five_steps();
	/* A rate is shown while there is one. */
	for (int tries = 0; !browser_is(&browser, RATE); tries++) {
		cr_assert_lt(tries, 1000, "no rate is shown; %s", page_says());
		page_run(1);
		poll(NULL, 0, 20);
	}
}

/* ---- who looks --------------------------------------------------------------------- */

Test(page, a_telephone_shows_it_without_scrolling_sideways)
{
	page_five_steps();
	expect_becomes("document.querySelector('#readers tbody').rows.length === 2 && "
		       "document.querySelector('#channels tbody').rows.length");
	expect_becomes("/^\\d+ serve:(load.*serve:routes|routes.*serve:load)/s.test(["
		       "...document.querySelectorAll('#readers tbody tr')].map((row) => "
		       "row.cells[1].textContent).join('\\n'))");
	browser_resize(&browser, 250, 740);
	/* Fewer pixels than experts: a column stands for several. */
	expect_becomes("document.getElementById('heat').width === 128");
	expect_becomes("document.getElementById('heat-says').textContent.includes('hottest of 2')");
	browser_resize(&browser, 360, 740);
	expect_becomes("document.getElementById('heat').width === 256");
	cr_expect(browser_becomes(&browser, "document.documentElement.scrollWidth <= 360"));
	cr_expect(browser_becomes(&browser, "innerWidth === 360"));
}

static const char *write_token(const char *token)
{
	static char file[160];
	FILE *out;

	snprintf(file, sizeof(file), "%s/token", stage.tool.daemon.dir);
	out = fopen(file, "w");
	cr_assert(out);
	fputs(token, out);
	fchmod(fileno(out), 0600);
	fclose(out);
	return file;
}

Test(page, a_token_is_asked_for_and_kept_for_the_tab_alone)
{
	page_serve((const char *[]){"--token-file", write_token("s3cret\n"), NULL});
	page_run(5);
	page_look();
	expect_becomes("!document.getElementById('token-form').hidden");
	browser_type(&browser, "#token", "wrong" BROWSER_ENTER);
	expect_becomes("document.getElementById('token-said').textContent.includes('not know')");
	browser_type(&browser, "#token", "s3cret" BROWSER_ENTER);
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 20 tokens')");
	cr_expect(browser_becomes(&browser, "document.getElementById('token-form').hidden"));
	cr_expect(browser_becomes(&browser, "document.cookie === '' && localStorage.length === 0"));
	cr_expect(browser_becomes(&browser, "!document.documentElement.outerHTML.includes('s3cret')"
					    " && !location.href.includes('s3cret')"));
}
