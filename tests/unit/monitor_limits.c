/* SPDX-License-Identifier: Apache-2.0 */
/* `r3ring top`, the page and the alerts call the same things uneven, old and lost. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/balance.h"
#include "tools/top_frame.h"

/* The number that stands behind these words in a file. */
static double number_in(const char *path, const char *behind)
{
	static char text[1 << 16];
	FILE *in = fopen(path, "r");
	const char *at;
	char *end;
	double number;

	cr_assert(in, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	at = strstr(text, behind);
	cr_assert(at, "no \"%s\" in %s", behind, path);
	number = strtod(at + strlen(behind), &end);
	cr_assert_neq(end, at + strlen(behind), "no number behind \"%s\" in %s", behind, path);
	return number;
}

Test(monitor_limits, the_page_begins_with_the_limit_of_experts_that_top_has)
{
	cr_expect_eq(number_in("serve/page/page.html",
			       "id=\"threshold\" type=\"number\" min=\"1.1\" "
			       "max=\"100\" step=\"0.1\" value=\""),
		     BALANCE_UNEVEN);
	cr_expect_eq(number_in("serve/page/main.js", "Number(byId('threshold').value) || "),
		     BALANCE_UNEVEN);
}

Test(monitor_limits, the_alert_has_the_limit_of_gpus_that_top_and_the_page_have)
{
	cr_expect_eq(
		number_in("docs/alerts.yml", "avg_over_time(r3ring_layer_gpu_load_ratio[10m])) > "),
		BALANCE_GPUS_UNEVEN);
}

Test(monitor_limits, old_and_lately_are_as_long_on_the_page_as_in_top)
{
	cr_expect_eq(number_in("serve/page/verdicts.js", "const SILENT_MS = ") * 1e6, TOP_STALE_NS);
	cr_expect_eq(number_in("serve/page/lately.js", "const LATELY_MS = ") * 1e6, TOP_LOSING_NS);
}
