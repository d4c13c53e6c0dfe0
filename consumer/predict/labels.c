/* SPDX-License-Identifier: Apache-2.0 */
/* What callers said of requests that have not finished. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/predict/history.h"

static void drop(struct r3ring_history *history, struct label *label)
{
	HASH_DEL(history->labels, label);
	history->stats.labels--;
	free(label);
}

void labels_free(struct r3ring_history *history)
{
	/* The head of the table is the oldest. */
	while (history->labels)
		drop(history, history->labels);
}

static struct label *find(struct r3ring_history *history, const char *id)
{
	struct label *label;

	HASH_FIND_STR(history->labels, id, label);
	return label;
}

void labels_take(struct r3ring_history *history, const char *id, struct label_texts *texts)
{
	struct label *label = find(history, id);

	if (!label)
		return;
	*texts = label->texts;
	drop(history, label);
}

bool label_is_text(const char *text)
{
	return !text || strlen(text) <= R3RING_TEXT_ID_MAX;
}

static void set_text(char to[R3RING_TEXT_ID_MAX + 1], const char *from)
{
	snprintf(to, R3RING_TEXT_ID_MAX + 1, "%s", from ? from : "");
}

/* Behind all others, under a number of its own. */
static int add(struct r3ring_history *history, struct label *made)
{
	struct label *former = find(history, made->id);
	unsigned int known;

	if (former)
		drop(history, former);
	while (history->labels && history->stats.labels >= history->options.max_labels) {
		drop(history, history->labels);
		history->stats.labels_evicted++;
	}
	known = HASH_COUNT(history->labels);
	HASH_ADD_STR(history->labels, id, made);
	if (HASH_COUNT(history->labels) == known)
		return -ENOMEM;
	history->stats.labels++;
	return 0;
}

int r3ring_history_label(struct r3ring_history *history, const char *id,
			 const struct r3ring_labels *labels)
{
	struct label *made;
	int r;

	if (!id || !id[0] || !labels || !label_is_text(id) || !label_is_text(labels->class_name) ||
	    !label_is_text(labels->prefix_key))
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	set_text(made->id, id);
	set_text(made->texts.class_name, labels->class_name);
	set_text(made->texts.prefix_key, labels->prefix_key);
	pthread_mutex_lock(&history->lock);
	r = add(history, made);
	pthread_mutex_unlock(&history->lock);
	if (r)
		free(made);
	return r;
}
