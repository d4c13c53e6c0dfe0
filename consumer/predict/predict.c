/* SPDX-License-Identifier: Apache-2.0 */
/* The table of predictors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/predict/history.h"

#define NEIGHBOURS 3u
#define NEWEST_ALIKE 32u /* of a class or prefix */

static size_t cells_of(const struct r3ring_known *known)
{
	return (size_t)known->shape.layers * known->shape.experts;
}

static bool has_visits(const struct r3ring_visits *visits, size_t cells)
{
	for (size_t i = 0; visits->counts && i < cells; i++) {
		if (visits->counts[i])
			return true;
	}
	return false;
}

static uint64_t age_of(const struct r3ring_known *known, uint64_t updated_ns)
{
	return known->now_ns > updated_ns ? known->now_ns - updated_ns : 0;
}

/* ---- what was counted ------------------------------------------------------- */

static int gather_visits(const struct r3ring_known *known, const struct r3ring_visits *visits,
			 uint32_t *counts, struct r3ring_evidence *evidence)
{
	if (!has_visits(visits, cells_of(known)))
		return -ENODATA;
	memcpy(counts, visits->counts, cells_of(known) * sizeof(*counts));
	*evidence = (struct r3ring_evidence){counts, age_of(known, visits->updated_ns)};
	return 0;
}

static int gather_uniform(const struct r3ring_known *known, uint32_t *counts,
			  struct r3ring_evidence *evidence)
{
	(void)known;
	(void)counts;
	*evidence = (struct r3ring_evidence){0};
	return 0;
}

static int gather_global(const struct r3ring_known *known, uint32_t *counts,
			 struct r3ring_evidence *evidence)
{
	return gather_visits(known, &known->global, counts, evidence);
}

static int gather_own(const struct r3ring_known *known, uint32_t *counts,
		      struct r3ring_evidence *evidence)
{
	return gather_visits(known, &known->own, counts, evidence);
}

/* ---- what finished requests did --------------------------------------------- */

/* The sum of the first of a list; as old as the newest of them. */
static void gather_finished(const struct r3ring_known *known, const struct finished_list *list,
			    uint32_t first, uint32_t *counts, struct r3ring_evidence *evidence)
{
	size_t cells = cells_of(known);
	uint64_t newest = 0;

	memset(counts, 0, cells * sizeof(*counts));
	for (uint32_t i = 0; i < first; i++) {
		const struct finished *finished = list->one[i];

		if (finished->finished_ns > newest)
			newest = finished->finished_ns;
		for (size_t cell = 0; cell < cells; cell++)
			counts[cell] += finished->counts[cell];
	}
	*evidence = (struct r3ring_evidence){counts, age_of(known, newest)};
}

static struct finished_filter filter_for(const struct r3ring_known *known, uint32_t most)
{
	return (struct finished_filter){
		.layers = known->shape.layers,
		.experts = known->shape.experts,
		.model = known->model ? known->model : "",
		.class_name = "",
		.prefix_key = "",
		.most = most,
	};
}

static int gather_labelled(const struct r3ring_known *known, const struct finished_filter *filter,
			   uint32_t *counts, struct r3ring_evidence *evidence)
{
	struct finished_list list;
	int r;

	if (!known->history || finished_find(known->history, filter, &list))
		return known->history ? -ENOMEM : -ENODATA;
	r = list.count ? 0 : -ENODATA;
	if (r == 0)
		gather_finished(known, &list, list.count, counts, evidence);
	finished_give_back(known->history, &list);
	return r;
}

static int gather_class(const struct r3ring_known *known, uint32_t *counts,
			struct r3ring_evidence *evidence)
{
	struct finished_filter filter = filter_for(known, NEWEST_ALIKE);

	if (!known->labels.class_name || !known->labels.class_name[0])
		return -ENODATA;
	filter.class_name = known->labels.class_name;
	return gather_labelled(known, &filter, counts, evidence);
}

static int gather_prefix(const struct r3ring_known *known, uint32_t *counts,
			 struct r3ring_evidence *evidence)
{
	struct finished_filter filter = filter_for(known, NEWEST_ALIKE);

