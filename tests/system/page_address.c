/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the page, which names an engine; and names, which page and tools show alike. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "channel/utf8.h"
#include "tests/system/page_stage.h"

TestSuite(page_address, .init = page_stage_start, .fini = page_stage_stop);

static const char *shown(void)
{
	return browser_text(&browser, "return document.getElementById('instance').value;");
}

static const char *linked(void)
{
	return browser_text(&browser, "return location.pathname + location.search;");
}

static void expect_link(const char *instance)
{
	char link[160];

	snprintf(link, sizeof(link), "/?instance=%s", instance);
	cr_expect_str_eq(linked(), link);
}

/* The page at the same server, of @instance; "": of none that is named. */
static void go_to(const char *instance)
{
	char script[256], expression[256];

	snprintf(script, sizeof(script), "location.href = '/%s%s';",
		 instance[0] ? "?instance=" : "", instance);
	json_decref(browser_run(&browser, script));
	snprintf(expression, sizeof(expression),
		 "location.search === '%s%s' && document.getElementById('instance').value",
		 instance[0] ? "?instance=" : "", instance);
	expect_becomes(expression);
}

Test(page_address, a_link_leads_to_the_engine_that_it_names)
{
	page_five_steps();
	cr_expect_str_eq(shown(), serve_stage_instance(), "the first that is served");
	cr_expect_str_eq(linked(), "/");
	go_to(page_nobody());
	cr_expect_str_eq(shown(), page_nobody());
	expect_becomes("document.getElementById('heat-says').textContent === ''");
	go_to(serve_stage_instance());
	cr_expect_str_eq(shown(), serve_stage_instance());
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 20 tokens')");
}

Test(page_address, the_engine_that_is_chosen_is_put_into_the_address)
{
	char script[256];

	page_five_steps();
	snprintf(script, sizeof(script),
		 "const picker = document.getElementById('instance'); picker.value = '%s';"
		 "picker.dispatchEvent(new Event('change'));",
		 page_nobody());
	json_decref(browser_run(&browser, script));
	expect_link(page_nobody());
	json_decref(browser_run(&browser, "location.reload();"));
	expect_becomes("document.getElementById('heat-says').textContent === '' && "
		       "document.getElementById('instance').value");
	cr_expect_str_eq(shown(), page_nobody());
}

/* Rather than that somebody takes one engine's figures for another's. */
Test(page_address, an_address_that_names_none_that_is_served_is_put_right)
{
	page_five_steps();
	json_decref(browser_run(&browser, "location.href = '/?instance=elsewhere';"));
	expect_becomes("location.search !== '?instance=elsewhere' && location.search && "
		       "document.getElementById('instance').value");
	expect_link(serve_stage_instance());
	cr_expect_str_eq(shown(), serve_stage_instance());
}

/* ---- characters that are not seen ------------------------------------------------ */

static size_t encode(uint32_t code, uint8_t text[5])
{
	static const uint8_t first[] = {0, 0, 0xC0, 0xE0, 0xF0};
	const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = bytes; i-- > 1; code >>= 6)
		text[i] = (uint8_t)(0x80 | (code & 0x3F));
	text[0] = (uint8_t)(first[bytes] | code);
	text[bytes] = 0;
	return bytes;
}

/* What tools show by bytes, as JavaScript's pairs. */
static void write_ranges(char *ranges, size_t size)
{
	bool within = false;
	size_t used = 0;

	for (uint32_t code = 0; code <= 0x110000; code++) {
		uint8_t text[5];
		bool steers = code < 0x110000 && utf8_steers(text, encode(code, text));

		if (steers && !within)
			used += (size_t)snprintf(ranges + used, size - used, "[%u,", code);
		else if (!steers && within)
			used += (size_t)snprintf(ranges + used, size - used, "%u],", code - 1);
		within = steers;
		cr_assert_lt(used, size);
	}
}

Test(page_address, the_page_and_the_tools_take_the_same_characters_for_unseen)
{
	char ranges[2048], expression[3072];

	write_ranges(ranges, sizeof(ranges));
	snprintf(expression, sizeof(expression),
		 "(() => { const ranges = [%s]; let wrong = 0;"
		 "for (let code = 0; code <= 0x10ffff; code++) {"
		 "if (code >= 0xd800 && code <= 0xdfff) continue;"
		 "const told = isolated(String.fromCodePoint(code)).includes('U+');"
		 "const steers = ranges.some(([first, last]) => code >= first && code <= last);"
		 "wrong += told !== steers; } return wrong; })()",
		 ranges);
	cr_expect_eq(page_computes("dom.js", expression), 0);
}
