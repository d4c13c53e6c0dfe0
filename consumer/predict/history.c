/* SPDX-License-Identifier: Apache-2.0 */
/* What finished requests did, the newest of them, in bounded memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/signature.h>

#include "consumer/predict/history.h"

#define REQUESTS_DEFAULT 1024u
#define REQUESTS_MAX (1u << 20)
#define LABELS_DEFAULT 8192u
#define BYTES_DEFAULT (UINT64_C(64) << 20)

static int options_take(struct r3ring_history_options *to,
			const struct r3ring_history_options *from, struct r3ring_error *err)
{
	if (from) {
		if (from->size != sizeof(*from))
			return r3ring_error_set(err, -EINVAL, "size of the options: %zu, not %zu",
						from->size, sizeof(*from));
		*to = *from;
	}
	if (!to->max_requests)
		to->max_requests = REQUESTS_DEFAULT;
	if (!to->max_labels)
		to->max_labels = LABELS_DEFAULT;
	if (!to->max_bytes)
		to->max_bytes = BYTES_DEFAULT;
	if (to->max_requests > REQUESTS_MAX)
		return r3ring_error_set(err, -EINVAL, "max_requests: %u, more than %u",
					to->max_requests, REQUESTS_MAX);
	return 0;
}

int r3ring_history_create(struct r3ring_history **history,
			  const struct r3ring_history_options *options, struct r3ring_error *err)
{
	struct r3ring_history *made;
	int r;

	if (!history)
		return r3ring_error_set(err, -EINVAL, "r3ring_history_create: history is NULL");
	made = calloc(1, sizeof(*made));
	r = made ? options_take(&made->options, options, err) : -ENOMEM;

	if (r == 0) {
		made->finished = calloc(made->options.max_requests, sizeof(*made->finished));
		r = made->finished ? 0 : -ENOMEM;
	}
	if (r < 0) {
		free(made);
		return r == -ENOMEM ? r3ring_error_set(err, r, "no memory for a history") : r;
	}
	pthread_mutex_init(&made->lock, NULL);
	*history = made;
	return 0;
}

/* ---- those that are kept ---------------------------------------------------- */

static void release(struct finished *finished)
{
	if (--finished->references)
		return;
	free(finished->counts);
	free(finished->bitmap);
	free(finished);
}

static uint32_t place_of(const struct r3ring_history *history, uint32_t number)
{
	return (history->oldest + number) % history->options.max_requests;
}

static void evict(struct r3ring_history *history)
{
	struct finished *gone = history->finished[history->oldest];

	history->oldest = place_of(history, 1);
	history->stats.requests--;
	history->stats.bytes -= gone->bytes;
	release(gone);
}

void r3ring_history_destroy(struct r3ring_history *history)
{
	if (!history)
		return;
	while (history->stats.requests)
		evict(history);
	labels_free(history);
	free(history->finished);
	pthread_mutex_destroy(&history->lock);
	free(history);
}

static struct finished *copy_of(const struct r3ring_finished *from)
{
	size_t cells = (size_t)from->layers * from->experts;
	size_t words = R3RING_SIGNATURE_WORDS(from->layers, from->experts);
	struct finished *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->references = 1;
	made->layers = from->layers;
	made->experts = from->experts;
	made->finished_ns = from->finished_ns;
	made->bytes = sizeof(*made) + cells * sizeof(*made->counts) + words * sizeof(*made->bitmap);
	made->counts = malloc(cells * sizeof(*made->counts));
	made->bitmap = malloc(words * sizeof(*made->bitmap));
	if (!made->counts || !made->bitmap) {
		release(made);
		return NULL;
	}
	if (from->model)
		strncpy(made->model, from->model, R3RING_MODEL_NAME_MAX);
	memcpy(made->counts, from->counts, cells * sizeof(*made->counts));
	r3ring_signature_bitmap(from->counts, from->layers, from->experts, made->bitmap);
	return made;
}

/* The oldest make room. False where that was not enough. */
static bool keep(struct r3ring_history *history, struct finished *made)
{
	const struct r3ring_history_options *options = &history->options;

	while (history->stats.requests &&
	       (history->stats.requests == options->max_requests ||
		history->stats.bytes + made->bytes > options->max_bytes)) {
		evict(history);
		history->stats.evicted++;
	}
	if (history->stats.bytes + made->bytes > options->max_bytes)
		return false;
	history->finished[place_of(history, history->stats.requests++)] = made;
	history->stats.bytes += made->bytes;
	history->stats.added++;
	return true;
}

static bool can_be(const struct r3ring_finished *finished)
{
	return finished->layers && finished->experts && finished->counts &&
	       (!finished->model ||
		strnlen(finished->model, R3RING_MODEL_NAME_MAX + 1) <= R3RING_MODEL_NAME_MAX);
}

int r3ring_history_add(struct r3ring_history *history, const struct r3ring_finished *finished)
{
	struct label_texts texts = {0};
	struct finished *made;
	int r = -EINVAL;

	if (!finished)
		return -EINVAL;
	if (can_be(finished)) {
		made = copy_of(finished);
		r = made ? 0 : -ENOMEM;
	}
	pthread_mutex_lock(&history->lock);
	/* It has finished, be it kept or not. */
	if (finished->id)
		labels_take(history, finished->id, &texts);
	if (r == 0) {
		made->texts = texts;
		if (!keep(history, made)) {
			release(made);
			r = -ENOBUFS;
		}
	}
	history->stats.refused += r != 0;
	pthread_mutex_unlock(&history->lock);
	return r;
}

void r3ring_history_get_stats(struct r3ring_history *history, struct r3ring_history_stats *stats)
{
	pthread_mutex_lock(&history->lock);
	*stats = history->stats;
	pthread_mutex_unlock(&history->lock);
}

/* ---- looking ---------------------------------------------------------------- */

static bool text_matches(const char *wanted, const char *text)
{
	return !wanted[0] || strcmp(wanted, text) == 0;
}

static bool matches(const struct finished *finished, const struct finished_filter *filter)
{
	return finished->layers == filter->layers && finished->experts == filter->experts &&
	       strcmp(finished->model, filter->model) == 0 &&
	       text_matches(filter->class_name, finished->texts.class_name) &&
	       text_matches(filter->prefix_key, finished->texts.prefix_key);
}

int finished_find(struct r3ring_history *history, const struct finished_filter *filter,
		  struct finished_list *list)
{
	list->count = 0;
	list->one = calloc(history->options.max_requests, sizeof(struct finished *));
	if (!list->one)
		return -ENOMEM;
	pthread_mutex_lock(&history->lock);
	for (uint32_t i = history->stats.requests; i-- > 0 && list->count < filter->most;) {
		struct finished *finished = history->finished[place_of(history, i)];

		if (!matches(finished, filter))
			continue;
		finished->references++;
		list->one[list->count++] = finished;
	}
	pthread_mutex_unlock(&history->lock);
	return 0;
}

void finished_give_back(struct r3ring_history *history, struct finished_list *list)
{
	pthread_mutex_lock(&history->lock);
	for (uint32_t i = 0; i < list->count; i++)
		release(list->one[i]);
	pthread_mutex_unlock(&history->lock);
	free(list->one);
}