	if (!known->labels.prefix_key || !known->labels.prefix_key[0])
		return -ENODATA;
	filter.prefix_key = known->labels.prefix_key;
	return gather_labelled(known, &filter, counts, evidence);
}

/* What is compared are counts as a signature has them. NULL without memory. */
static uint16_t *own_signature(const struct r3ring_known *known)
{
	uint16_t *own = malloc(cells_of(known) * sizeof(*own));

	for (size_t i = 0; own && i < cells_of(known); i++) {
		uint32_t count = known->own.counts[i];

		own[i] = count < UINT16_MAX ? (uint16_t)count : UINT16_MAX;
	}
	return own;
}

static int gather_similar(const struct r3ring_known *known, uint32_t *counts,
			  struct r3ring_evidence *evidence)
{
	struct finished_filter filter = filter_for(known, UINT32_MAX);
	struct finished_list list;
	uint16_t *own;
	int alike;

	if (!known->history || !has_visits(&known->own, cells_of(known)))
		return -ENODATA;
	own = own_signature(known);
	if (!own || finished_find(known->history, &filter, &list)) {
		free(own);
		return -ENOMEM;
	}
	alike = similar_first(&list, own, NEIGHBOURS);
	if (alike > 0)
		gather_finished(known, &list, (uint32_t)alike, counts, evidence);
	finished_give_back(known->history, &list);
	free(own);
	return alike > 0 ? 0 : alike < 0 ? alike : -ENODATA;
}

/* ---- the table -------------------------------------------------------------- */

static const struct predictor {
	const char *name;
	int (*gather)(const struct r3ring_known *known, uint32_t *counts,
		      struct r3ring_evidence *evidence); /* NULL: gather_first() */
} predictors[R3RING_PREDICTORS] = {
	[R3RING_PREDICT_UNIFORM] = {"uniform", gather_uniform},
	[R3RING_PREDICT_GLOBAL] = {"global", gather_global},
	[R3RING_PREDICT_CLASS] = {"class", gather_class},
	[R3RING_PREDICT_PREFIX] = {"prefix", gather_prefix},
	[R3RING_PREDICT_SIMILAR] = {"similar", gather_similar},
	[R3RING_PREDICT_OWN] = {"own", gather_own},
	[R3RING_PREDICT_AUTO] = {"auto", NULL},
};

static const enum r3ring_predictor automatic[] = {R3RING_PREDICT_OWN, R3RING_PREDICT_PREFIX,
						  R3RING_PREDICT_CLASS, R3RING_PREDICT_UNIFORM};

const char *r3ring_predictor_name(enum r3ring_predictor predictor)
{
	return predictor < R3RING_PREDICTORS ? predictors[predictor].name : NULL;
}

int r3ring_predictor_named(const char *name)
{
	for (int i = 0; name && i < R3RING_PREDICTORS; i++) {
		if (strcmp(predictors[i].name, name) == 0)
			return i;
	}
	return -ENOENT;
}

static int gather_first(const struct r3ring_known *known, uint32_t *counts,
			struct r3ring_evidence *evidence, enum r3ring_predictor *used)
{
	int r = -ENODATA;

	for (size_t i = 0; r == -ENODATA && i < sizeof(automatic) / sizeof(*automatic); i++) {
		*used = automatic[i];
		r = predictors[*used].gather(known, counts, evidence);
	}
	return r;
}

int r3ring_predict(enum r3ring_predictor predictor, const struct r3ring_known *known,
		   uint32_t *counts, struct r3ring_evidence *evidence, enum r3ring_predictor *used)
{
	enum r3ring_predictor one = predictor;
	int r;

	if (predictor >= R3RING_PREDICTORS || !known || !counts || !evidence)
		return -EINVAL;
	if (predictor == R3RING_PREDICT_AUTO)
		r = gather_first(known, counts, evidence, &one);
	else
		r = predictors[predictor].gather(known, counts, evidence);
	if (r == 0 && used)
		*used = one;
	return r;
}
