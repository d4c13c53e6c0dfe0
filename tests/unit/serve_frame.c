/* SPDX-License-Identifier: Apache-2.0 */
/* Counts as they are sent, and the page's own header: against what was worked out by hand. */
#include <criterion/criterion.h>

#include <string.h>

#include "channel/base64.h"
#include "serve/page.h"
#include "tools/serve_frame.h"

/* RFC 4648, section 10. */
Test(serve_frame, base64_is_that_of_the_rfc)
{
	static const char *const vectors[][2] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
	};
	char text[16];

	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		base64_encode(vectors[i][0], strlen(vectors[i][0]), text);
		cr_expect_str_eq(text, vectors[i][1]);
		cr_expect_eq(BASE64_LENGTH(strlen(vectors[i][0])), strlen(text));
	}
	base64_encode((const uint8_t[]){0xfb, 0xff, 0xbf}, 3, text);
	cr_expect_str_eq(text, "+/+/");
}

static void expect_code(const double *counts, size_t count, const char *name, double unit,
			const uint8_t *bytes, size_t length)
{
	uint8_t made[32];
	const char *code;
	double told;

	cr_assert_eq(frame_code(counts, count, made, &code, &told), length);
	cr_expect_str_eq(code, name);
	cr_expect_float_eq(told, unit, 1e-12);
	cr_expect_arr_eq(made, bytes, length);
}

Test(serve_frame, counts_take_the_fewest_bytes_that_tell_them_exactly)
{
	expect_code((const double[]){0, 7, 255}, 3, "u8", 1, (const uint8_t[]){0, 7, 255}, 3);
	expect_code((const double[]){0, 256, 65535}, 3, "u16", 1,
		    (const uint8_t[]){0, 0, 0, 1, 0xff, 0xff}, 6);
}

Test(serve_frame, counts_that_no_code_holds_are_told_in_units_of_the_largest)
{
	/* Twice 65535: each unit is two, halves are rounded up. */
	expect_code((const double[]){131070, 3, 1, 0}, 4, "u16", 2,
		    (const uint8_t[]){0xff, 0xff, 2, 0, 1, 0, 0, 0}, 8);
	/* An average is no whole number. */
	expect_code((const double[]){0.5, 0.25}, 2, "u16", 0.5 / 65535,
		    (const uint8_t[]){0xff, 0xff, 0, 0x80}, 4);
	expect_code((const double[]){0, 0}, 2, "u8", 1, (const uint8_t[]){0, 0}, 2);
}

/* SHA-256 of nothing and of "abc": FIPS 180-4, and NIST's examples. */
Test(serve_page, the_policy_names_style_and_script_by_their_hashes)
{
	char policy[512];

	page_policy("<style></style><script type=\"module\">abc</script>", policy, sizeof(policy));
	cr_expect(strstr(policy, "style-src "
				 "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"));
	cr_expect(strstr(policy, "script-src "
				 "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"));
	cr_expect(strstr(policy, "default-src 'none'"));
	cr_expect(strstr(policy, "connect-src 'self'"));
	cr_expect(strstr(policy, "frame-ancestors 'none'"));
	cr_expect_null(strstr(policy, "unsafe"));
}

extern const char page_html[];

Test(serve_page, the_page_is_one_file_that_asks_no_other_origin)
{
	static const char *const foreign[] = {
		"http:", "https:", "src=", "url(", "@import", "innerHTML", "insertAdjacentHTML",
		"eval(", "/*page."};

	cr_expect(strstr(page_html, "</html>"));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		cr_expect_null(strstr(page_html, foreign[i]), "%s", foreign[i]);
}
