/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on the page of r3ring serve, in a real browser: their routes, and what is missing. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/system/page_stage.h"

TestSuite(page_routes, .init = page_stage_start, .fini = page_stage_stop);

#define SAYS "document.getElementById('routes-says').textContent"
#define ROW(n) "document.querySelectorAll('#routes tbody tr')[" #n "]"

/* The page, served with these options, NULL-terminated. */
static void look(const char *const *options)
{
	page_serve(options);
	page_look();
}

static int64_t begin(const char *id, uint32_t prompt)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = prompt};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request);

	cr_assert_gt(handle, 0);
	return handle;
}

/* Until the answer is there: the newest step may not have been read yet. */
static void look_up(const char *id, const char *until)
{
	char script[512];

	snprintf(script, sizeof(script),
		 "(() => { if (%s) return true; const r = document.getElementById('request');"
		 "r.value = '%s'; document.getElementById('request-form').requestSubmit();"
		 "return false; })()",
		 until, id);
	expect_becomes(script);
}

/* Until the server has read of the request, so that no question about it is answered with 404. */
static void await_offer(const char *id)
{
	char script[512];

	expect_becomes("document.getElementById('heat-says').textContent.includes(' tokens')");
	snprintf(script, sizeof(script),
		 "(() => { document.getElementById('request').dispatchEvent(new Event('focus'));"
		 "return [...document.querySelectorAll('#requests option')].some((o) => o.value "
		 "=== '%s'); })()",
		 id);
	expect_becomes(script);
}

/* The ids of row @row of the step, as the table has them. */
static const char *ids_text(int64_t step, uint32_t layer, uint32_t row)
{
	static char text[64];
	size_t used = 0;

	for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", k ? " " : "",
					 engine_id((uint64_t)step, layer, row, k));
	return text;
}

Test(page_routes, the_table_has_the_experts_of_each_token_and_layer)
{
	int64_t step;

	look((const char *[]){NULL});
	step = engine_step(&stage.tool.engine, begin("one", 2), 4);
	await_offer("one");
	look_up("one", SAYS ".startsWith('So far 4 of 4 rows known.')");
	expect_becomes("document.querySelectorAll('#routes tbody tr').length === 4");
	expect_becomes("[...document.querySelectorAll('#routes thead th')].map((c) => "
		       "c.textContent).join() === 'Position,Weights,L3,L4,L5,L6,L7'");
	for (uint32_t i = 0; i < 4 * ENGINE_LAYERS; i++) {
		char script[160];

		snprintf(script, sizeof(script),
			 "return document.querySelectorAll('#routes tbody tr')[%u].cells[%u]"
			 ".textContent;",
			 i / ENGINE_LAYERS, 2 + i % ENGINE_LAYERS);
		cr_expect_str_eq(browser_text(&browser, script),
				 ids_text(step, i % ENGINE_LAYERS, i / ENGINE_LAYERS));
	}
	cr_expect_str_eq(browser_errors(&browser), "");
}

Test(page_routes, what_is_missing_says_why_and_is_no_number)
{
	int64_t step;

	look((const char *[]){NULL});
	step = engine_begin(&stage.tool.engine, begin("part", 2), 2);
	engine_capture(&stage.tool.engine, step, 0, 2);
	engine_end(&stage.tool.engine);
	look_up("part", SAYS ".startsWith('So far 0 of 2 rows known; missing: 2 not_captured (')");
	expect_becomes(ROW(1) ".cells[3].textContent === 'not_captured'");
	expect_becomes(ROW(1) ".cells[3].title.startsWith('Position 1, layer 4: missing, "
			      "not_captured')");
	expect_becomes("document.querySelector('#routes-runs button').textContent === "
		       "'not_captured at 0 to 1'");
	cr_expect_str_eq(browser_text(&browser, "return " ROW(1) ".cells[2].textContent;"),
			 ids_text(step, 0, 1));
	cr_expect(browser_becomes(
		&browser, "!document.getElementById('routes').textContent.includes('65535')"));
}

Test(page_routes, a_long_request_is_shown_page_by_page)
{
	engine_close(&stage.tool.engine);
	cr_assert_eq(engine_open(&stage.tool.engine, stage.tool.daemon.dir, serve_stage_instance(),
				 100, NULL),
		     0);
	look((const char *[]){NULL});
	engine_step(&stage.tool.engine, begin("long", 90), 90);
	look_up("long", SAYS ".startsWith('So far 90 of 90 rows known.')");
	expect_becomes("document.getElementById('routes-back').disabled");
	expect_becomes(ROW(0) ".cells[0].textContent === '0'");
	browser_click(&browser, "#routes-on");
	expect_becomes(ROW(0) ".cells[0].textContent === '32'");
	browser_click(&browser, "#routes-on");
	expect_becomes("document.querySelectorAll('#routes tbody tr').length === 26");
	expect_becomes("document.getElementById('routes-on').disabled");
	browser_run(&browser, "document.getElementById('routes-from').value = '7';"
			      "document.getElementById('routes-form').requestSubmit();");
	expect_becomes(ROW(0) ".cells[0].textContent === '7'");
}

Test(page_routes, a_request_that_was_evicted_says_so_and_how_many_there_were)
{
	look((const char *[]){"--routes-memory", "64K", NULL});
	for (uint32_t i = 0; i < 400; i++) {
		char id[32];

		snprintf(id, sizeof(id), "r%u", i);
		engine_step(&stage.tool.engine, begin(id, 2), 4);
	}
	look_up("r0", SAYS ".includes('evicted while it ran')");
	expect_becomes("document.getElementById('routes-box').hidden");
	expect_becomes("/for want of room \\d+ evicted/.test("
		       "document.getElementById('request-kept').textContent)");
}

Test(page_routes, ids_that_are_no_text_are_offered_and_found)
{
	look((const char *[]){NULL});
	engine_step(&stage.tool.engine, begin("\xff<img src=x onerror=document.title=1>/routes", 2),
		    1);
	browser_run(&browser, "document.getElementById('request').focus();");
	expect_becomes(
		"(() => { const o = document.querySelector('#requests option');"
		"if (!o) document.getElementById('request').dispatchEvent(new Event('focus'));"
		"return o && o.value === '\\ufffd<img src=x onerror=document.title=1>/routes';"
		"})()");
	browser_run(&browser, "const r = document.getElementById('request');"
			      "r.value = document.querySelector('#requests option').value;"
			      "document.getElementById('request-form').requestSubmit();");
	expect_becomes(SAYS ".startsWith('So far 1 of 1 row known.')");
	expect_becomes("document.getElementById('request-counted').textContent.includes('1 rows')");
	cr_expect(browser_becomes(&browser, "!document.querySelector('img')"));
	cr_expect_str_eq(browser_text(&browser, "return document.title;"), "r3ring");
}
