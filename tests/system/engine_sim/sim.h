/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serving engine, simulated from a seed, that knows the true route of every token:
 * continuous batching, chunked prefill, paged KV with a prefix cache, preemption,
 * retraction, new weights, speculative decoding, several turns, disaggregated prefill
 * and decode, pipeline, data, sequence and tensor parallel ranks.
 *
 *	config.c    what engine a seed means, and what happens to it
 *	truth.c     routes: a pure function of a pass over a token
 *	workload.c  requests, turns, their tokens
 *	ids.c       their text ids, of which some are used again
 *	kv.c        blocks, each with the passes that filled it; the prefix cache
 *	scheduler.c steps
 *	drafts.c    what was accepted, and what the host learns later
 *	events.c    preemption, retraction, weights, aborts, copies, deaths of engines
 *	ranks.c     channels, and which rows and layers each has
 *	maps.c      token maps as the host knows them
 *	records.c   records by the real encoders; queue.c: to the assembler; faults.c: or not
 *	hear.c      what was delivered
 *	account.c   and so what can be known, of requests; settle.c: by steps,
 *	spans.c     of positions; behind.c: of what a cache finds
 *	take.c      what comes out of the assembler
 *	passes.c    which pass over a token counts
 *	known.c     what can be known of a cell
 *	lost.c      what attempts may have run in records that were lost
 *	whose.c     whose rows came out, where ids repeat
 *	mixed.c     whether nobody can know whose the parts of a request are
 *	cell.c      a cell is true or missing; and not missing where it could be known
 *	check.c     lengths, figures, conflicts, flags
 *	producers.c instead of records.c: real producers, a real daemon, real readers
 *	run.c       a seed from beginning to end
 *
 * Nothing here includes anything of the assembler's inside.
 */
#ifndef ENGINE_SIM_SIM_H
#define ENGINE_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/assembler.h>

#define SIM_ENGINES 3u
#define SIM_CHANNELS 16u
#define SIM_LAYERS 8u
#define SIM_TOP_K 8u
#define SIM_ROWS 48u
#define SIM_SPANS 32u
#define SIM_KEYS 1536u
#define SIM_REQUESTS 40u
#define SIM_ATTEMPTS 12u
#define SIM_POSITIONS 128u
#define SIM_BLOCKS 160u
#define SIM_BLOCK_TOKENS 4u
#define SIM_BATCH 6u
#define SIM_BAD_ID 1u
#define SIM_EITHER 24u

struct sim;
struct sim_engine;
struct sim_request;
struct sim_life;
struct sim_step;

/* ---- chance ------------------------------------------------------------- */

uint64_t sim_mix(uint64_t a, uint64_t b);
/* Of one stream; each concern has its own, so that one change leaves the others alone. */
uint32_t sim_below(uint64_t *state, uint32_t limit);
/* True in @permille of a thousand cases. */
bool sim_chance(uint64_t *state, uint32_t permille);

/* ---- what a seed means -------------------------------------------------- */

/* Whether a text id is used again, for a request that begins, */
enum sim_ids {
	SIM_IDS_UNIQUE,
	SIM_IDS_OVER,      /* when the one before is over, */
	SIM_IDS_PREEMPTED, /* or was preempted where that begins, */
	SIM_IDS_AT_ONCE,   /* or whatever it does; */
	SIM_IDS_COUNTED,   /* or since engines count from 1, at each start */
};

