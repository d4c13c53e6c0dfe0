/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement against published maps. Where loads tie, which of the equal goes first is
 * not published: per-GPU loads are compared, and numbers of replicas.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/eplb.h>

#define VECTORS "../shared/data/eplb/eplb_vectors.json"
#define LAYERS_MAX 2u
#define EXPERTS_MAX 16u
#define GPUS_MAX 8u

static json_t *file;

static void open_file(void)
{
	if (access(VECTORS, R_OK) != 0)
		cr_skip_test("no " VECTORS " beside the project");
	file = json_load_file(VECTORS, 0, NULL);
	cr_assert_not_null(file);
}

static void close_file(void)
{
	json_decref(file);
}

TestSuite(eplb_vectors, .init = open_file, .fini = close_file);

static const json_t *vector(const char *name)
{
	const json_t *all = json_object_get(file, "vectors");

	const json_t *one = NULL;

	for (size_t i = 0; !one && i < json_array_size(all); i++) {
		one = json_array_get(all, i);
		if (strcmp(json_string_value(json_object_get(one, "name")), name) != 0)
			one = NULL;
	}
	cr_assert(one, "%s is not in the file", name);
	return one;
}

static json_int_t number(const json_t *table, size_t i, size_t j)
{
	const json_t *value = json_array_get(json_array_get(table, i), j);

	cr_assert(json_is_number(value));
	return (json_int_t)json_number_value(value);
}

