/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens, and requests made of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "producer/reference/workload.h"

#define VOCABULARY 129280u

static int split(struct tokens *tokens, const char *text, size_t len, struct r3ring_error *err)
{
	return tokens_split(tokens, text, len, "some.txt", VOCABULARY, err);
}

static void expect_refused(const char *text, size_t len, int code, const char *words)
{
	struct tokens tokens = {NULL, 7};
	struct r3ring_error err;

	cr_assert_eq(split(&tokens, text, len, &err), code);
	cr_assert(strstr(err.text, "some.txt") && strstr(err.text, words), "%s", err.text);
	cr_assert_eq(tokens.count, 7);
}

Test(reference_tokens, words_marks_and_line_ends_are_tokens_of_their_own)
{
	static const char text[] = "the cat,  the\tdog\n";
	struct tokens tokens;

	cr_assert_eq(split(&tokens, text, strlen(text), NULL), 0);
	cr_assert_eq(tokens.count, 6);
	cr_assert_eq(tokens.ids[2], ',');
	cr_assert_eq(tokens.ids[5], '\n');
	cr_assert_eq(tokens.ids[0], tokens.ids[3]);
	cr_assert_neq(tokens.ids[1], tokens.ids[4]);
	for (size_t i = 0; i < tokens.count; i++)
		cr_assert(tokens.ids[i] >= 0 && tokens.ids[i] < (int32_t)VOCABULARY);
	tokens_free(&tokens);
}

Test(reference_tokens, long_words_are_cut_after_twelve_bytes)
{
	static const char text[] = "abcdefghijklabcdefghijklx";
	struct tokens tokens;

	cr_assert_eq(split(&tokens, text, strlen(text), NULL), 0);
	cr_assert_eq(tokens.count, 3);
	cr_assert_eq(tokens.ids[0], tokens.ids[1]);
	tokens_free(&tokens);
}

Test(reference_tokens, text_of_other_scripts_is_text)
{
	static const char text[] =
		"\xe4\xbd\xa0\xe5\xa5\xbd \xd0\xbc\xd0\xb8\xd1\x80 \xf0\x9f\x98\x80";
	struct tokens tokens;

	cr_assert_eq(split(&tokens, text, strlen(text), NULL), 0);
	cr_assert_eq(tokens.count, 3);
	tokens_free(&tokens);
}

Test(reference_tokens, a_text_without_words_is_refused)
{
	expect_refused("", 0, -ENODATA, "no words");
	expect_refused("  \t ", 4, -ENODATA, "no words");
	expect_refused(" \n\n \n", 5, -ENODATA, "no words");
}

Test(reference_tokens, what_is_no_text_is_refused_with_its_offset)
{
	expect_refused("ab\0cd", 5, -EILSEQ, "offset 2");
	expect_refused("\x7f"
		       "ELF",
		       4, -EILSEQ, "offset 0");
	expect_refused("abc\xff", 4, -EILSEQ, "0xff at offset 3");
	expect_refused("abc\xe4\xbd", 5, -EILSEQ, "offset 3");
	expect_refused("abc\xe4zz", 6, -EILSEQ, "offset 3");
}

Test(reference_tokens, an_unreadable_file_is_refused_with_its_name)
{
	struct tokens tokens;
	struct r3ring_error err;

	cr_assert_eq(tokens_read(&tokens, "/nonexistent/a.txt", VOCABULARY, &err), -ENOENT);
	cr_assert(strstr(err.text, "/nonexistent/a.txt") && strstr(err.text, "--text"));
	cr_assert_eq(tokens_read(&tokens, "/", VOCABULARY, &err), -EISDIR);
	cr_assert(strstr(err.text, "Is a directory"));
}

Test(reference_tokens, a_file_has_the_tokens_of_its_bytes)
{
	static const char text[] = "Call me Ishmael.";
	char path[] = "/tmp/r3ring-tokens-XXXXXX";
	struct tokens read, expected;
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	cr_assert_eq(tokens_read(&read, path, VOCABULARY, NULL), 0);
	unlink(path);
	cr_assert_eq(split(&expected, text, strlen(text), NULL), 0);
	cr_assert_eq(read.count, 4);
	cr_assert_arr_eq(read.ids, expected.ids, 4 * sizeof(*read.ids));
	tokens_free(&read);
	tokens_free(&expected);
}

Test(reference_workload, requests_are_the_same_for_the_same_seed)
{
	int32_t ids[] = {1, 2, 3};
	struct tokens text = {ids, 3};
	struct workload a, b, c;

	cr_assert_eq(workload_from_text(&a, &text, 20, 5, NULL), 0);
	cr_assert_eq(workload_from_text(&b, &text, 20, 5, NULL), 0);
	cr_assert_eq(workload_from_text(&c, &text, 20, 6, NULL), 0);
	cr_assert_arr_eq(a.requests, b.requests, 20 * sizeof(*a.requests));
	cr_assert_arr_neq(a.requests, c.requests, 20 * sizeof(*a.requests));
	workload_free(&a);
	workload_free(&b);
	workload_free(&c);
}

Test(reference_workload, a_requests_tokens_go_on_at_the_texts_beginning)
{
	int32_t ids[] = {10, 20, 30};
	struct tokens text = {ids, 3};
	struct workload w;
	const struct workload_request *r;

	cr_assert_eq(workload_from_text(&w, &text, 11, 1, NULL), 0);
	r = &w.requests[10];
	cr_assert_str_eq(r->id, "req-0010");
	for (uint32_t p = 0; p < 9; p++)
		cr_assert_eq(workload_token(&w, r, p), ids[(r->source + p) % 3]);
	cr_assert_eq(workload_accepted(r), r->rows + 1);
	workload_free(&w);
}

Test(reference_workload, no_requests_or_too_many_are_refused)
{
	int32_t id = 1;
	struct tokens text = {&id, 1};
	struct workload w;
	struct r3ring_error err;

	cr_assert_eq(workload_from_text(&w, &text, 0, 1, &err), -EINVAL);
	cr_assert(strstr(err.text, "--requests"));
	cr_assert_eq(workload_from_text(&w, &text, WORKLOAD_REQUESTS_MAX + 1, 1, &err), -EINVAL);
}
