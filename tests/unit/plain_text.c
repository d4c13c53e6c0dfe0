/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of strangers on a terminal: nothing in them steers it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plain_text.h"

static void expect(const char *text, const char *printed)
{
	char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);

	plain_text_print(out, text, strlen(text));
	fclose(out);
	cr_expect_str_eq(got, printed);
	cr_expect_eq(plain_text_length(text, strlen(text)), strlen(printed));
	free(got);
}

Test(plain_text, letters_of_all_scripts_are_printed_as_they_are)
{
	expect("a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80~",
	       "a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80~");
}

Test(plain_text, controls_are_shown_as_bytes)
{
	expect("x\x1b[2Jy\nz\x7f", "x\\x1b[2Jy\\x0az\\x7f");
	expect("\xC2\x9B", "\\xc2\\x9b");
}

Test(plain_text, what_turns_the_direction_of_writing_round_is_shown_as_bytes)
{
	expect("a\xE2\x80\xAE"
	       "b",
	       "a\\xe2\\x80\\xae"
	       "b");
	expect("\xE2\x81\xA6", "\\xe2\\x81\\xa6");
}

Test(plain_text, what_is_not_seen_is_shown_as_bytes)
{
	/* A space without width, a word joiner, a soft hyphen, a filler, a tag. */
	expect("a\xE2\x80\x8B.", "a\\xe2\\x80\\x8b.");
	expect("\xE2\x81\xA0\xC2\xAD\xE3\x85\xA4", "\\xe2\\x81\\xa0\\xc2\\xad\\xe3\\x85\\xa4");
	expect("\xF3\xA0\x81\x81", "\\xf3\\xa0\\x81\\x81");
	expect("\xEF\xBB\xBFx", "\\xef\\xbb\\xbfx");
	/* Persian is written with a joiner less, families and hearts with one and a selector. */
	expect("\xE2\x80\x8C\xE2\x80\x8D\xEF\xB8\x8F", "\xE2\x80\x8C\xE2\x80\x8D\xEF\xB8\x8F");
}

Test(plain_text, bytes_that_are_no_utf8_are_shown)
{
	expect("a\x9B"
	       "b\xFF\xE2\x82",
	       "a\\x9b"
	       "b\\xff\\xe2\\x82");
}

/* As records have them: no NUL follows. */
Test(plain_text, nothing_behind_the_text_is_looked_at)
{
	const char text[] = {'\xE2', '\x82', '\xAC'};
	char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);

	plain_text_print(out, text, 2);
	fclose(out);
	cr_expect_str_eq(got, "\\xe2\\x82");
	free(got);
}
