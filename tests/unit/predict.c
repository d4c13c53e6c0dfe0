/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors by hand: one layer, four experts, a few finished requests. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <r3ring/predict.h>

#define EXPERTS 4u

static struct r3ring_history *history;
static struct r3ring_known known;
static uint32_t counts[EXPERTS];
static struct r3ring_evidence evidence;
static enum r3ring_predictor used;

static void open_with(const struct r3ring_history_options *options)
{
	cr_assert_eq(r3ring_history_create(&history, options, NULL), 0);
	known = (struct r3ring_known){
		.shape = {.layers = 1, .experts = EXPERTS, .top_k = 1},
		.history = history,
		.now_ns = 1000,
	};
}

static void open_history(void)
{
	open_with(NULL);
}

static void close_history(void)
{
	r3ring_history_destroy(history);
}

TestSuite(predict, .init = open_history, .fini = close_history);

static void label(const char *id, const char *class_name, const char *prefix_key)
{
	const struct r3ring_labels labels = {class_name, prefix_key};

	cr_assert_eq(r3ring_history_label(history, id, &labels), 0);
}

static void finish(const char *id, uint64_t when, const uint16_t visits[EXPERTS])
{
	const struct r3ring_finished finished = {
		.id = id, .layers = 1, .experts = EXPERTS, .counts = visits, .finished_ns = when};

	cr_assert_eq(r3ring_history_add(history, &finished), 0);
}

static void expect_counts(const uint32_t expected[EXPERTS])
{
	for (uint32_t i = 0; i < EXPERTS; i++)
		cr_expect_eq(counts[i], expected[i], "expert %u: %u, not %u", i, counts[i],
			     expected[i]);
}

static int predict(enum r3ring_predictor predictor)
{
	return r3ring_predict(predictor, &known, counts, &evidence, &used);
}

static struct r3ring_history_stats stats_of(void)
{
	struct r3ring_history_stats stats;

	r3ring_history_get_stats(history, &stats);
	return stats;
}

Test(predict, every_predictor_is_found_by_its_name)
{
	for (int i = 0; i < R3RING_PREDICTORS; i++)
		cr_expect_eq(
			r3ring_predictor_named(r3ring_predictor_name((enum r3ring_predictor)i)), i);
	cr_expect_eq(r3ring_predictor_named("oracle"), -ENOENT);
	cr_expect_null(r3ring_predictor_name(R3RING_PREDICTORS));
	cr_expect_eq(predict(R3RING_PREDICTORS), -EINVAL);
}

Test(predict, own_and_global_are_what_was_counted_and_as_old)
{
	const uint32_t own[] = {1, 2, 0, 0}, global[] = {9, 0, 0, 7};

	known.own = (struct r3ring_visits){own, 400};
	known.global = (struct r3ring_visits){global, 900};
	cr_expect_eq(predict(R3RING_PREDICT_OWN), 0);
	expect_counts(own);
	cr_expect_eq(evidence.age_ns, 600);
	cr_expect_eq(predict(R3RING_PREDICT_GLOBAL), 0);
	expect_counts(global);
	cr_expect_eq(evidence.age_ns, 100);
	cr_expect_eq(predict(R3RING_PREDICT_UNIFORM), 0);
	cr_expect_null(evidence.counts);
}

Test(predict, visits_of_the_last_expert_alone_are_evidence)
{
	const uint32_t own[] = {0, 0, 0, 2};

	known.own = (struct r3ring_visits){own, 400};
	cr_expect_eq(predict(R3RING_PREDICT_OWN), 0);
	expect_counts(own);
}

Test(predict, what_was_never_counted_is_no_evidence)
{
	const uint32_t none[EXPERTS] = {0};

	cr_expect_eq(predict(R3RING_PREDICT_OWN), -ENODATA);
	cr_expect_eq(predict(R3RING_PREDICT_GLOBAL), -ENODATA);
	cr_expect_eq(predict(R3RING_PREDICT_SIMILAR), -ENODATA);
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA);
	cr_expect_eq(predict(R3RING_PREDICT_PREFIX), -ENODATA);
	known.own.counts = none;
	cr_expect_eq(predict(R3RING_PREDICT_OWN), -ENODATA);
	known.history = NULL;
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA);
}

