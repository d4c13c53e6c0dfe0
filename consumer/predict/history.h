/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a history. What a finished request did does not change any more, so whoever looks
 * at it holds a reference, and others add and evict meanwhile.
 */
#ifndef PREDICT_HISTORY_H
#define PREDICT_HISTORY_H

#include <pthread.h>
#include <stdbool.h>

#include <uthash.h>

#include <r3ring/predict.h>

struct label_texts {
	char class_name[R3RING_TEXT_ID_MAX + 1]; /* "": not known */
	char prefix_key[R3RING_TEXT_ID_MAX + 1];
};

/* Of a request that has not finished. */
struct label {
	struct label_texts texts;
	UT_hash_handle hh; /* by id, in the order of their making */
	char id[R3RING_TEXT_ID_MAX + 1];
};

struct finished {
	uint32_t references; /* the history's own among them; under the lock */
	uint32_t layers, experts;
	uint64_t finished_ns;
	size_t bytes;
	uint16_t *counts; /* [layers][experts] */
	uint64_t *bitmap; /* [R3RING_SIGNATURE_WORDS(layers, experts)] */
	struct label_texts texts;
	char model[R3RING_MODEL_NAME_MAX + 1]; /* "": none is named */
};

struct r3ring_history {
	struct r3ring_history_options options;
	pthread_mutex_t lock; /* of what follows */
	struct r3ring_history_stats stats;
	struct finished **finished; /* [options.max_requests] in turns */
	uint32_t oldest;
	struct label *labels;
};

/* Which finished requests somebody wants to look at; with "" any class or prefix will do. */
struct finished_filter {
	uint32_t layers, experts;
	const char *model;
	const char *class_name, *prefix_key;
	uint32_t most;
};

/* Those that were found, newest first. */
struct finished_list {
	struct finished **one;
	uint32_t count;
};

/* Returns 0 or -ENOMEM. Pairs with finished_give_back(), also where none was found. */
int finished_find(struct r3ring_history *history, const struct finished_filter *filter,
		  struct finished_list *list);
void finished_give_back(struct r3ring_history *history, struct finished_list *list);

/* The most similar ones of a list come first, at most @most of them; the others keep no order.
 * Returns how many have anything in common with @own, or -ENOMEM. */
int similar_first(struct finished_list *list, const uint16_t *own, uint32_t most);

/* labels.c; under the lock. Takes what was said of a request; all "" where nothing was. */
void labels_take(struct r3ring_history *history, const char *id, struct label_texts *texts);
void labels_free(struct r3ring_history *history);

/* Whether a label's text is one, or none. */
bool label_is_text(const char *text);

#endif