struct sim_config {
	uint64_t seed;
	uint32_t layers, top_k, experts, rows_per_record, max_rows;
	uint32_t stages, shards, replicas; /* pipeline, sequence, data parallel */
	bool copies, draft_channel, disaggregated;
	uint32_t key_kind, block_tokens, blocks, batch, chunk;
	uint32_t requests, drafts, lag;
	bool keep_cache; /* over new weights */
	bool salted;     /* hashes that are told are others under new weights */
	bool in_place;   /* new weights run all tokens again, in the same attempt */
	bool in_flight;  /* hashes: or fill the rest of a block that was begun under others */
	bool misses;     /* hashes: tells which blocks it has none of */
	bool apart;      /* hashes: whoever runs a block comes to other routes */
	bool device_rows;
	bool rewinds;     /* throws away what attempts before it had kept, too */
	bool prompt_once; /* attempts do not count what was kept of those before in their prompts */
	uint32_t min_ends;
	enum r3ring_row_policy policy;
	enum sim_ids ids;
	uint32_t names; /* that are used again */
	bool untold;    /* later attempts do not tell which was their request's first */
	/* in a thousand steps or requests */
	uint32_t preempt, retract, weights, abort, external, copy, conflict, bad, discard;
	uint32_t abandon; /* of those that were preempted */
	/* faults, in a thousand records or steps */
	uint32_t gap, dropped, unheard, partial, never_late, engine_dies, daemon_dies;
	bool late_reader;
	bool real;          /* a real daemon, which loses what it cannot keep */
	uint32_t map_spans; /* spans of one record */
	uint32_t skew;      /* records that ranks are apart */
	uint32_t keyframe_every;
	uint64_t max_bytes, max_keys;
	uint32_t late_steps;
};

void sim_config_make(struct sim_config *config, uint64_t seed);
/* No record is lost, and none is told to be. */
bool sim_config_is_lossless(const struct sim_config *config);

/* ---- truth -------------------------------------------------------------- */

/* One pass over one token. */
struct sim_pass {
	uint64_t weights;
	uint64_t history; /* of all tokens up to and with the one that is consumed */
	uint64_t run;     /* what else may change numbers: who ran it, which time */
};

struct sim_row {
	struct sim_pass pass;
	const struct sim_row *former; /* another pass of the attempt over the same token */
	struct sim_step *step;
	struct sim_life *life; /* NULL: padding */
	uint32_t number;       /* in the step */
	uint32_t position;
	bool counts; /* not a draft that was rejected */
	bool bad;    /* one layer's id is no expert */
};

uint16_t sim_route(const struct sim_config *config, const struct sim_pass *pass, uint32_t layer,
		   uint32_t k);
/* Whether an id of this cell is none, whatever the route is. */
bool sim_row_is_bad(const struct sim_config *config, const struct sim_row *row, uint32_t layer);
/* The ids that the engine hands to capture. */
void sim_row_ids(const struct sim_config *config, const struct sim_row *row, uint32_t layer,
		 uint16_t *ids);

/* ---- requests ----------------------------------------------------------- */

/* How a position of a life came to its KV. */
struct sim_fill {
	const struct sim_row *pass;  /* the one that counts; NULL with `external` */
	const struct sim_row *again; /* the last pass of the same attempt, if there is another */
	bool external;
};

/* What a channel's reader can know of a position. */
enum sim_known { SIM_NOTHING, SIM_ROW, SIM_EXTERNAL, SIM_UNKNOWN_KEY, SIM_NO_SPANS };

struct sim_seen {
	enum sim_known known;
	const struct sim_row *row;    /* SIM_ROW */
	const struct sim_row *newest; /* of other weights, in KV now; and whether it was run here */
	bool elsewhere;
	const struct sim_row *other; /* of the same weights, another pass */
	/* [eithers] or another pass under the same hash: the cache found one of them. */
	const struct sim_row *either[SIM_EITHER];
	uint32_t eithers;
	uint64_t weights; /* of the step that said so, where no row is known */
};

