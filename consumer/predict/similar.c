/* SPDX-License-Identifier: Apache-2.0 */
/* Which finished requests are most like one that runs. */
#include <errno.h>
#include <stdlib.h>

#include <r3ring/signature.h>

#include "consumer/predict/history.h"

#define CANDIDATES 32u

/* A finished request and how alike it is. */
struct likeness {
	struct finished *finished;
	double likeness;
	uint32_t place; /* in the list: of equals the one that finished last goes first */
};

static int by_likeness(const void *a, const void *b)
{
	const struct likeness *left = a, *right = b;

	if (left->likeness != right->likeness)
		return (left->likeness < right->likeness) - (left->likeness > right->likeness);
	return (left->place > right->place) - (left->place < right->place);
}

/* Bitmaps are a sixteenth of the counts: they say which are worth a closer look. */
static int sort_by_bitmap(struct likeness *those, uint32_t count, const uint16_t *own)
{
	const struct finished *any = those[0].finished;
	size_t words = R3RING_SIGNATURE_WORDS(any->layers, any->experts);
	uint64_t *bitmap = malloc(words * sizeof(*bitmap));

	if (!bitmap)
		return -ENOMEM;
	r3ring_signature_bitmap(own, any->layers, any->experts, bitmap);
	for (uint32_t i = 0; i < count; i++)
		those[i].likeness =
			r3ring_signature_overlap(bitmap, those[i].finished->bitmap, words);
	qsort(those, count, sizeof(*those), by_likeness);
	free(bitmap);
	return 0;
}

static void sort_by_counts(struct likeness *those, uint32_t count, const uint16_t *own)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct finished *finished = those[i].finished;

		those[i].likeness = r3ring_signature_similarity(
			own, finished->counts, finished->layers, finished->experts);
	}
	qsort(those, count, sizeof(*those), by_likeness);
}

/* How many of the first @most are alike at all. */
static int count_alike(const struct likeness *those, uint32_t count, uint32_t most)
{
	uint32_t alike = 0;

	while (alike < count && alike < most && those[alike].likeness > 0)
		alike++;
	return (int)alike;
}

int similar_first(struct finished_list *list, const uint16_t *own, uint32_t most)
{
	uint32_t compared = list->count < CANDIDATES ? list->count : CANDIDATES;
	struct likeness *those;
	int r = 0;

	if (!list->count)
		return 0;
	those = calloc(list->count, sizeof(*those));
	if (!those)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->count; i++)
		those[i] = (struct likeness){.finished = list->one[i], .place = i};
	if (list->count > CANDIDATES)
		r = sort_by_bitmap(those, list->count, own);
	if (r == 0) {
		sort_by_counts(those, compared, own);
		for (uint32_t i = 0; i < list->count; i++)
			list->one[i] = those[i].finished;
		r = count_alike(those, compared, most);
	}
	free(those);
	return r;
}