Test(predict, a_class_is_foretold_by_the_sum_of_its_finished_requests)
{
	label("a", "code", NULL);
	label("b", "prose", NULL);
	label("c", "code", "p1");
	finish("a", 300, (const uint16_t[]){1, 2, 0, 0});
	finish("b", 500, (const uint16_t[]){0, 0, 9, 9});
	finish("c", 700, (const uint16_t[]){0, 1, 1, 0});
	finish("d", 800, (const uint16_t[]){5, 5, 5, 5});
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	expect_counts((const uint32_t[]){1, 3, 1, 0});
	cr_expect_eq(evidence.age_ns, 300, "as old as the newest");
	known.labels.prefix_key = "p1";
	cr_expect_eq(predict(R3RING_PREDICT_PREFIX), 0);
	expect_counts((const uint32_t[]){0, 1, 1, 0});
	known.labels.class_name = "other";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA);
}

Test(predict, of_a_class_the_newest_32_count)
{
	for (uint16_t i = 1; i <= 33; i++) {
		label("a", "code", NULL);
		finish("a", i, (const uint16_t[]){i == 1, 1, 0, 0});
	}
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	expect_counts((const uint32_t[]){0, 32, 0, 0});
}

Test(predict, a_label_may_be_of_one_letter_and_an_empty_one_is_none)
{
	label("a", "c", "p");
	finish("a", 300, (const uint16_t[]){1, 2, 0, 0});
	known.labels = (struct r3ring_labels){"c", "p"};
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	cr_expect_eq(predict(R3RING_PREDICT_PREFIX), 0);
	finish("b", 400, (const uint16_t[]){1, 2, 0, 0});
	known.labels = (struct r3ring_labels){"", ""};
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA);
	cr_expect_eq(predict(R3RING_PREDICT_PREFIX), -ENODATA);
}

Test(predict, a_label_is_its_requests_once_and_the_newest_that_was_said)
{
	label("a", "code", NULL);
	label("a", "prose", NULL);
	finish("a", 1, (const uint16_t[]){1, 0, 0, 0});
	finish("a", 2, (const uint16_t[]){0, 1, 0, 0});
	known.labels.class_name = "prose";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	expect_counts((const uint32_t[]){1, 0, 0, 0});
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA);
	cr_expect_eq(stats_of().labels, 0);
}

/* Cosines with 3, 1, 0, 0: 1; 0.95; 0.71 twice; 0.32; 0. */
Test(predict, similar_are_the_three_finished_requests_most_like_it)
{
	const uint32_t own[] = {3, 1, 0, 0};

	finish(NULL, 1, (const uint16_t[]){0, 0, 2, 2});
	finish(NULL, 2, (const uint16_t[]){6, 2, 0, 0});
	finish(NULL, 3, (const uint16_t[]){0, 5, 0, 0});
	finish(NULL, 4, (const uint16_t[]){1, 0, 0, 0});
	finish(NULL, 5, (const uint16_t[]){2, 2, 1, 1});
	known.own.counts = own;
	cr_expect_eq(predict(R3RING_PREDICT_SIMILAR), 0);
	expect_counts((const uint32_t[]){9, 4, 1, 1});
	cr_expect_eq(evidence.age_ns, 995);
}

Test(predict, nothing_in_common_is_not_similar)
{
	const uint32_t own[] = {1, 0, 0, 0};

	finish(NULL, 1, (const uint16_t[]){0, 1, 1, 1});
	known.own.counts = own;
	cr_expect_eq(predict(R3RING_PREDICT_SIMILAR), -ENODATA);
}

/* Of a hundred, the few that use the same experts are found among the 32 that are compared. */
Test(predict, the_similar_are_found_among_many)
{
	const uint32_t own[] = {8, 1, 0, 0};

	finish(NULL, 1, (const uint16_t[]){8, 1, 0, 0});
	finish(NULL, 2, (const uint16_t[]){8, 1, 0, 0});
	for (uint16_t i = 0; i < 100; i++)
		finish(NULL, 3, (const uint16_t[]){50, 0, 50, i});
	finish(NULL, 4, (const uint16_t[]){8, 1, 0, 0});
	known.own.counts = own;
	cr_expect_eq(predict(R3RING_PREDICT_SIMILAR), 0);
	expect_counts((const uint32_t[]){24, 3, 0, 0});
}

Test(predict, requests_of_another_model_are_not_looked_at)
{
	const struct r3ring_finished other = {
		.layers = 2, .experts = 2, .counts = (const uint16_t[]){1, 1, 1, 1}};
	const uint32_t own[] = {1, 1, 1, 1};

	cr_assert_eq(r3ring_history_add(history, &other), 0);
	known.own.counts = own;
	cr_expect_eq(predict(R3RING_PREDICT_SIMILAR), -ENODATA);
}

