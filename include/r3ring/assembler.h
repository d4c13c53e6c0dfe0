/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler: from records to requests. Joins STEP, SPANS, LAYER, ROWS and
 * REQUEST of any number of channels of one model into each request's
 * routes[tokens][layers][top_k], and says of every cell that is not there why.
 *
 *	create -> channel x channels -> { feed, take, ... free } ... -> flush -> destroy
 *
 * Row p of a request is the routing of the pass that consumed token p. Positions come
 * from spans (or from ROWS, which win), never from the order of arrival. What is not
 * known for certain is missing.
 *
 * Of several passes over one token the first counts whose token was kept. Who runs a request's
 * tokens again begins another attempt: a later pass of the same attempt, under new weights, is only
 * known for one where the first was seen, or told to be lost with its spans. Its weight version is
 * told.
 *
 * Where records of an attempt's time were lost, for whatever cause, it may have run in them what no
 * row is there of. A later attempt's row is not known to be the first one then, and is missing, for
 * the cause of the loss (R3RING_MISSING_GAP where none is told). What limits that:
 *
 *	- tokens that the attempt's end says were kept: what lies at and beyond them is the next one's;
 *	- rows that it ran behind the loss: it ran its positions in order, so it had run no others;
 *	- another stage that lost nothing, which has the same rows;
 *	- where its end was lost: the next attempt's prompt, where prompts of the request's attempts
 *	  are seen to grow. Engines that tell the first prompt in all of them leave open how
 *	  much was kept.
 *
 * So do those that end such an attempt without saying it: what it ran behind its prompt, and a later
 * one ran too, is missing then though nothing was lost (R3RING_MISSING_SPANS). Tokens that a later
 * attempt throws away (its end, or a prompt, tells fewer) count for none before it. Where that end was not
 * heard, or the attempt at all, and prompts are not seen to grow, all behind the first prompt may have been thrown away, and what
 * was run of it before is missing.
 *
 * Of two engines that `min_ends` joins, what one ran at and behind the last token that it returned does
 * not count where the other went on: that fed itself this token.
 *
 * So it is with attempts that nobody saw: all that the next one ran is missing, or its prompt, where
 * prompts are seen to grow. With R3RING_ROWS_LATEST an attempt's row is missing where a later one may
 * have run the token.
 *
 * Requests are known by their text ids. Two that have the same one are kept apart where it
 * can be told: on one channel, and on channels that are not of one engine. Of one engine are those
 * of an instance whose coordinates have one index of dp, and not the same ones of pp, sp, cp and
 * tp: stages, shards and copies. All others are joined only where `min_ends` says that several
 * have a part of each request; but data-parallel ranks may each run other attempts of one, unless it
 * had ended for good. Ranks of one engine have requests of one id in one order, in whatever order they
 * are fed: the n-th of one is the n-th of another, from one start of their engine to the next. A request
 * waits until all have told of it. Which starts are one is known by the times of steps (host_ns) and of bound_since_ns,
 * else by their number. Behind records that were lost, parts are of one request only where a step told both of the same
 * rows of an attempt, and none of others; or, where a generation goes on, whose steps each channel numbers for itself, where
 * they were begun under one handle, as they have to be too where an engine was started again. Whether two ran the same ids says nothing: two runs of one text may.
 *
 * Where a channel begins one before another of the id has ended, the former is given out unfinished.
 * A later attempt is known to be a request's by the handle of its first one (r3ring_request_first()).
 * Where it does not tell that, or tells one that was not heard of, it is taken for that of the request that there is; and
 * where another of the id may go on as well (or may have begun in records that were lost, if the id is
 * known to be that of several) the request is R3RING_ASSEMBLED_MIXED, with the attempt's channel and the other's. Of
 * requests that were let go before they had ended the newest of 16384 ids are remembered for this, beside `max_bytes`.
 *
 * What was joined of requests that channels ran on their own is flagged R3RING_ASSEMBLED_MIXED,
 * with two of the channels, and is nobody's. By `min_ends`: where the first attempt that both know has a
 * prompt that differs in length by more than a token, where both returned more than one token in
 * one attempt, or where most cells of the prompt that both ran for the request name other experts
 * (where one lost records, of more than one token). What a cache had, or an engine ran twice, says
 * nothing. Without: where an attempt ended for good and another rank began a later one all the
 * same (also where a daemon ended it as given up since its engine had gone: a rank that goes on
 * with it looks like one that runs another), and where stages or shards were joined while a
 * channel of the same coordinates ran a request of the same id, or where one lost records and it is not
 * known how many of the id it had: whose they are nobody can tell.
 *
 * Channels may be fed apart. A request that moved from one data-parallel rank to another comes out
 * in two parts where its end is fed before the first rank's begin: what that rank ran is missing
 * of the whole (R3RING_MISSING_GAP), and comes unfinished.
 *
 * A cached span that names block hashes does not tell which of two blocks of one hash was
 * found. Passes under one hash and weight version that differ are in conflict there, what one of them
 * lost is missing, and so is (R3RING_MISSING_UNKNOWN_KEY) what one ran nobody knows of, or under other weights
 * than the step that filled its block. Of a hash that was
 * run, or loaded, under several weight versions none is known (R3RING_MISSING_UNKNOWN_KEY), whatever the
 * step says that finds it: an engine may have kept them all. Who tells hashes salts them (producer.h).
 * Nor is any where steps ran that were not heard, or the spans of one never came, since the block may have
 * been run in them: of no hash that is filled under weights up to theirs; newer ones name others, unless
 * hashes of the channel were seen to stay. Nothing that runs a block later takes that back, since engines
 * run blocks that they have in the cache; a miss does (r3ring/producer.h): the engine had no block of the hash, and
 * what is filled from that step on is all that a cache may find. So it does for passes that differ, for weights, and for
 * what was loaded. In a step whose spans did not all come it does not. As far as `max_keys` goes that is remembered. Where
 * one was loaded from elsewhere, steps see what is run under its hash from the next step
 * on, and what SPANS tell later from then on. Slots tell more: engines that hold one content
 * twice are read best with those.
 *
 * Nothing here reads a ring or a file: whoever feeds it does.
 */
