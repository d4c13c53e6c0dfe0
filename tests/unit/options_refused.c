/* SPDX-License-Identifier: Apache-2.0 */
/* Readers' option structures: each field has values that cannot be, and its refusal names it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <r3ring/assembler.h>
#include <r3ring/instance.h>
#include <r3ring/load.h>
#include <r3ring/predict.h>
#include <r3ring/reader.h>
#include <r3ring/reserve.h>
#include <r3ring/signature.h>

#define LARGEST 512

/* One field is set so; of a structure that is fine but for it. */
struct bad {
	size_t offset;
	uint64_t value;
	size_t bytes;
	const char *says;
};

#define BAD(type, field, number, words)                                                            \
	{                                                                                          \
		offsetof(struct type, field), (uint64_t)(number),                                  \
			sizeof(((struct type *)NULL)->field), words                                \
	}

/* What no field of is set, behind those of the structure. */
#define BAD_SIZES(type)                                                                            \
	BAD(type, size, 0, "size: 0 "), BAD(type, size, 8, "size: 8 "),                            \
		BAD(type, size, SIZE_MAX, "size: 18446744073709551615 ")

typedef int open_fn(const void *options, struct r3ring_error *err);

static void refuse(open_fn *open, const void *fine, size_t size, const struct bad *bad)
{
	_Alignas(8) uint8_t options[LARGEST] = {0};
	struct r3ring_error err = {0};
	int rc;

	cr_assert_leq(size, sizeof(options));
	memcpy(options, fine, size);
	memcpy(options + bad->offset, &bad->value, bad->bytes); /* little-endian */
	rc = open(options, &err);
	cr_expect_eq(rc, -EINVAL, "%s: %d, \"%s\"", bad->says, rc, err.text);
	cr_expect_not_null(strstr(err.text, bad->says), "\"%s\" does not say \"%s\"", err.text,
			   bad->says);
}

#define REFUSE_ALL(open, fine, bad)                                                                \
	for (size_t row = 0; row < sizeof(bad) / sizeof(*(bad)); row++)                            \
	refuse(open, &(fine), sizeof(fine), &(bad)[row])

/* ---- readers ------------------------------------------------------------- */

static int open_reader(const void *options, struct r3ring_error *err)
{
	struct r3ring_reader *reader = NULL;
	int rc = r3ring_reader_open(&reader, options, err);

	cr_expect_null(reader);
	return rc;
}

static const struct r3ring_reader_options fine_reader = {
	.size = sizeof(fine_reader),
	.runtime_dir = "/nonexistent/r3ring-test",
	.channel = "prod/0",
};

Test(options_refused, of_a_reader_before_anybody_is_asked)
{
	const struct bad bad[] = {
		BAD_SIZES(r3ring_reader_options),
		BAD(r3ring_reader_options, channel, 0, "no channel"),
		BAD(r3ring_reader_options, channel, (uintptr_t) "prod", "prod"),
		BAD(r3ring_reader_options, mode, 3, "mode: 3"),
		BAD(r3ring_reader_options, mode, UINT32_MAX, "mode: -1"),
		BAD(r3ring_reader_options, from, 5, "from: 5"),
		BAD(r3ring_reader_options, stay, 5, "stay: 5"),
		BAD(r3ring_reader_options, unregistered, 2, "unregistered: 2"),
		BAD(r3ring_reader_options, label, (uintptr_t) "a b", "label"),
	};
	struct r3ring_error err = {0};

	cr_expect_eq(open_reader(&fine_reader, &err), -ECONNREFUSED, "it is fine: %s", err.text);
	REFUSE_ALL(open_reader, fine_reader, bad);
}

static int open_instance(const void *options, struct r3ring_error *err)
{
	struct r3ring_instance *instance = NULL;
	int rc = r3ring_instance_open(&instance, options, err);

	cr_expect_null(instance);
	return rc;
}

static const struct r3ring_instance_options fine_instance = {
	.size = sizeof(fine_instance),
	.runtime_dir = "/nonexistent/r3ring-test",
	.instance = "prod",
};

