/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history that eight threads label, add to and predict by, all at once. What each class is
 * foretold is checked: a request of class c visited the experts 2c and 2c + 1 alone, as often
 * as each other. At the end the accounts are checked: all that was added is there or was evicted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/predict.h>

#define THREADS 8u
#define CLASSES 4u
#define LAYERS 3u
#define EXPERTS (2 * CLASSES)
#define CELLS (LAYERS * EXPERTS)
#define KEPT 64u
#define ROUNDS 4000u

static struct r3ring_history *history;
static uint32_t wrong, foretold, added;

static void complain(const char *what)
{
	if (!r3ring_fetch_add_u32(&wrong, 1))
		fprintf(stderr, "%s\n", what);
}

static void class_name(uint32_t class, char name[16])
{
	snprintf(name, 16, "class-%u", class);
}

static void finish(uint32_t thread, uint32_t round, uint32_t class)
{
	char id[32], name[16];
	uint16_t counts[CELLS] = {0};
	const struct r3ring_labels labels = {.class_name = name};
	const struct r3ring_finished finished = {
		.id = id, .layers = LAYERS, .experts = EXPERTS, .counts = counts};

	snprintf(id, sizeof(id), "%u-%u", thread, round);
	class_name(class, name);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		counts[layer * EXPERTS + 2 * class] = (uint16_t)(1 + round % 9);
		counts[layer * EXPERTS + 2 * class + 1] = (uint16_t)(1 + round % 9);
	}
	if (r3ring_history_label(history, id, &labels) || r3ring_history_add(history, &finished))
		complain("a request is not kept");
	r3ring_fetch_add_u32(&added, 1);
}

static void check_counts(const uint32_t *counts, uint32_t class)
{
	for (uint32_t cell = 0; cell < CELLS; cell++) {
		uint32_t expert = cell % EXPERTS;

		if (expert / 2 == class ? !counts[cell] || counts[cell] != counts[cell ^ 1]
					: counts[cell] != 0)
			complain("a class has visits of another");
	}
}

static void predict(enum r3ring_predictor predictor, uint32_t class)
{
	uint32_t counts[CELLS], own[CELLS] = {0};
	struct r3ring_evidence evidence;
	char name[16];
	const struct r3ring_known known = {
		.shape = {.layers = LAYERS, .experts = EXPERTS, .top_k = 2},
		.own = {.counts = own},
		.history = history,
		.labels = {.class_name = name},
	};
	int r;

	class_name(class, name);
	own[2 * class] = 1;
	own[2 * class + 1] = 1;
	r = r3ring_predict(predictor, &known, counts, &evidence, NULL);
	if (r == 0) {
		check_counts(counts, class);
		r3ring_fetch_add_u32(&foretold, 1);
	} else if (r != -ENODATA) {
		complain(strerror(-r));
	}
}

static void *work(void *arg)
{
	uint32_t thread = *(const uint32_t *)arg;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t class = (thread + round) % CLASSES;

		finish(thread, round, class);
		predict(round % 2 ? R3RING_PREDICT_CLASS : R3RING_PREDICT_SIMILAR, class);
	}
	return NULL;
}

static void check_accounts(void)
{
	struct r3ring_history_stats stats;

	r3ring_history_get_stats(history, &stats);
	if (stats.added != added || stats.requests + stats.evicted != stats.added ||
	    stats.requests != KEPT || stats.labels || stats.labels_evicted || stats.refused)
		complain("the accounts do not add up");
	printf("%llu added, %u kept, %u foretold, %u wrong\n", (unsigned long long)stats.added,
	       stats.requests, foretold, wrong);
}

int main(void)
{
	const struct r3ring_history_options options = {.size = sizeof(options),
						       .max_requests = KEPT};
	pthread_t threads[THREADS];
	uint32_t number[THREADS];

	if (r3ring_history_create(&history, &options, NULL))
		return 1;
	for (uint32_t i = 0; i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&threads[i], NULL, work, &number[i]))
			return 1;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_accounts();
	r3ring_history_destroy(history);
	return wrong || !foretold;
}
