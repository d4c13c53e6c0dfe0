/* SPDX-License-Identifier: Apache-2.0 */
/* Names and ids that strangers chose, on the page of r3ring serve in a real browser. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/system/page_stage.h"

TestSuite(page_names, .init = page_stage_start, .fini = page_stage_stop);

/* @id: as JavaScript writes it. */
static void look_up(const char *id)
{
	char script[256];

	snprintf(script, sizeof(script),
		 "document.getElementById('request').value = '%s';"
		 "document.getElementById('request-form').requestSubmit();",
		 id);
	browser_run(&browser, script);
}

#define HOSTILE "<img src=x onerror=document.title=1>&\"'</script>"

Test(page_names, hostile_ids_are_text_and_nothing_else)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = HOSTILE, .prompt_tokens = 2};
	int64_t handle;

	page_five_steps();
	handle = r3ring_request_begin(stage.tool.engine.producer, &request);
	cr_assert_gt(handle, 0);
	engine_step(&stage.tool.engine, handle, 1);
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 21 tokens')");
	browser_type(&browser, "#request", HOSTILE BROWSER_ENTER);
	expect_becomes("document.getElementById('request-counted').textContent.includes('1 rows of "
		       "prefill')");
	cr_expect(browser_becomes(&browser,
				  "document.getElementById('request-says').textContent"
				  ".startsWith(document.getElementById('request').value)"));
	cr_expect_str_eq(browser_text(&browser, "return document.getElementById('request').value;"),
			 HOSTILE);
	cr_expect(browser_becomes(&browser, "!document.querySelector('img')"));
	cr_expect_str_eq(browser_text(&browser, "return document.title;"), "r3ring");
	/* Its routes: each layer's six experts, once each. */
	cr_expect(browser_becomes(&browser, "document.querySelectorAll('#request-layers tbody tr')"
					    ".length === 5"));
	browser_run(&browser, "document.getElementById('request').value = '';");
	browser_type(&browser, "#request", "<b>nobody</b>" BROWSER_ENTER);
	expect_becomes("document.getElementById('request-says').textContent.startsWith("
		       "'<b>nobody</b>: no request')");
	cr_expect(browser_becomes(&browser, "!document.querySelector('b')"));
}

/* U+202E turns round what follows it, U+2067 and U+2069 begin and end such a part, U+200B is not
 * seen at all. */
Test(page_names, names_that_reorder_or_hide_what_is_read_are_told_by_their_numbers)
{
	struct r3ring_producer *producer;

	page_five_steps();
	producer =
		page_open_rank("gpt\u202eevil\u2067\u2069\u200b\n", (struct r3ring_coordinate){0});
	expect_becomes(
		"[...document.querySelector('#channels tbody').rows].some((row) => "
		"row.cells[2].textContent === '\\u2068gpt\u27e8U+202E\u27e9evil\u27e8U+2067\u27e9"
		"\u27e8U+2069\u27e9\u27e8U+200B\u27e9\u27e8U+000A\u27e9\\u2069')");
	r3ring_producer_close(producer);
	look_up("x\\u202eon \\u2069y");
	expect_becomes("document.getElementById('request-says').textContent.startsWith("
		       "'\\u2068x\u27e8U+202E\u27e9on \u27e8U+2069\u27e9y\\u2069: no request')");
	/* Letters that are written from the right stay as they are, and leave the rest in its order. */
	look_up("\\u05d0\\u05d1 1");
	expect_becomes("document.getElementById('request-says').textContent.startsWith("
		       "'\\u2068\\u05d0\\u05d1 1\\u2069: no request')");
}