Test(options_refused, of_an_instance_before_anybody_is_asked)
{
	static const char *const only[] = {"prod/0", "prod", NULL};
	const struct bad bad[] = {
		BAD_SIZES(r3ring_instance_options),
		BAD(r3ring_instance_options, instance, 0, "no instance"),
		BAD(r3ring_instance_options, instance, (uintptr_t) "a/b", "a/b"),
		BAD(r3ring_instance_options, models, 3, "models 3"),
		BAD(r3ring_instance_options, mode, 3, "mode: 3"),
		BAD(r3ring_instance_options, from, R3RING_FROM_SEQ, "sequence"),
		BAD(r3ring_instance_options, from, 5, "from: 5"),
		BAD(r3ring_instance_options, stay, 5, "stay: 5"),
		BAD(r3ring_instance_options, start_count, 1, "starts is NULL"),
		BAD(r3ring_instance_options, only, (uintptr_t)only, "only: \"prod\""),
		BAD(r3ring_instance_options, label, (uintptr_t) "a b", "label"),
	};
	struct r3ring_error err = {0};

	cr_expect_eq(open_instance(&fine_instance, &err), -ECONNREFUSED, "it is fine: %s",
		     err.text);
	REFUSE_ALL(open_instance, fine_instance, bad);
}

Test(options_refused, a_start_whose_channel_is_none)
{
	const struct r3ring_instance_start start = {.channel = "prod"};
	struct r3ring_instance_options options = fine_instance;
	struct r3ring_error err = {0};

	options.starts = &start;
	options.start_count = 1;
	cr_expect_eq(open_instance(&options, &err), -EINVAL, "%s", err.text);
	cr_expect_not_null(strstr(err.text, "starts[0]"), "%s", err.text);
}

/* ---- those that are newer than the library -------------------------------- */

struct newer_options {
	struct r3ring_reader_options known;
	uint64_t unknown;
};

Test(options_refused, one_that_is_set_and_not_known_is_no_option_that_is_passed_over)
{
	struct newer_options options = {.known = fine_reader};
	struct r3ring_error err = {0};

	options.known.size = sizeof(options);
	cr_expect_eq(open_reader(&options, &err), -ECONNREFUSED, "it is not set: %s", err.text);
	options.unknown = 1;
	cr_expect_eq(open_reader(&options, &err), -EINVAL, "%s", err.text);
	cr_expect_not_null(strstr(err.text, "older than the headers"), "%s", err.text);
}

/* ---- what is made of records ---------------------------------------------- */

static int create_assembler(const void *options, struct r3ring_error *err)
{
	struct r3ring_assembler *assembler = NULL;
	int rc = r3ring_assembler_create(&assembler, options, err);

	r3ring_assembler_destroy(assembler);
	return rc;
}

Test(options_refused, of_an_assembler)
{
	const struct r3ring_assembler_options fine = {.size = sizeof(fine)};
	const struct bad bad[] = {
		BAD_SIZES(r3ring_assembler_options),
		BAD(r3ring_assembler_options, policy, 2, "policy: 2"),
		BAD(r3ring_assembler_options, keys_go_first, 2, "keys_go_first: 2"),
	};

	REFUSE_ALL(create_assembler, fine, bad);
	cr_expect_eq(create_assembler(&fine, NULL), 0);
}

static int create_load(const void *options, struct r3ring_error *err)
{
	struct r3ring_load *load = NULL;
	int rc = r3ring_load_create(&load, options, err);

	r3ring_load_destroy(load);
	return rc;
}

Test(options_refused, of_a_load)
{
	const struct r3ring_load_options fine = {.size = sizeof(fine)};
	const struct bad bad[] = {BAD_SIZES(r3ring_load_options)};

	REFUSE_ALL(create_load, fine, bad);
	cr_expect_eq(create_load(&fine, NULL), 0);
}

static int create_signatures(const void *options, struct r3ring_error *err)
{
	struct r3ring_signatures *signatures = NULL;
	int rc = r3ring_signatures_create(&signatures, options, err);

	r3ring_signatures_destroy(signatures);
	return rc;
}