/* One attempt of a request at one engine. */
struct sim_life {
	struct sim_request *request;
	struct sim_engine *engine;
	uint16_t attempt;
	uint32_t epoch; /* of the engine */
	uint64_t handle;
	uint32_t prompt;
	uint32_t told_prompt; /* what its begin says */
	uint32_t kept;        /* tokens; unknown until its end */
	uint32_t told_kept;   /* what its end says */
	uint8_t reason;       /* of its end, 0: none */
	uint32_t computed;    /* tokens in KV */
	bool rerun;           /* runs its tokens again, under new weights */
	uint32_t untold;      /* steps of which the host does not know all yet */
	uint32_t past_stop;   /* steps since it had all its tokens */
	bool begun;           /* its first step was planned */
	uint32_t blocks;
	uint32_t block[SIM_POSITIONS];
	uint32_t labelled; /* blocks of these that the cache may find */
	struct sim_fill fill[SIM_POSITIONS];
	/* account.c, by channel: */
	bool named[SIM_CHANNELS]; /* now, or */
	bool waits[SIM_CHANNELS]; /* in the generation before, until a keyframe says whether now */
	bool heard_of[SIM_CHANNELS];
	bool open[SIM_CHANNELS];          /* something was lost behind its newest span, */
	bool torn[SIM_CHANNELS];          /* something of its time was lost, the last time behind */
	uint64_t torn_step[SIM_CHANNELS]; /* this step */
	/* New weights may have come in what was lost, under which it began anew. */
	bool renewed[SIM_CHANNELS];
	bool ever_named;
	bool told_begin[SIM_CHANNELS];
	uint64_t
		told_end; /* by the clock of the records that were fed: when its end was; 0: never */
	bool ended[SIM_CHANNELS]; /* as its reader heard, */
	bool over[SIM_CHANNELS];  /* for good */
	bool end_heard;           /* by a reader that knew of it, */
	bool over_heard;          /* and that it was no preemption */
	uint32_t keyframe[SIM_CHANNELS];
	struct sim_seen *seen[SIM_CHANNELS]; /* [SIM_POSITIONS] */
};

struct sim_request {
	uint32_t number;
	uint32_t conversation, turns; /* its session's first request, and which turn this is */
	char name[24];                /* here, and what it is called where it is told of: */
	char id[24], session[24], turn[16];
	uint32_t prompt, target, length;
	uint32_t attempts;
	bool done;
	bool given_up; /* while it waited: for all that is told it lives on */
	struct sim_request *next_turn;
	uint64_t history[SIM_POSITIONS];
	uint32_t lives;
	struct sim_life *life[SIM_ATTEMPTS];
	uint32_t given; /* how often it came out, */
	bool called;    /* or another under its session's turn */
	/* account.c: by channel, whether another of the id was heard of that had not ended there, when it
	 * began; and whether one began before it had ended, and it was not begun again. */
	bool has_sibling[SIM_CHANNELS], left[SIM_CHANNELS], away[SIM_CHANNELS];
};

void sim_workload_make(struct sim *sim);
/* It is begun for the first time, and gets its text id. */
void sim_id_give(struct sim *sim, struct sim_engine *engine, struct sim_request *request);
bool sim_same_id(const struct sim_request *request, const struct sim_request *other);
/* What a request's next tokens are. */
void sim_sample(struct sim_request *request, uint32_t tokens, uint64_t salt);
struct sim_life *sim_life_begin(struct sim *sim, struct sim_engine *engine,
				struct sim_request *request);
/* The handle of the request's first life in the process of its engine. */
uint64_t sim_life_first(const struct sim_life *life);
enum sim_end_told { SIM_END_TOLD, SIM_END_VAGUE, SIM_END_UNTOLD }; /* VAGUE: but not its length */
void sim_life_end(struct sim *sim, struct sim_life *life, enum r3ring_end_reason reason,
		  uint32_t kept, enum sim_end_told told);
/* It is done, and its session goes on. */
void sim_request_over(struct sim *sim, struct sim_request *request);
/* Where a request goes when it arrives or was put back. */
void sim_enqueue(struct sim *sim, struct sim_engine *engine, struct sim_request *request);

/* ---- KV ----------------------------------------------------------------- */

struct sim_block {
	uint32_t refs;
	uint64_t content; /* history at its end, 0: not to be found */
	uint64_t salt;    /* of its hash: the weights when it was told */
	uint64_t used;
	const struct sim_row *row[SIM_BLOCK_TOKENS]; /* NULL: loaded from elsewhere */
};

