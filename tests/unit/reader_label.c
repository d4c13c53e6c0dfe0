/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader says that it reads for. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "channel/reader_label.h"

static const char *loaded(const char bytes[R3RING_READER_LABEL_BYTES])
{
	static char label[R3RING_READER_LABEL_BYTES];
	struct r3ring_reader_page page = {0};

	memcpy(page.label, bytes, sizeof(page.label));
	memset(label, 'x', sizeof(label));
	reader_label_load(&page, label);
	return label;
}

static void expect_refused(const char *label, const char *why)
{
	struct r3ring_error err = {0};

	cr_expect_eq(reader_label_check(label, &err), -EINVAL, "\"%s\"", label);
	cr_expect(strstr(err.text, why), "%s", err.text);
}

Test(reader_label, letters_go_through_the_page)
{
	static const char *const labels[] = {"", "a", "serve:load", "A.b_c-9:z012345"};

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		struct r3ring_reader_page page = {0};
		char label[R3RING_READER_LABEL_BYTES];

		cr_expect_eq(reader_label_check(labels[i], NULL), 0, "\"%s\"", labels[i]);
		reader_label_store(&page, labels[i]);
		reader_label_load(&page, label);
		cr_expect_str_eq(label, labels[i]);
	}
}

Test(reader_label, what_is_no_letter_or_too_long_is_refused_by_name)
{
	expect_refused("A.b_c-9:z0123456", "more than 15 letters");
	expect_refused("A.b_c-9:z01234567890123456789", "more than 15 letters");
	expect_refused("a b", "byte 2 (0x20)");
	expect_refused("a\x1b[2J", "byte 2 (0x1b)");
	expect_refused("\xc3\xa4", "byte 1 (0xc3)");
	expect_refused("ok\xff", "byte 3 (0xff)");
	expect_refused("a\n", "byte 2 (0x0a)");
	expect_refused("<b>", "byte 1 (0x3c)");
}

Test(reader_label, a_page_with_bytes_that_are_none_has_none)
{
	static const char unterminated[] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h',
					    'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'};
	static const char behind[16] = "ab\0\x1b[2J";

	cr_expect_str_eq(loaded(unterminated), "");
	cr_expect_str_eq(loaded((const char[16]){"\x1b[2J"}), "");
	cr_expect_str_eq(loaded((const char[16]){"a\xff"}), "");
	cr_expect_str_eq(loaded((const char[16]){"\xe2\x80\xae"
						 "abc"}),
			 "");
	cr_expect_str_eq(loaded((const char[16]){"a\"b"}), "");
	cr_expect_str_eq(loaded(behind), "ab", "what follows the NUL is not read");
}