#ifndef R3RING_ASSEMBLER_H
#define R3RING_ASSEMBLER_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_assembler;

/* Why a cell (a token's ids in a layer) is missing; below it enum r3ring_cause. */
enum r3ring_missing_cause {
	R3RING_MISSING_GAP = 32,     /* the reader lost records, or came late */
	R3RING_MISSING_EXTERNAL,     /* the KV came from elsewhere */
	R3RING_MISSING_UNKNOWN_KEY,  /* from a prefix cache, under a key nobody remembers */
	R3RING_MISSING_NO_EXPERT,    /* an id was no expert */
	R3RING_MISSING_NOT_RUN,      /* no pass is known to have consumed the token */
	R3RING_MISSING_NOT_FED,      /* the last token sampled, never fed back */
	R3RING_MISSING_SPANS,        /* positions or accepted counts never came, or too late */
	R3RING_MISSING_EVICTED,      /* memory was needed for others */
	R3RING_MISSING_OTHER_LAYERS, /* no channel that was fed has the layer */
	R3RING_MISSING_NOT_RECORDED, /* who recorded it was told to leave the layer out */
	R3RING_MISSING_OTHER_SHARDS, /* no channel that was fed has the rows of the shard of sp or
				      * cp that may have run it */
	R3RING_MISSING_CAUSES,
};

/* "external", "unknown_key", ...; also those of enum r3ring_cause. Never NULL. */
R3RING_API const char *r3ring_missing_cause_name(uint32_t cause);

/* Which of several passes over one token counts. */
enum r3ring_row_policy {
	R3RING_ROWS_FIRST = 0, /* the first whose consumed token was kept: what sampled */
	R3RING_ROWS_LATEST = 1,
};

struct r3ring_assembler_options {
	size_t size; /* sizeof(struct r3ring_assembler_options) */
	enum r3ring_row_policy policy;
	uint32_t max_tokens;    /* positions of a request; 0: 2^20. What is behind them is left
				 * out, counted, and the request flagged R3RING_ASSEMBLED_CUT */
	uint64_t max_bytes;     /* held of what engines sent: rows, requests, positions, keys and
			      * their tables, steps that wait; 0: 1 GiB. Beyond it requests are
			      * given out as EVICTED, those that have been quiet longest first,
			      * then keys are forgotten. A step that would take more by itself is
			      * lost, and so are positions that lie so far apart that those
			      * between take more: R3RING_MISSING_EVICTED. On top come the step
			      * that is open, the memory of one that was, and what is free in the
			      * rows' slabs of 2 MiB */
	uint64_t max_keys;      /* prefix cache keys held; 0: 2^16. Beyond it the one not used
			      * for longest is forgotten, and counted */
	uint32_t late_steps;    /* steps that one waits for spans that follow; 0: 64 */
	uint32_t min_ends;      /* channels that must tell of a request's end before it is given
			      * out; 0: pipeline stages x sequence and context shards, by the
			      * schema. Disaggregated prefill and decode: the sum of both */
	uint32_t keys_go_first; /* 1: beyond max_bytes prefix cache keys are forgotten before a
				 * request is given out; positions that are found in the cache
				 * later are missing, R3RING_MISSING_UNKNOWN_KEY */
};