/* A block for the life, at its end; false when none is free. */
bool sim_block_take(struct sim *sim, struct sim_life *life);
void sim_blocks_release(struct sim_life *life);
uint32_t sim_blocks_free(const struct sim *sim, const struct sim_engine *engine);
/* Takes over cached blocks of the life's prompt; returns the tokens. */
uint32_t sim_cache_match(struct sim *sim, struct sim_life *life);
/* What the host knows to be computed can be found: so many tokens. */
void sim_cache_label(const struct sim *sim, struct sim_life *life, uint32_t tokens);
void sim_cache_flush(struct sim_engine *engine);
uint64_t sim_block_key(const struct sim *sim, const struct sim_life *life, uint32_t block);
/* The hash of a block that the life is to fill, under the weights that there are. */
uint64_t sim_block_hash(const struct sim *sim, const struct sim_life *life, uint32_t block);
/* Whether there is a block of the hash, in the cache or with one that runs. */
bool sim_hash_is_held(const struct sim *sim, const struct sim_engine *engine, uint64_t hash);
/* Moves a cached block: from, to; false when there is none. */
bool sim_block_copy(struct sim *sim, struct sim_engine *engine, struct r3ring_key_pair *pair);

/* ---- steps -------------------------------------------------------------- */

struct sim_span {
	struct r3ring_span told; /* as it is; `accepted` and keys too */
	struct sim_life *life;
	uint32_t first_key;
	bool late; /* the host learns position or accepted count later */
};

/* What a channel's reader was given of a step. */
struct sim_told {
	bool announced, whole_map, late_map, ended;
	bool continues;       /* its generation, one before */
	uint32_t at, late_at; /* among what the reader heard: the step, and behind its late map */
	uint64_t generation;
	uint32_t spans;            /* a bit each that was said, and */
	uint32_t late_spans;       /* how many of those learned later, and */
	uint32_t late_said;        /* which; they count in `spans` too once all are there */
	uint64_t rows[SIM_LAYERS]; /* a bit each that came */
	uint8_t cause[SIM_LAYERS]; /* of layers that the end names */
};

struct sim_step {
	struct sim_step *next; /* of all */
	struct sim_engine *engine;
	uint32_t epoch;
	uint64_t number, weights;
	uint32_t rows, total;
	struct sim_row row[SIM_ROWS + 4]; /* padding too */
	uint32_t spans, keys;
	struct sim_span span[SIM_SPANS];
	uint64_t key[SIM_KEYS];
	bool late, positions_late;
	uint32_t late_spans; /* of requests with such a span */
	uint32_t due;        /* steps until the host learns the rest */
	struct sim_step *pending;
	struct sim_told *told[SIM_CHANNELS];
};

struct sim_map {
	struct r3ring_span span[SIM_SPANS];
	uint64_t key[SIM_KEYS];
	uint32_t spans, keys;
};

/* As the host knows it when the step begins. */
void sim_map_at_first(const struct sim *sim, const struct sim_step *step, struct sim_map *map);
/* As it learns later: all spans of the requests of which something is late. */
void sim_map_later(const struct sim_step *step, struct sim_map *map);

/* One step of the engine; false when it had nothing to do. */
bool sim_engine_step(struct sim *sim, struct sim_engine *engine);
/* How many of so many draft rows are accepted, the first one always. */
uint32_t sim_drafts_accept(struct sim *sim, uint32_t rows);
/* A step of which the host learns something later. */
void sim_late_note(struct sim *sim, struct sim_step *step);
/* Tells what the host has learned meanwhile; of @life: all there is, before it ends. */
void sim_late_tell(struct sim *sim, struct sim_engine *engine, const struct sim_life *life);
void sim_events(struct sim *sim, struct sim_engine *engine);
/* Behind a step, of which not all ranks may have told all. */
void sim_engine_die(struct sim *sim, struct sim_engine *engine);
void sim_life_put_back(struct sim *sim, struct sim_life *life);

