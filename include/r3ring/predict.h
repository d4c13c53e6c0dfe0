/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predictors: which experts a request will need, by what is known of it. One table of them,
 * and the memory of finished requests that some of them go by.
 *
 *	history_create -> { label, add } ... -> destroy
 *	r3ring_predict -> r3ring_demand_predict (r3ring/reserve.h)
 *
 * What each goes by, and how well it foretells a recording, is in docs/benchmarks.md.
 */
#ifndef R3RING_PREDICT_H
#define R3RING_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/reserve.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- finished requests ------------------------------------------------------ */

/* What requests that have finished did, the newest ones. All functions on it may be called
 * from any number of threads. */
struct r3ring_history;

struct r3ring_history_options {
	size_t size;           /* sizeof(struct r3ring_history_options) */
	uint32_t max_requests; /* kept; 0: 1024. Beyond it the oldest go, and are counted */
	uint64_t max_bytes;    /* of these: 17/8 bytes for each expert of each layer of a request
				* and some 700 more; 0: 64 MiB. Likewise */
	uint32_t max_labels;   /* of requests that have not finished, 900 bytes each; 0: 8192.
				* Beyond it the oldest are forgotten, and counted */
};

/*
 * @history: receives the handle; untouched on failure.
 * @options: copied; NULL for all zero.
 *
 * Returns 0, -EINVAL (@history is NULL, or an option, named), -ENOMEM. Pairs with r3ring_history_destroy(), before
 * which no thread may be using it any more; NULL is fine.
 */
R3RING_API int r3ring_history_create(struct r3ring_history **history,
				     const struct r3ring_history_options *options,
				     struct r3ring_error *err);
R3RING_API void r3ring_history_destroy(struct r3ring_history *history);

/* What a caller knows of a request's kind: requests that have the same text in common are
 * expected to need the same experts. NULL or "": not known. */
struct r3ring_labels {
	const char *class_name; /* "code", a tenant, an adapter: 1 to R3RING_TEXT_ID_MAX bytes */
	const char *prefix_key; /* of the prompt's beginning, say a hash; likewise */
};

/*
 * Says what a request is, so that it is known when it has finished. A later call for the same
 * id replaces what was said.
 *
 * @id: its text id.
 *
 * Returns 0, -EINVAL (@id is empty, a text too long, @id or @labels NULL), -ENOMEM.
 */
R3RING_API int r3ring_history_label(struct r3ring_history *history, const char *id,
				    const struct r3ring_labels *labels);

struct r3ring_finished {
	const char *id; /* whose labels it takes, if it was labelled; NULL: nobody's */
	uint32_t layers, experts;
	const uint16_t *counts; /* [layers][experts] visits; 65535: that or more */
	uint64_t finished_ns;   /* the clock of r3ring_known.now_ns */
	const char *model;      /* that ran it, as SCHEMA names it; NULL: none is named */
};

/*
 * Keeps what a request did. r3ring_signatures_keep() does so for those that end.
 *
 * Returns 0, -EINVAL (no layers, experts or counts, a model's name of more than
 * R3RING_MODEL_NAME_MAX bytes, or @finished is NULL), -ENOBUFS (it alone is more than max_bytes),
 * -ENOMEM; it is not kept then, and counted as refused.
 */
R3RING_API int r3ring_history_add(struct r3ring_history *history,
				  const struct r3ring_finished *finished);

struct r3ring_history_stats {
	uint32_t requests, labels; /* kept now */
	uint64_t added;
	uint64_t evicted;        /* requests that had to go */
	uint64_t labels_evicted; /* labels whose requests had not finished */
	uint64_t refused;
	uint64_t bytes; /* of requests, now */
};

R3RING_API void r3ring_history_get_stats(struct r3ring_history *history,
					 struct r3ring_history_stats *stats);

/* ---- predicting ------------------------------------------------------------- */

enum r3ring_predictor {
	R3RING_PREDICT_UNIFORM = 0, /* any expert is as likely */
	R3RING_PREDICT_GLOBAL,      /* the engine's frequencies */
	R3RING_PREDICT_CLASS,       /* finished requests of the same class, the newest 32 */
	R3RING_PREDICT_PREFIX,      /* finished requests with the same prefix key, likewise */
	R3RING_PREDICT_SIMILAR,     /* the 3 finished requests most like it so far
				     * (r3ring_signature_similarity()), of the 32 whose bitmaps have
				     * most in common with its own */
	R3RING_PREDICT_OWN,         /* what it did itself */
	R3RING_PREDICT_AUTO,        /* the first of these that knows something: own, prefix, class,
				     * uniform */
	R3RING_PREDICTORS,
};

/* "uniform", "global", "class", "prefix", "similar", "own", "auto"; NULL beyond them. */
R3RING_API const char *r3ring_predictor_name(enum r3ring_predictor predictor);

/* The one of that name, or -ENOENT; NULL names none. */
R3RING_API int r3ring_predictor_named(const char *name);

/* Counts of visits, [layers][experts]. */
struct r3ring_visits {
	const uint32_t *counts; /* NULL: none */
	uint64_t updated_ns;    /* when the newest was counted */
};

/*
 * What is known of a request. Of finished ones those are looked at that ran on a model of the same
 * name, layers and experts, in whatever instance: expert 3 of one model has nothing to do with
 * expert 3 of another. Weight versions are not told apart: they differ little, and the newest
 * requests go first.
 */
struct r3ring_known {
	struct r3ring_demand_shape shape;
	struct r3ring_visits own;       /* its own so far, wherever it ran */
	struct r3ring_visits global;    /* the engine's */
	struct r3ring_history *history; /* NULL: none */
	struct r3ring_labels labels;
	uint64_t now_ns;
	const char *model; /* that is to run it; NULL: as those of which none is named */
};

/*
 * Gathers what a predictor goes by, as evidence for r3ring_demand_predict().
 *
 * @counts:   [layers][experts] of the shape, to be filled; the evidence points to it. The caller's.
 * @evidence: receives it; without counts where every expert is as likely.
 * @used:     receives which predictor it was; may be NULL.
 *
 * Returns 0, -ENODATA (it knows nothing of such a request), -EINVAL (no such predictor, or
 * @known, @counts or @evidence is NULL),
 * -ENOMEM. Any thread.
 */
R3RING_API int r3ring_predict(enum r3ring_predictor predictor, const struct r3ring_known *known,
			      uint32_t *counts, struct r3ring_evidence *evidence,
			      enum r3ring_predictor *used);

#ifdef __cplusplus
}
#endif

#endif