/*
 * @assembler: receives the handle; untouched on failure.
 * @options:   copied; NULL for all zero.
 *
 * Returns 0, -EINVAL (@assembler is NULL, or an option, named), -ENOMEM. One thread; pairs with
 * r3ring_assembler_destroy(). What was taken must be freed before that.
 */
R3RING_API int r3ring_assembler_create(struct r3ring_assembler **assembler,
				       const struct r3ring_assembler_options *options,
				       struct r3ring_error *err);
R3RING_API void r3ring_assembler_destroy(struct r3ring_assembler *assembler);

/*
 * Announces a channel, "INSTANCE/RANK[.draft]". A draft model's records are taken
 * and forgotten: its routes are not its target's.
 * Returns its index (0, 1, ...; the same again for a known name), -EINVAL (no name of
 * a channel), -ENOMEM.
 */
R3RING_API int r3ring_assembler_channel(struct r3ring_assembler *assembler, const char *name);

/*
 * Takes the next record of a channel: one that was read and checked, copied out of
 * the ring (r3ring_reader_read()) and decoded. All types may be given, in the
 * channel's order.
 *
 * Returns 0, -EINVAL (no such channel), -EPROTO (the channel is of another model, or
 * another number of experts or ids than those before, or had 64 sets of layers; the record is
 * refused),
 * -ENOMEM (what the record said is missing).
 */
R3RING_API int r3ring_assembler_feed(struct r3ring_assembler *assembler, uint32_t channel,
				     const struct r3ring_view *view,
				     const struct r3ring_record *record);

/*
 * Tells that a LAYER record of the channel came and was left out by who recorded it, who kept
 * of the model's layers those numbered [first, end), and no multi-token prediction layers.
 * What a step lacks of the others is missing as R3RING_MISSING_NOT_RECORDED once as many records
 * were left out as it has of them. Where they are fewer some went otherwise, which nobody
 * knows, and all count as lost.
 *
 * @view: of the record; its data is not looked at.
 * @end:  0: nothing is left out, and nothing happens.
 *
 * Returns 0, -EINVAL (no such channel), -ENOMEM.
 */
R3RING_API int r3ring_assembler_skip(struct r3ring_assembler *assembler, uint32_t channel,
				     const struct r3ring_view *view, uint32_t first, uint32_t end);

/* Tells that records of the channel were lost by whoever reads it. */
R3RING_API void r3ring_assembler_gap(struct r3ring_assembler *assembler, uint32_t channel);

/*
 * Tells that nobody is there any more to tell what the channel's engine runs. Unless more of the
 * channel is fed, requests that live on it have then ended when all is flushed: in what way, and
 * how long, is not known (R3RING_END_UNKNOWN).
 */
R3RING_API void r3ring_assembler_unfollowed(struct r3ring_assembler *assembler, uint32_t channel);

/* No more records come: what waits for late spans is settled, and every request is
 * given out as it is, unfinished ones flagged so. */
R3RING_API void r3ring_assembler_flush(struct r3ring_assembler *assembler);

struct r3ring_assembler_stats {
	uint64_t requests_live;
	uint64_t requests_given;
	uint64_t requests_evicted;
	uint64_t rows_placed;       /* rows that got a position in a request */
	uint64_t rows_unattributed; /* rows of requests nobody announced */
	uint64_t rows_rejected;     /* draft rows that were not accepted */
	uint64_t rows_moved;        /* ROWS had another position than the span */
	uint64_t spans_late;        /* steps whose spans never came */
	uint64_t conflicts;         /* cells */
	uint64_t keys;              /* held */
	uint64_t keys_forgotten;    /* for want of room */
	uint64_t bytes;             /* held, of what `max_bytes` is said of */
	uint64_t rows_beyond;       /* rows of positions beyond `max_tokens`, left out */
};

R3RING_API void r3ring_assembler_get_stats(const struct r3ring_assembler *assembler,
					   struct r3ring_assembler_stats *stats);

/* ---- a request that is assembled --------------------------------------- */

struct r3ring_assembled;