Test(options_refused, of_signatures)
{
	const struct r3ring_signatures_options fine = {.size = sizeof(fine)};
	const struct bad bad[] = {BAD_SIZES(r3ring_signatures_options)};

	REFUSE_ALL(create_signatures, fine, bad);
	cr_expect_eq(create_signatures(&fine, NULL), 0);
}

/* ---- what is reserved by --------------------------------------------------- */

static int create_history(const void *options, struct r3ring_error *err)
{
	struct r3ring_history *history = NULL;
	int rc = r3ring_history_create(&history, options, err);

	r3ring_history_destroy(history);
	return rc;
}

Test(options_refused, of_a_history)
{
	const struct r3ring_history_options fine = {.size = sizeof(fine)};
	const struct bad bad[] = {
		BAD(r3ring_history_options, size, 0, "size of the options: 0,"),
		BAD(r3ring_history_options, size, SIZE_MAX, "size of the options: 184467"),
		BAD(r3ring_history_options, max_requests, UINT32_MAX, "max_requests: 4294967295"),
	};

	REFUSE_ALL(create_history, fine, bad);
	cr_expect_eq(create_history(&fine, NULL), 0);
}

static int create_book(const void *options, struct r3ring_error *err)
{
	struct r3ring_book *book = NULL;
	int rc = r3ring_book_create(&book, options, err);

	r3ring_book_destroy(book);
	return rc;
}

Test(options_refused, of_a_book)
{
	const struct r3ring_book_options fine = {
		.size = sizeof(fine), .shape = {2, 8, 2}, .gpus = 2, .capacity = 16};
	const struct bad bad[] = {
		BAD(r3ring_book_options, size, 0, "size of the options: 0,"),
		BAD(r3ring_book_options, size, SIZE_MAX, "size of the options: 184467"),
		BAD(r3ring_book_options, shape.layers, 0, "0 layers"),
		BAD(r3ring_book_options, shape.layers, UINT32_MAX, "4294967295 layers"),
		BAD(r3ring_book_options, shape.experts, 0, "0 experts"),
		BAD(r3ring_book_options, shape.experts, UINT32_MAX, "4294967295 experts"),
		BAD(r3ring_book_options, shape.top_k, 0, "and 0 of them"),
		BAD(r3ring_book_options, shape.top_k, 9, "and 9 of them"),
		BAD(r3ring_book_options, gpus, 0, "gpus: 0"),
		BAD(r3ring_book_options, gpus, 4097, "gpus: 4097"),
		BAD(r3ring_book_options, capacity, UINT32_MAX, "capacity: 4294967295"),
	};

	REFUSE_ALL(create_book, fine, bad);
	cr_expect_eq(create_book(&fine, NULL), 0);
}

static int place(const void *options, struct r3ring_error *err)
{
	static const double load[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct r3ring_eplb_map *map = NULL;
	int rc = r3ring_eplb_place(&map, load, 1, 8, options, err);

	r3ring_eplb_map_free(map);
	return rc;
}

Test(options_refused, of_a_placement)
{
	const struct r3ring_eplb_options fine = {
		.size = sizeof(fine), .physical = 8, .gpus = 4, .nodes = 2, .groups = 2};
	const struct bad bad[] = {
		BAD(r3ring_eplb_options, size, 0, "0"),
		BAD(r3ring_eplb_options, size, SIZE_MAX, "184467"),
		BAD(r3ring_eplb_options, physical, 7, "7"),
		BAD(r3ring_eplb_options, physical, UINT32_MAX, "4294967295"),
		BAD(r3ring_eplb_options, gpus, 0, "0 GPUs"),
		BAD(r3ring_eplb_options, gpus, 3, "3"),
		BAD(r3ring_eplb_options, nodes, 3, "3"),
		BAD(r3ring_eplb_options, groups, 3, "3"),
	};

	REFUSE_ALL(place, fine, bad);
	cr_expect_eq(place(&fine, NULL), 0);
}
