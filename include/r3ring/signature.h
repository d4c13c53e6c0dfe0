/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures: which experts a request's tokens went to, while it lives and for some time
 * after it ended.
 *
 *	create -> channel x channels -> { feed } ...			one thread
 *	signature_create -> { get, info, similarity } ... -> free	any other threads
 *
 * A signature counts rows as an assembler places them (r3ring/assembler.h): each position
 * of a request once, by the first pass whose token was kept; accepted draft rows only; of
 * copies and draft models none. Positions that came from a prefix cache count with the rows
 * of their keys, whoever ran them. A row that was run past a stop that only the end told of stays
 * in it.
 *
 * What is not known is counted as missing, as an assembler tells it of the same records: a
 * position of which there is no row, also where an attempt may have run it in records that were
 * lost and a later one ran it again, and a row of which any layer is missing. Of the latter the
 * layers that are there are in the counts all the same, and it is one of `rows_in_part`; the sums
 * of layers differ by what such rows lack. The last token that was sampled, and never fed back,
 * is not missing. While a request lives its positions are those up to the last one that is known;
 * once it has ended all that it was said to have are. Of each pipeline stage: what one lost of a
 * row that another has counts as one; where engines cut a model into stages in their own ways
 * (prefill here, decode there), a stage's positions are those up to its own last one. Of passes
 * of one attempt over a token that differ the first counts, and nothing is missing: no ids are kept
 * to see it by (an assembler calls it a conflict). A row that a daemon's end cut becomes whole where
 * the next generation tells it again.
 *
 * A request that was preempted goes on in the signature that it had. Channels share a signature
 * where they share a request, as an assembler joins them: others that run requests of one text id
 * have one each, and whoever asks by that id is told how many there are.
 */
#ifndef R3RING_SIGNATURE_H
#define R3RING_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>
#include <r3ring/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_signatures;

struct r3ring_signatures_options {
	size_t size;            /* sizeof(struct r3ring_signatures_options) */
	uint32_t max_requests;  /* signatures kept; 0: 4096 */
	uint32_t max_ended;     /* of requests that have ended among them; 0: 1024 */
	uint64_t max_bytes;     /* of all counts; 0: 512 MiB. Beyond it, or max_requests, those that
				* ended longest ago go first, then live ones that were quiet
				* longest */
	uint64_t max_keys;      /* prefix cache keys, a channel; 0: 2^16 */
	uint64_t max_key_bytes; /* of rows behind keys, of open steps, and of what may belong to
				 * a key that a live request has begun; 0: 256 MiB. Beyond it
				 * the keys not used for longest are forgotten, then requests
				 * that were quiet longest given up */
	uint32_t late_steps;    /* as that of an assembler */
	uint32_t min_ends;      /* likewise */
};

/*
 * @signatures: receives the handle; untouched on failure.
 * @options:    copied; NULL for all zero.
 *
 * Returns 0, -EINVAL (@signatures is NULL, or an option, named), -ENOMEM. Pairs with
 * r3ring_signatures_destroy(), before which every thread that reads must have ended. The handle
 * given to the other calls must not be NULL.
 */
R3RING_API int r3ring_signatures_create(struct r3ring_signatures **signatures,
					const struct r3ring_signatures_options *options,
					struct r3ring_error *err);
R3RING_API void r3ring_signatures_destroy(struct r3ring_signatures *signatures);

struct r3ring_history;

/*
 * Has what requests did added to a history (r3ring/predict.h) when they end, but for those that
 * were given up before an end was seen, whose end was missed, or that are mixed. Before the first record is fed.
 *
 * @history: used until the signatures are destroyed.
 *
 * Returns 0, -EINVAL (@history is NULL) or -ENOMEM.
 */
R3RING_API int r3ring_signatures_keep(struct r3ring_signatures *signatures,
				      struct r3ring_history *history);

/* As r3ring_load_channel(), with up to 2^31 channels. */
R3RING_API int r3ring_signatures_channel(struct r3ring_signatures *signatures, const char *name);

/*
 * Takes the next record of a channel, as r3ring_load_feed() does. One thread, which never
 * waits for those that read. Returns as r3ring_assembler_feed().
 */
R3RING_API int r3ring_signatures_feed(struct r3ring_signatures *signatures, uint32_t channel,
				      const struct r3ring_view *view,
				      const struct r3ring_record *record);

/* Tells that records of the channel were missed, as r3ring_load_gap(). The feeding thread. */
R3RING_API void r3ring_signatures_gap(struct r3ring_signatures *signatures, uint32_t channel);

struct r3ring_signatures_stats {
	uint64_t live, ended;       /* kept now */
	uint64_t evicted;           /* live ones that had to go */
	uint64_t forgotten;         /* ended ones, for want of room or beyond max_ended */
	uint64_t rows;              /* counted, with all layers */
	uint64_t rows_inherited;    /* of them from a prefix cache */
	uint64_t rows_missing;      /* positions that are not known, or not in all layers */
	uint64_t rows_recomputed;   /* left out: counted already */
	uint64_t rows_unkept;       /* of requests that had to go, or found no room */
	uint64_t rows_unattributed; /* of requests that nobody announced */
	uint64_t keys;              /* held */
	uint64_t keys_forgotten;    /* for want of room */
	uint64_t bytes;             /* of counts */
	uint64_t key_bytes;         /* of rows behind keys, and of open steps */
};