Test(predict, automatic_takes_own_then_prefix_then_class_then_uniform)
{
	const uint32_t own[] = {1, 0, 0, 0}, global[] = {1, 1, 1, 1};

	label("a", "code", "p1");
	finish("a", 1, (const uint16_t[]){0, 1, 0, 0});
	known.global.counts = global;
	cr_expect_eq(predict(R3RING_PREDICT_AUTO), 0);
	cr_expect_eq(used, R3RING_PREDICT_UNIFORM);
	cr_expect_null(evidence.counts);
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_AUTO), 0);
	cr_expect_eq(used, R3RING_PREDICT_CLASS);
	known.labels.prefix_key = "p1";
	cr_expect_eq(predict(R3RING_PREDICT_AUTO), 0);
	cr_expect_eq(used, R3RING_PREDICT_PREFIX);
	known.own.counts = own;
	cr_expect_eq(predict(R3RING_PREDICT_AUTO), 0);
	cr_expect_eq(used, R3RING_PREDICT_OWN);
}

/* ---- bounds ----------------------------------------------------------------- */

Test(predict, beyond_its_bounds_the_oldest_go_and_are_counted)
{
	const struct r3ring_history_options options = {
		.size = sizeof(options), .max_requests = 2, .max_labels = 2};
	const struct r3ring_history_options tiny = {.size = sizeof(options), .max_bytes = 1};
	const struct r3ring_finished finished = {
		.layers = 1, .experts = EXPERTS, .counts = (const uint16_t[]){1, 0, 0, 0}};

	close_history();
	open_with(&options);
	label("a", "code", NULL);
	label("b", "code", NULL);
	label("c", "code", NULL);
	finish("a", 1, (const uint16_t[]){1, 0, 0, 0});
	finish("b", 2, (const uint16_t[]){0, 1, 0, 0});
	finish("c", 3, (const uint16_t[]){0, 0, 1, 0});
	known.labels.class_name = "code";
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	expect_counts((const uint32_t[]){0, 1, 1, 0});
	cr_expect_eq(stats_of().requests, 2);
	cr_expect_eq(stats_of().added, 3);
	cr_expect_eq(stats_of().evicted, 1);
	cr_expect_eq(stats_of().labels_evicted, 1);
	cr_expect_eq(stats_of().refused, 0);
	close_history();
	open_with(&tiny);
	cr_expect_eq(r3ring_history_add(history, &finished), -ENOBUFS);
	cr_expect_eq(stats_of().refused, 1);
	cr_expect_eq(stats_of().bytes, 0);
}

Test(predict, bytes_are_bounded_and_back_to_what_they_were)
{
	struct r3ring_history_options options = {.size = sizeof(options)};
	uint64_t one;

	finish(NULL, 1, (const uint16_t[]){1, 0, 0, 0});
	one = stats_of().bytes;
	close_history();
	options.max_bytes = 3 * one;
	open_with(&options);
	for (int i = 0; i < 10; i++)
		finish(NULL, 1, (const uint16_t[]){1, 0, 0, 0});
	cr_expect_eq(stats_of().requests, 3);
	cr_expect_eq(stats_of().bytes, 3 * one);
	cr_expect_eq(stats_of().evicted, 7);
}

Test(predict, when_its_places_were_used_again_and_again_the_newest_are_still_those_kept)
{
	const struct r3ring_history_options options = {.size = sizeof(options), .max_requests = 3};

	close_history();
	open_with(&options);
	known.labels.class_name = "code";
	for (uint16_t i = 1; i <= 11; i++) {
		label("a", "code", NULL);
		finish("a", i, (const uint16_t[]){i, 1, 0, 0});
	}
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	expect_counts((const uint32_t[]){9 + 10 + 11, 3, 0, 0});
}

/* A count is two bytes, and a bit stands for it. */
Test(predict, what_a_request_takes_goes_by_its_layers_and_experts)
{
	const uint16_t visits[128] = {1};
	struct r3ring_finished finished = {.layers = 1, .experts = 64, .counts = visits};
	uint64_t one;

	cr_assert_eq(r3ring_history_add(history, &finished), 0);
	one = stats_of().bytes;
	cr_expect_geq(one, 64 * 2 + 8);
	finished.layers = 2;
	cr_assert_eq(r3ring_history_add(history, &finished), 0);
	cr_expect_eq(stats_of().bytes - one, one + 64 * 2 + 8);
}

Test(predict, labels_may_be_as_long_as_an_id)
{
	char text[R3RING_TEXT_ID_MAX + 1];

	memset(text, 'x', R3RING_TEXT_ID_MAX);
	text[R3RING_TEXT_ID_MAX] = '\0';
	label(text, text, text);
	finish(text, 1, (const uint16_t[]){1, 0, 0, 0});
	known.labels = (struct r3ring_labels){text, text};
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), 0);
	cr_expect_eq(predict(R3RING_PREDICT_PREFIX), 0);
	text[R3RING_TEXT_ID_MAX - 1] = '\0';
	cr_expect_eq(predict(R3RING_PREDICT_CLASS), -ENODATA, "all of it counts");
}