/* ---- engines and channels ----------------------------------------------- */

struct sim_engine {
	uint32_t index;
	bool prefill_only, decode_only;
	const char *instance;
	uint32_t first_channel, channels;
	bool dying;
	uint32_t epoch; /* of its process: handles and steps begin anew in each */
	uint64_t handles, steps, weights, clock, flushes;
	uint32_t ids; /* counted since its start */
	struct sim_block block[SIM_BLOCKS];
	uint32_t running;
	struct sim_life *run[SIM_BATCH];
	uint32_t waiting;
	struct sim_request *wait[SIM_REQUESTS];
	struct sim_step *pending; /* late maps, oldest first */
};

struct sim_queued;
struct sim_heard;

struct sim_channel {
	uint32_t index, rank;
	char name[64];
	struct sim_engine *engine;
	uint32_t stage, shard;
	bool copy, draft;
	uint32_t first_layer, layers;
	/* records.c: */
	uint64_t seq, generation;
	uint16_t continues; /* as its schema says */
	uint32_t keyframe_in, losing, queued;
	bool lost, unseen; /* unseen: the reader is not there yet */
	struct sim_queued *queue, *queue_last;
	/* hear.c: */
	struct sim_heard *heard;
	uint32_t heard_count, heard_room;
	uint64_t heard_generation;
	uint32_t heard_epoch;
	bool schema_heard;    /* of this generation, */
	bool continues_heard; /* that it goes on from another */
	bool rank_heard;      /* a schema, ever, */
	bool loss_heard;      /* or that something was lost */
	uint64_t keyframe_seq;
	uint32_t keyframe_left, keyframe;
};

struct sim_figures {
	uint64_t requests, given, cells, valid, conflicts;
	uint64_t mixed; /* that came out, and are nobody's */
	uint64_t causes[R3RING_MISSING_CAUSES];
};

/* Where an engine's announcements go: records.c, or a real producer. */
struct sim_port {
	void (*open)(struct sim *sim, struct sim_engine *engine);
	void (*begin)(struct sim *sim, const struct sim_life *life);
	void (*end)(struct sim *sim, const struct sim_life *life);
	void (*step)(struct sim *sim, struct sim_step *step);
	void (*late)(struct sim *sim, struct sim_step *step);
	void (*copy)(struct sim *sim, struct sim_engine *engine, const struct r3ring_key_pair *pair,
		     uint32_t pairs);
	void (*between)(struct sim *sim, struct sim_engine *engine); /* two steps */
};

extern const struct sim_port sim_records;

/* A seed through a real daemon in its own runtime directory; returns the faults. */
uint32_t sim_run_real(uint64_t seed, bool trace, struct sim_figures *figures);

void sim_ranks_make(struct sim *sim);
/* The rows of a step that a channel runs: [*begin, *end), of these [*begin, *valid) tokens. */
void sim_rank_rows(const struct sim *sim, const struct sim_channel *channel,
		   const struct sim_step *step, uint32_t *begin, uint32_t *valid, uint32_t *end);
struct r3ring_coordinates sim_rank_coordinates(const struct sim *sim,
					       const struct sim_channel *channel);
struct r3ring_layer_entry sim_layer(uint32_t layer);

/* ---- records ------------------------------------------------------------ */

/* The next record of a channel, unless its reader loses it. */
void sim_put(struct sim *sim, struct sim_channel *channel, const struct r3ring_record *record,
	     uint16_t flags);
/* Gives the assembler what waits in queues; @all: everything. */
void sim_records_pump(struct sim *sim, bool all);
/* What it had not read yet when the engine died is gone, from some record on. */
void sim_records_cut(struct sim *sim, struct sim_channel *channel);
void sim_records_free(struct sim_channel *channel);

enum sim_fate { SIM_TOLD, SIM_DROPPED, SIM_UNHEARD };
/* What becomes of a step in a channel, and of a record. */
enum sim_fate sim_fault_step(struct sim *sim, const struct sim_channel *channel);
int32_t sim_fault_layer(struct sim *sim, const struct sim_channel *channel);
bool sim_fault_record(struct sim *sim, struct sim_channel *channel);