enum r3ring_assembled_flags {
	R3RING_ASSEMBLED_UNFINISHED = 1u << 0,     /* no end was seen, or not `min_ends` */
	R3RING_ASSEMBLED_LENGTH_GUESSED = 1u << 1, /* nobody said how many tokens were kept */
	R3RING_ASSEMBLED_EVICTED = 1u << 2,
	R3RING_ASSEMBLED_ABORTED = 1u << 3,
	R3RING_ASSEMBLED_MIXED = 1u << 4, /* channels that were joined ran requests of their own
					   * with one id: their rows belong to different runs */
	R3RING_ASSEMBLED_CUT = 1u << 5,   /* it has positions beyond `max_tokens`, which are not
					   * in it */
};

struct r3ring_conflict {
	uint32_t position;
	uint16_t layer; /* index in the request's layers */
	uint16_t reserved;
	uint32_t channel[2]; /* as r3ring_assembler_channel() numbered them */
	uint64_t step[2];
};

#define R3RING_CONFLICTS_TOLD 16u

struct r3ring_assembled_info {
	const char *id;
	const char *session, *turn, *sample; /* "" for none */
	const char *model;
	uint32_t tokens; /* rows: prompt plus returned tokens; the last has a row only
			  * where it was fed back */
	uint32_t
		prompt_tokens; /* R3RING_UNKNOWN_U32 where its first attempt's begin was not heard */
	uint32_t attempts;
	uint32_t flags; /* enum r3ring_assembled_flags */
	uint32_t experts;
	uint16_t top_k;
	uint16_t layers;
	const struct r3ring_layer_entry *layer; /* [layers], by kind and model layer number */
	uint64_t cells;                         /* tokens x layers */
	uint64_t cells_valid;
	uint64_t cells_missing[R3RING_MISSING_CAUSES]; /* by cause */
	uint64_t begin_step, end_step;                 /* first and last step with a row of it */
	uint32_t conflicts;                            /* cells of cause conflict */
	uint32_t conflicts_told;
	struct r3ring_conflict conflict[R3RING_CONFLICTS_TOLD]; /* [conflicts_told], the first */
	const char
		*mixed_by[2]; /* R3RING_ASSEMBLED_MIXED: names of two channels that each ran one, or
				  * twice that of one that ran both at a time;
				  * valid as long as the assembler */
};

/* The next request that is ready, or NULL. The caller owns it, and reads and frees it in the
 * assembler's thread. */
R3RING_API struct r3ring_assembled *r3ring_assembler_take(struct r3ring_assembler *assembler);
R3RING_API void r3ring_assembled_free(struct r3ring_assembled *assembled);

/*
 * Looks at a request that lives: what is known of it as of the records that were fed, flagged
 * UNFINISHED. Steps that have not ended, or wait for spans, are not in it yet. It goes on as if
 * nobody had looked.
 *
 * @id:        its text id. Of several that have it the one of which something was said last.
 * @assembled: receives it; untouched on failure. The caller frees it, before anything is fed,
 *             flushed or destroyed.
 *
 * Returns 0, -ENOENT (no such request lives), -ENOMEM. The assembler's thread.
 */
R3RING_API int r3ring_assembler_look(struct r3ring_assembler *assembler, const char *id,
				     struct r3ring_assembled **assembled);

/*
 * The ids of requests that live, those of which something was said last before the others.
 *
 * @ids: receives [@most] at most; each is valid until something is fed, flushed or destroyed.
 *
 * Returns how many it received, or -ENOMEM. The assembler's thread.
 */
R3RING_API int r3ring_assembler_live(const struct r3ring_assembler *assembler, const char **ids,
				     uint32_t most);

/* Valid until it is freed. */
R3RING_API const struct r3ring_assembled_info *r3ring_assembled_get_info(
	const struct r3ring_assembled *assembled);

/* Where r3ring_assembled_read() puts what it reads; each may be NULL. */
struct r3ring_assembled_rows {
	uint16_t *ids;            /* [positions][layers][top_k]; R3RING_MISSING where missing */
	uint8_t *valid;           /* [positions][layers] 1 or 0 */
	uint8_t *cause;           /* [positions][layers] 0 or enum r3ring_missing_cause */
	uint64_t *weight_version; /* [positions] of the pass; 0 where no layer is there */
	uint16_t *attempt;        /* [positions] whose row it is */
};

/*
 * Reads a range of positions and layers.
 *
 * Returns 0, or -ERANGE (beyond the request's tokens or layers).
 */
R3RING_API int r3ring_assembled_read(const struct r3ring_assembled *assembled, uint32_t position,
				     uint32_t positions, uint32_t layer, uint32_t layers,
				     const struct r3ring_assembled_rows *rows);

#ifdef __cplusplus
}
#endif

#endif