Test(predict, there_is_an_end_to_how_many_requests_a_history_may_have)
{
	struct r3ring_history_options options = {.size = sizeof(options),
						 .max_requests = (1u << 20) + 1};
	struct r3ring_history *none = NULL;
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_history_create(&none, &options, &err), -EINVAL);
	cr_expect_null(none);
	cr_expect(strstr(err.text, "max_requests: 1048577"), "%s", err.text);
	options.max_requests--;
	close_history();
	open_with(&options);
}

Test(predict, what_cannot_be_is_refused)
{
	struct r3ring_history_options options = {.size = 1};
	struct r3ring_history *none = NULL;
	const struct r3ring_labels labels = {0};
	const struct r3ring_finished finished = {.experts = EXPERTS};
	char text[R3RING_TEXT_ID_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_expect_eq(r3ring_history_create(&none, &options, NULL), -EINVAL);
	cr_expect_null(none);
	cr_expect_eq(r3ring_history_label(history, "", &labels), -EINVAL);
	cr_expect_eq(r3ring_history_label(history, text, &labels), -EINVAL);
	cr_expect_eq(r3ring_history_label(history, "a", &(struct r3ring_labels){text, NULL}),
		     -EINVAL);
	cr_expect_eq(r3ring_history_add(history, &finished), -EINVAL);
	cr_expect_eq(stats_of().refused, 1);
}

/* ---- models ------------------------------------------------------------------------ */

/* One of class "code" on each of two models of the same shape, and one on none that is named. */
static void finish_on_models(void)
{
	static const char *const model[] = {"small", "other", NULL};
	const uint16_t visits[][EXPERTS] = {{1, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 3, 0}};

	for (uint32_t i = 0; i < 3; i++) {
		const struct r3ring_finished finished = {.id = "a",
							 .layers = 1,
							 .experts = EXPERTS,
							 .counts = visits[i],
							 .model = model[i]};

		label("a", "code", "prompt");
		cr_assert_eq(r3ring_history_add(history, &finished), 0);
	}
	known.labels = (struct r3ring_labels){"code", "prompt"};
}

static void expect_on(const char *model, enum r3ring_predictor predictor,
		      const uint32_t expected[EXPERTS])
{
	const uint32_t own[EXPERTS] = {1, 1, 1, 1};

	known.model = model;
	known.own.counts = own;
	cr_assert_eq(r3ring_predict(predictor, &known, counts, &evidence, NULL), 0);
	expect_counts(expected);
}

Test(predict, requests_of_one_model_teach_nothing_of_another_of_its_shape)
{
	static const enum r3ring_predictor those[] = {R3RING_PREDICT_CLASS, R3RING_PREDICT_PREFIX,
						      R3RING_PREDICT_SIMILAR};

	finish_on_models();
	for (uint32_t i = 0; i < sizeof(those) / sizeof(*those); i++) {
		expect_on("small", those[i], (const uint32_t[EXPERTS]){1, 0, 0, 0});
		expect_on("other", those[i], (const uint32_t[EXPERTS]){0, 2, 0, 0});
		expect_on(NULL, those[i], (const uint32_t[EXPERTS]){0, 0, 3, 0});
		expect_on("", those[i], (const uint32_t[EXPERTS]){0, 0, 3, 0});
	}
	known.model = "a third";
	cr_expect_eq(r3ring_predict(R3RING_PREDICT_CLASS, &known, counts, &evidence, NULL),
		     -ENODATA);
}

Test(predict, a_models_name_is_as_long_as_a_schema_can_say)
{
	char name[R3RING_MODEL_NAME_MAX + 2];
	const uint16_t visits[EXPERTS] = {1};
	const struct r3ring_finished finished = {
		.layers = 1, .experts = EXPERTS, .counts = visits, .model = name};

	memset(name, 'm', sizeof(name));
	name[R3RING_MODEL_NAME_MAX + 1] = 0;
	cr_expect_eq(r3ring_history_add(history, &finished), -EINVAL);
	name[R3RING_MODEL_NAME_MAX] = 0;
	cr_assert_eq(r3ring_history_add(history, &finished), 0);
	expect_on(name, R3RING_PREDICT_SIMILAR, (const uint32_t[EXPERTS]){1, 0, 0, 0});
}