/* The feeding thread. */
R3RING_API void r3ring_signatures_get_stats(const struct r3ring_signatures *signatures,
					    struct r3ring_signatures_stats *stats);

/* ---- one signature ---------------------------------------------------------- */

enum r3ring_signature_phase {
	R3RING_SIGNATURE_PREFILL = 0, /* tokens of the prompt of its first attempt */
	R3RING_SIGNATURE_DECODE = 1,  /* tokens that it was given since */
	R3RING_SIGNATURE_PHASES = 2,
};

enum r3ring_signature_flags {
	R3RING_SIGNATURE_ENDED = 1u << 0,
	R3RING_SIGNATURE_ABORTED = 1u << 1,
	R3RING_SIGNATURE_UNFINISHED = 1u << 2, /* it was given up before an end was seen */
	/* Its end was told in records that were not read: what it did behind the last row that is
	 * known is in no count, and `rows_missing` is at least so many. */
	R3RING_SIGNATURE_END_MISSED = 1u << 4,
	R3RING_SIGNATURE_MIXED = 1u << 3, /* channels that share it ran requests of their own under
					       * the id, or it is not known which of them belong
					       * together: they say to be the same ranks */
};

struct r3ring_signature_info {
	const char *id;
	uint32_t flags; /* enum r3ring_signature_flags */
	uint32_t prompt_tokens;
	uint32_t layers;
	uint32_t experts;
	const struct r3ring_layer_entry *layer;          /* [layers], by kind and model layer
							  * number */
	const uint16_t *counts[R3RING_SIGNATURE_PHASES]; /* [layers][experts]; 65535: that or
							  * more */
	uint64_t rows[R3RING_SIGNATURE_PHASES];          /* counted, with all layers; a pipeline
							  * stage's each */
	uint64_t rows_inherited;                         /* of them from a prefix cache */
	uint64_t rows_missing; /* positions that are not known, or not in all layers; likewise */
	uint64_t updated_ns;   /* CLOCK_MONOTONIC: when the newest step with a row of it was
			      * published */
	uint32_t same_id; /* other requests of that text id whose signatures are kept, that live or
			      * ended: 0, and it is the only one that can be meant */
	uint64_t rows_in_part; /* of those missing: some layers are there, and in the counts */
};

struct r3ring_signature;

/* Belongs to one thread at a time, to be filled again and again. Returns 0, -EINVAL (@signature is NULL) or -ENOMEM;
 * pairs with r3ring_signature_free(), NULL is fine. */
R3RING_API int r3ring_signature_create(struct r3ring_signature **signature);
R3RING_API void r3ring_signature_free(struct r3ring_signature *signature);

/*
 * Copies the signature of a request. Of several that have that text id one that lives goes before
 * those that ended, then the one whose beginning was read last; never a sum of them, and how many
 * others there are is in `same_id`. Never waits. Any thread. Counts of a step that is being added just then may be there in part.
 *
 * @id: its text id.
 *
 * Returns 0, -ENOENT (no such request, its signature had to go, or @id is NULL), -EINVAL (@signature is
 * NULL), -ENOMEM. On failure
 * @signature is empty: its id is NULL.
 */
R3RING_API int r3ring_signatures_get(const struct r3ring_signatures *signatures, const char *id,
				     struct r3ring_signature *signature);

/* Valid until it is filled again. */
R3RING_API const struct r3ring_signature_info *r3ring_signature_get_info(
	const struct r3ring_signature *signature);

/* ---- comparing --------------------------------------------------------------- */

/*
 * How alike two requests' routing is: the cosine of their counts, layer by layer, mean of
 * the layers in which both have some. 1: the same shares of the same experts; 0: no expert
 * in common. The cosine does not care how long requests are, needs no smoothing of
 * experts that were not used, and takes layers for what they are: expert 3 of one layer has
 * nothing to do with expert 3 of another.
 *
 * Source: cosine: Manning, Raghavan, Schuetze, Introduction to Information Retrieval, 2008,
 * 6.3. That it tells requests of one subject from others: "Task-Conditioned Routing
 * Signatures in Sparse Mixture-of-Experts Transformers" (0.84 within a task, 0.62 across);
 * that prefill foretells decode: ELDR, arXiv 2607.00466.
 *
 * @a, @b: [layers][experts].
 *
 * Returns 0 to 1; 0 where no layer has counts of both. Any thread.
 */
R3RING_API double r3ring_signature_similarity(const uint16_t *a, const uint16_t *b, uint32_t layers,
					      uint32_t experts);

/* Words of a bitmap: a bit each expert, layers one after another without gaps. */
#define R3RING_SIGNATURE_WORDS(layers, experts) (((size_t)(layers) * (experts) + 63) / 64)

/*
 * The experts that a request leans on: those with more than an even share of their layer's
 * counts. 1/16 of the counts' size, to be sent to others and compared by the thousand.
 *
 * @bits: receives [R3RING_SIGNATURE_WORDS(layers, experts)]; bit layer x experts + expert.
 */
R3RING_API void r3ring_signature_bitmap(const uint16_t *counts, uint32_t layers, uint32_t experts,
					uint64_t *bits);

/*
 * How alike two bitmaps are: experts in both of those in either.
 * Source: Jaccard, Bulletin de la Societe Vaudoise des Sciences Naturelles 37, 1901.
 * Returns 0 to 1; 0 where both are empty. Any thread.
 */
R3RING_API double r3ring_signature_overlap(const uint64_t *a, const uint64_t *b, size_t words);

#ifdef __cplusplus
}
#endif

#endif