/* Feeds the assembler one record that a channel's reader got; notes it. */
void sim_feed(struct sim *sim, struct sim_channel *channel, const struct r3ring_view *view,
	      const struct r3ring_record *record);
void sim_gap(struct sim *sim, struct sim_channel *channel);

/* ---- what was delivered, what is known ---------------------------------- */

enum sim_heard_type {
	SIM_HEARD_GENERATION,
	SIM_HEARD_FIRST, /* the generation's first record */
	SIM_HEARD_KEYFRAME,
	SIM_HEARD_GAP,
	SIM_HEARD_BEGIN,
	SIM_HEARD_END,
	SIM_HEARD_STEP,
	SIM_HEARD_LOST_SPANS,
	SIM_HEARD_COPY,
};

struct sim_heard {
	enum sim_heard_type type;
	uint32_t keyframe; /* that a BEGIN belongs to, or that is whole */
	bool repeated;
	bool over;      /* of an END: the request is not to go on */
	bool continues; /* of a FIRST: the generation before */
	struct sim_life *life;
	struct sim_step *step;
	uint32_t pairs;
	struct r3ring_key_pair pair[2];
};

void sim_hear(struct sim *sim, struct sim_channel *channel, const struct r3ring_view *view,
	      const struct r3ring_record *record);
void sim_hear_gap(struct sim_channel *channel);

/* Fills `seen` of all lives from what was heard. */
void sim_account(struct sim *sim);
/* Whether a channel's reader has the cell of a row. */
bool sim_cell_told(const struct sim *sim, const struct sim_channel *channel,
		   const struct sim_row *row, uint32_t layer);

/* ---- what came out ------------------------------------------------------ */

struct sim_given {
	struct sim_given *next;
	struct sim_request *request;
	struct r3ring_assembled_info info; /* its pointers are not valid any more, but `mixed_by` */
	bool flushed;
	uint64_t at; /* by the clock of the records that were fed */
	uint32_t
		silent; /* channels, a bit each, of which nobody had heard anything when it came out */
	uint16_t *ids;
	uint8_t *valid, *cause;
	uint64_t *weights;
	uint16_t *attempt;
};

/* Takes all that is ready. */
void sim_take(struct sim *sim, bool flushed);
/* Compares all; returns how many faults it printed. */
uint32_t sim_check(struct sim *sim);
void sim_given_free(struct sim_given *given);

/* ---- all together ------------------------------------------------------- */

struct sim {
	struct sim_config config;
	uint64_t chance, fault_chance, skew_chance; /* streams */
	const struct sim_port *port;
	void *port_ctx;
	uint32_t engines, channels, requests;
	struct sim_engine engine[SIM_ENGINES];
	struct sim_channel channel[SIM_CHANNELS];
	struct sim_request request[SIM_REQUESTS];
	struct sim_step *steps; /* newest first */
	struct r3ring_assembler *assembler;
	struct sim_given *given;
	uint32_t faults; /* found by checks in passing */
	uint32_t gaps, losses;
	uint64_t fed; /* records: their clock */
	bool trace;
	struct sim_figures figures;
};

/* Prints where tracing is asked for. */
void sim_trace(const struct sim *sim, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints, and counts a fault. */
void sim_fault(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes engines, channels, requests, the assembler. */
void sim_open(struct sim *sim, const struct sim_config *config, const struct sim_port *port,
	      void *port_ctx, bool trace);
/* Serves all requests. */
void sim_serve(struct sim *sim);
/* The rest out of the assembler, and the comparison; returns the faults. */
uint32_t sim_finish(struct sim *sim);
void sim_close(struct sim *sim);

/* A seed, records straight into the assembler. Adds to @figures; returns the faults. */
uint32_t sim_run(uint64_t seed, bool trace, struct sim_figures *figures);

#endif
