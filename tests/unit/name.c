/* SPDX-License-Identifier: Apache-2.0 */
/* Channel names: what is taken, what is refused and how it is said. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "channel/socket.h"

static void assert_refused(const char *text, const char *says)
{
	struct r3ring_channel_name name = {.rank = 77};
	struct r3ring_error err = {0};

	cr_assert_eq(channel_name_parse(&name, text, &err), -EINVAL, "%s", text);
	cr_assert_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
	cr_assert_eq(name.rank, 77, "the name must stay untouched");
}

static void assert_round_trip(const char *text, const char *instance, uint32_t rank, int draft)
{
	struct r3ring_channel_name name;
	char again[CHANNEL_NAME_TEXT];

	cr_assert_eq(channel_name_parse(&name, text, NULL), 0, "%s", text);
	cr_assert_str_eq(name.instance, instance);
	cr_assert_eq(name.rank, rank);
	cr_assert_eq(name.draft, draft);
	cr_assert_str_eq(channel_name_format(&name, again), text);
	cr_assert_eq(channel_name_check(&name, NULL), 0);
}

Test(channel_name, good_names_are_read_and_written_back)
{
	assert_round_trip("demo/0", "demo", 0, 0);
	assert_round_trip("a.b_c-D9/17", "a.b_c-D9", 17, 0);
	assert_round_trip("x/4294967295", "x", 4294967295u, 0);
	assert_round_trip("0123456789abcdef0123456789abcdef0123456789abcdef/1",
			  "0123456789abcdef0123456789abcdef0123456789abcdef", 1, 0);
}

Test(channel_name, failure_13_a_draft_model_has_a_channel_of_its_own)
{
	struct r3ring_channel_name target, draft;
	char target_segment[128], draft_segment[128];

	assert_round_trip("demo/0.draft", "demo", 0, 1);
	cr_assert_eq(channel_name_parse(&target, "demo/0", NULL), 0);
	cr_assert_eq(channel_name_parse(&draft, "demo/0.draft", NULL), 0);
	channel_segment_name(&target, 1000, 3, target_segment);
	channel_segment_name(&draft, 1000, 3, draft_segment);
	cr_assert_str_eq(target_segment, "/r3ring.1000.demo.0.3");
	cr_assert_str_eq(draft_segment, "/r3ring.1000.demo.0.draft.3");
}

Test(channel_name, bad_names_are_refused_in_words)
{
	assert_refused("demo", "INSTANCE/RANK");
	assert_refused("", "INSTANCE/RANK");
	assert_refused(NULL, "INSTANCE/RANK");
	assert_refused("/0", "0 bytes");
	assert_refused("demo/", "not a number");
	assert_refused("demo/-1", "not a number");
	assert_refused("demo/+1", "not a number");
	assert_refused("demo/01", "not a number");
	assert_refused("demo/1x", "not a number");
	assert_refused("demo/1.drafty", "not a number");
	assert_refused("demo/4294967296", "not a number");
	assert_refused("./0", "directory");
	assert_refused("../0", "directory");
	assert_refused("de mo/0", "byte 3 (0x20)");
	assert_refused("d\xc3\xa9mo/0", "byte 2 (0xc3)");
	assert_refused("a/b/0", "not a number");
	assert_refused("0123456789abcdef0123456789abcdef0123456789abcdefg/1", "49 bytes; 1 to 48");
}

Test(channel_name, a_name_from_the_socket_must_end_and_hold_allowed_letters)
{
	struct r3ring_channel_name name = {.instance = "demo"};

	cr_assert_eq(channel_name_check(&name, NULL), 0);
	name.draft = 2;
	cr_assert_eq(channel_name_check(&name, NULL), -EINVAL);
	name.draft = 0;
	name.instance[1] = '/';
	cr_assert_eq(channel_name_check(&name, NULL), -EINVAL);
	memset(name.instance, 'a', sizeof(name.instance));
	cr_assert_eq(channel_name_check(&name, NULL), -EINVAL);
}

Test(channel_name, the_longest_name_fits_its_texts)
{
	struct r3ring_channel_name name = {.rank = UINT32_MAX, .draft = 1};
	char text[CHANNEL_NAME_TEXT], segment[128];

	memset(name.instance, 'x', R3RING_INSTANCE_MAX);
	cr_assert_str_eq(strrchr(channel_name_format(&name, text), '/'), "/4294967295.draft");
	channel_segment_name(&name, UINT32_MAX - 1, UINT64_MAX, segment);
	cr_assert_not_null(strstr(segment, ".draft.18446744073709551615"));
}
