/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring status: the table, whatever the producer calls its model. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/status_table.h"

static char *print_table(const char *const *models, size_t count)
{
	json_t *channels = json_array();
	json_t *status;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; i < count; i++)
		json_array_append_new(channels, json_pack("{s:s, s:s, s:s}", "channel", "demo/0",
							  "model", models[i], "state", "live"));
	status = json_pack("{s:{}, s:o}", "daemon", "channels", channels);
	cr_assert_not_null(status);
	status_table_print(out, status);
	fclose(out);
	json_decref(status);
	return text;
}

Test(status_names, a_models_name_cannot_steer_the_terminal_or_split_a_line)
{
	char *text = print_table((const char *const[]){"x\x1b[2Jy\nz"}, 1);

	cr_expect_null(strchr(text, 0x1b));
	cr_expect(strstr(text, "x\\x1b[2Jy\\x0az"), "%s", text);
	free(text);
}

/* Where @word begins in its line. */
static size_t column_of(const char *text, const char *word)
{
	const char *found = strstr(text, word);
	const char *line = found;

	cr_assert_not_null(found, "%s", text);
	while (line > text && line[-1] != '\n')
		line--;
	return (size_t)(found - line);
}

Test(status_names, a_long_or_escaped_model_name_keeps_the_columns_in_line)
{
	static const char *const models[] = {
		"a-model-with-a-name-of-many-letters-in-it",
		"\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b",
	};

	for (size_t i = 0; i < 2; i++) {
		char *text = print_table(&models[i], 1);

		cr_expect_eq(column_of(text, "STATE"), column_of(text, "live"), "%s", text);
		free(text);
	}
}

Test(status_names, a_rate_that_is_not_known_is_a_dash)
{
	char *text = print_table((const char *const[]){"m"}, 1);

	cr_expect_null(strstr(text, "0.0"), "%s", text);
	free(text);
}