static uint32_t param(const json_t *one, const char *name)
{
	return (uint32_t)json_integer_value(json_object_get(json_object_get(one, "params"), name));
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Loads of the GPUs as the published map has them. */
static void published_loads(const json_t *one, size_t layer, uint32_t gpus, double *gpu)
{
	const json_t *weight = json_object_get(one, "weight");
	const json_t *places = json_object_get(one, "phy2log");
	const json_t *counts = json_object_get(one, "logcnt");
	size_t physical = json_array_size(json_array_get(places, layer));

	memset(gpu, 0, gpus * sizeof(*gpu));
	for (size_t p = 0; p < physical; p++) {
		size_t expert = (size_t)number(places, layer, p);

		gpu[p / (physical / gpus)] += (double)number(weight, layer, expert) /
					      (double)number(counts, layer, expert);
	}
}

static void expect_loads(const json_t *one, const struct r3ring_eplb_map *map, const double *load)
{
	double gpu[LAYERS_MAX * GPUS_MAX], published[GPUS_MAX];

	r3ring_eplb_project(map, load, NULL, gpu);
	for (uint32_t layer = 0; layer < map->layers; layer++) {
		published_loads(one, layer, map->gpus, published);
		qsort(published, map->gpus, sizeof(*published), ascending);
		qsort(gpu + (size_t)layer * map->gpus, map->gpus, sizeof(*gpu), ascending);
		for (uint32_t g = 0; g < map->gpus; g++)
			cr_assert_float_eq(gpu[(size_t)layer * map->gpus + g], published[g], 1e-6,
					   "layer %u: %g, published %g", layer,
					   gpu[(size_t)layer * map->gpus + g], published[g]);
	}
}

static void expect_counts(const json_t *one, const struct r3ring_eplb_map *map)
{
	for (uint32_t i = 0; i < map->layers * map->experts; i++) {
		const uint16_t *row = map->map + (size_t)i * map->replicas;
		uint32_t count = 0;

		while (count < map->replicas && row[count] != R3RING_MISSING)
			count++;
		cr_assert_eq(
			count,
			number(json_object_get(one, "logcnt"), i / map->experts, i % map->experts),
			"layer %u, expert %u", i / map->experts, i % map->experts);
	}
}

static struct r3ring_eplb_map *place(const json_t *one, double *load)
{
	const json_t *weight = json_object_get(one, "weight");
	uint32_t layers = (uint32_t)json_array_size(weight);
	uint32_t experts = (uint32_t)json_array_size(json_array_get(weight, 0));
	const struct r3ring_eplb_options options = {
		.size = sizeof(options),
		.physical = param(one, "num_replicas"),
		.gpus = param(one, "num_gpus"),
		.nodes = param(one, "num_nodes"),
		.groups = param(one, "num_groups"),
	};
	struct r3ring_eplb_map *map = NULL;
	struct r3ring_error err = {0};

	cr_assert(layers >= 1 && layers <= LAYERS_MAX && experts <= EXPERTS_MAX);
	for (uint32_t i = 0; i < layers * experts; i++)
		load[i] = (double)number(weight, i / experts, i % experts);
	cr_assert_eq(r3ring_eplb_place(&map, load, layers, experts, &options, &err), 0, "%s",
		     err.text);
	cr_assert_eq(r3ring_eplb_map_check(map, &err), 0, "%s", err.text);
	return map;
}

static void expect_as_published(const char *name)
{
	const json_t *one = vector(name);
	double load[LAYERS_MAX * EXPERTS_MAX];
	struct r3ring_eplb_map *map = place(one, load);

	expect_counts(one, map);
	expect_loads(one, map, load);
	r3ring_eplb_map_free(map);
}

Test(eplb_vectors, the_hierarchical_placement_of_the_readme_comes_out)
{
	expect_as_published("deepseek_readme");
}

Test(eplb_vectors, the_global_placement_of_a_hot_expert_comes_out)
{
	expect_as_published("blog_global_hot_expert");
}

Test(eplb_vectors, the_placements_of_other_engines_tests_come_out)
{
	expect_as_published("vllm_extreme");
	expect_as_published("vllm_small_hier");
	expect_as_published("vllm_global_fallback");
	expect_as_published("vllm_16e");
	expect_as_published("vllm_two_layers");
}

/* Without ties there is one map: place for place as the README prints it. */
Test(eplb_vectors, the_readmes_first_layer_comes_out_place_for_place)
{
	const json_t *one = vector("deepseek_readme");
	double load[LAYERS_MAX * EXPERTS_MAX];
	struct r3ring_eplb_map *map = place(one, load);
	uint16_t logical[16] = {0};

	for (uint32_t e = 0; e < map->experts; e++)
		for (uint32_t i = 0; i < map->replicas; i++)
			if (map->map[e * map->replicas + i] != R3RING_MISSING)
				logical[map->map[e * map->replicas + i]] = (uint16_t)e;
	for (uint32_t p = 0; p < map->physical; p++)
		cr_assert_eq(logical[p], number(json_object_get(one, "phy2log"), 0, p), "place %u",
			     p);
	r3ring_eplb_map_free(map);
}

/* ---- the two steps, as published one by one -------------------------------- */

Test(eplb_vectors, packing_alone_puts_the_published_items_together)
{
	const json_t *one = vector("fastdeploy_balanced_packing");
	const json_t *weight = json_object_get(one, "weight");
	const json_t *packs = json_object_get(one, "pack_index");
	const struct r3ring_eplb_options options = {
		.size = sizeof(options), .physical = 4, .gpus = 2};
	struct r3ring_eplb_map *map = NULL;
	double load[4];

	for (uint32_t e = 0; e < 4; e++)
		load[e] = (double)number(weight, 0, e);
	cr_assert_eq(r3ring_eplb_place(&map, load, 1, 4, &options, NULL), 0);
	for (uint32_t e = 0; e < 4; e++)
		cr_assert_eq(map->map[e] / 2, number(packs, 0, e), "expert %u", e);
	r3ring_eplb_map_free(map);
}

Test(eplb_vectors, replicating_alone_gives_the_published_numbers)
{
	const json_t *one = vector("fastdeploy_replicate");
	const json_t *weight = json_object_get(one, "weight");
	const struct r3ring_eplb_options options = {
		.size = sizeof(options),
		.physical = (uint32_t)json_integer_value(json_object_get(one, "num_phy")),
		.gpus = 1};
	struct r3ring_eplb_map *map = NULL;
	double load[4];

	for (uint32_t e = 0; e < 4; e++)
		load[e] = (double)number(weight, 0, e);
	cr_assert_eq(r3ring_eplb_place(&map, load, 1, 4, &options, NULL), 0);
	expect_counts(one, map);
	r3ring_eplb_map_free(map);
}
