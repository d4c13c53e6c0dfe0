/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the benchmark programs. */
#include <criterion/criterion.h>

#include "tests/bench/options.h"

#define PARSE(options, ...)                                                                        \
	do {                                                                                       \
		char *argv[] = {(char *)"bench", __VA_ARGS__, NULL};                               \
                                                                                                   \
		bench_options_parse(options, (int)(sizeof(argv) / sizeof(argv[0])) - 1, argv, ""); \
	} while (0)

static struct bench_options options;

Test(bench_options, what_is_given_is_read)
{
	options.names_json = true;
	PARSE(&options, "--repeats", "99", "--filter", "64 B", "--json", "file");
	cr_expect_eq(options.repeats, 99);
	cr_expect_str_eq(options.filter, "64 B");
	cr_expect_str_eq(options.json, "file");
}

Test(bench_options, json_takes_no_name_where_it_names_none)
{
	PARSE(&options, "--json");
	cr_expect_str_eq(options.json, "");
	cr_expect_null(options.filter);
	cr_expect_geq(options.repeats, 1);
}

Test(bench_options, help_is_no_error, .exit_code = 0)
{
	PARSE(&options, "--help");
	cr_expect(false, "it went on");
}

Test(bench_options, more_repeats_than_are_kept_are_refused, .exit_code = 2)
{
	PARSE(&options, "--repeats", "100");
}

Test(bench_options, repeats_that_are_no_number_are_refused, .exit_code = 2)
{
	PARSE(&options, "--repeats", "5x");
}

Test(bench_options, a_word_too_much_is_refused, .exit_code = 2)
{
	PARSE(&options, "now");
}
