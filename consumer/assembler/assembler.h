/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler's parts:
 *
 *	feed.c      a record becomes an item of its channel's queue, or fills one
 *	steps.c     open steps: rows, layers, spans, what came of them
 *	settle.c    items in the ring's order
 *	order.c     whose a step's spans are, by the step before
 *	lives.c     requests begin, go on, end; keyframes
 *	tables.c    and are found, by id and by handle
 *	over.c      until they are over
 *	join.c      and whose parts are one request
 *	candidates.c  where an attempt does not tell whose it is
 *	gone.c      also of those that were let go
 *	runs.c      which starts of their engines they are of
 *	told.c      and whether they were told of by the same steps
 *	renew.c     where new weights may have made attempts begin anew, unseen
 *	room.c      what goes when more is held than the limit
 *	claims.c    rows that two spans of a step claim
 *	place.c     a step's rows get positions in requests and keys, by
 *	place_append.c place_row.c place_keys.c
 *	place_again.c  and others, when spans come later than that
 *	ends.c      how far attempts were run, by what all ranks know
 *	give.c      a request that is ready: its attempts, layers, length
 *	mixed.c     whether channels joined by a request's id ran requests of their own
 *	unseen.c    what attempts may have run in records that were lost
 *	choose.c cell.c assembled.c  which rows count, and their union
 *	look.c      a request that lives, as it stands
 *	compare.c   whether two passes agree
 *	rows.c row_pages.c fill.c requests.c keys.c    what they work on
 *
 * A channel's items are settled in the order in which they came. A step that waits for
 * late spans holds up those behind it, since a later step may find its keys; how many
 * wait is bounded.
 */
#ifndef CONSUMER_ASSEMBLER_ASSEMBLER_H
#define CONSUMER_ASSEMBLER_ASSEMBLER_H

#include <r3ring/assembler.h>

#include "consumer/assembler/keys.h"
#include "consumer/assembler/requests.h"
#include "consumer/assembler/rows.h"

enum item_type {
	ITEM_STEP,
	ITEM_RECORD, /* REQUEST, KEY_COPY or LOST, as it was */
	ITEM_READY,  /* the generation's first record */
	ITEM_KEYFRAME_END,
	ITEM_GAP,
	ITEM_GENERATION,
};

/* A row as it gets its position. */
struct placed_row {
	const struct part *part;
	const struct attempt *attempt;
	const struct row *row;
	const struct row
		*former; /* the row as a daemon's end cut it, when it is told again; or NULL */
	uint32_t position;
	bool cached; /* it was run for another position, or by another request */
};

/* Spans, and their keys in the same order; and for how many there is memory. */
struct map {
	struct r3ring_span *span;
	uint64_t *since; /* [spans] sequence of the record that told it */
	uint64_t *key;
	uint32_t spans, keys;
	uint32_t span_room, key_room;
	uint32_t kinds; /* all bits of the kinds that spans may be of: 0 where all are COMPUTED, */
	uint32_t flags; /* and all flags that one may have */
};

/* A step from STEP to STEP_END. */
struct step {
	struct r3ring_step_record head;
	uint64_t seq; /* of its STEP */
	struct row_pool *pool;
	uint32_t rows;      /* valid ones of this rank, from head.row_begin on */
	struct row **row;   /* [rows]; NULL when memory was out */
	struct tile *tiles; /* of the rows that have ids, in their order, */
	uint32_t tiled;     /* and how many those are: all, unless memory was out */
	uint32_t *came;     /* [layers] rows that came */
	uint64_t *parts;    /* [layers][part_words] a bit each record that came */
	uint32_t part_rows; /* rows of a record */
	uint32_t part_words;
	uint8_t *cause;     /* [layers] of a layer that is missing, 0 while none was told */
	void *tables;       /* these four, */
	size_t tables_room; /* bytes */
	uint64_t skipped;   /* LAYER records that its recorder left out, */
	uint32_t kept_first, kept_end; /* who kept these model layers; end 0: all */
	struct map map;
	int32_t *position; /* [rows] as the device had them, -1 unknown; NULL without ROWS */
	bool map_known;    /* false: spans could not be kept, or were lost */
	bool map_open;     /* more of them is to come right behind */
	struct map late;   /* of a replacement that is not whole yet */
	bool late_open;
	bool ended;
	bool over; /* its generation is: nothing more is said of it */
};

struct item {
	struct item *prev, *next;
	enum item_type type;
	uint64_t keyframe;           /* that it belongs to, 0 for none that was seen */
	bool abridged;               /* that one leaves out live requests */
	bool repeated;               /* by a keyframe, seen or not */
	bool carried;                /* or it may be what lives on from the generation before */
	struct r3ring_record record; /* ITEM_RECORD: its pointers lead into `payload` */
	void *payload;
	size_t payload_bytes;
	uint64_t bytes; /* as accounted */
	uint8_t cause;  /* of ITEM_GAP, 0: R3RING_MISSING_GAP */
	struct step step;
};

/* Whose a span of a step is. */
struct turn {
	uint64_t handle;
	struct part *part; /* NULL: nobody's, or one that is not live any more */
	struct attempt
		*attempt; /* of the part, that of its last turn; NULL where that is not known */
};

/* From one start of a channel's engine to the next, as far as is known. */
struct run {
	uint64_t first_ns, last_ns; /* that it was at work, by its host's clock; 0: not known */
	int64_t to_realtime_ns;
	uint8_t boot[16];
	bool bound; /* it began at `first_ns` at the latest, whatever of it was seen */
};

struct channel {
	char *name;
	struct memory *memory; /* of the assembler */
	uint32_t index;
	uint32_t instance; /* the first channel of the same one */
	uint64_t generation;
	uint64_t era; /* generations that were settled */
	bool draft;
	bool copy;        /* of a primary's rows */
	bool schema_seen; /* of this generation */
	bool ready;       /* its beginning or a whole keyframe was settled */
	bool lossy;       /* something was lost of it, or it was not seen from its beginning */
	bool closed;      /* its end was read, */
	bool cut;         /* and that of the one before was not */
	bool unfollowed;  /* who told of it is gone, and no other has told since */
	bool carrying;    /* only what lives on from the generation before may have come of it */
	bool steady;      /* no new weights came since the last whole keyframe, or the beginning */
	bool uncounted;   /* how many requests of an id it had in the newest run is not known */
	bool came_late;   /* requests were let go before it was heard of */
	bool abridged;    /* the newest keyframe leaves out live requests */
	struct r3ring_schema_record schema;
	struct row_pool *pool;  /* of the schema, among `pools` */
	struct row_pool *pools; /* all that were, */
	uint32_t schemas;       /* and how many */
	uint32_t ordered;
	struct turn *order;     /* [ordered] of the newest step's spans */
	struct part *parts;     /* live, by handle */
	struct part *suspended; /* of the generation before, until a keyframe names them */
	uint64_t *ended; /* [ENDED_MOST] hashes of ids that ended last, or NULL: see candidates.c */
	struct key_store keys;
	struct item *items;      /* waiting, oldest first */
	struct item *spare;      /* a step's that was settled, cleared; or NULL */
	uint64_t weight_version; /* of the newest step that was settled */
	uint64_t settled_step;   /* its number; 0: none of this generation */
	uint32_t waiting;        /* steps among the items */
	uint32_t runs;
	struct run *run;         /* [runs] */
	uint64_t run_generation; /* that the newest of them was last seen in, */
	uint64_t run_former;     /* and the one that its engine was in before, see former_of() */
	uint64_t keyframes;      /* begun */
	uint64_t keyframe_seq;
	uint32_t keyframe_left; /* records of it that are to come */
};

/*
 * Who looks on instead of taking requests: is told of requests as they begin, of rows as they get
 * their positions, and of requests as they go. Then positions do not keep their rows longer than keys may need
 * them, nothing is given out, and keys are forgotten before requests are evicted.
 */
struct onlooker {
	void *ctx;                                       /* NULL: nobody looks on */
	void (*begun)(void *ctx, struct request *first); /* of all that live of its text id */
	void (*placed)(void *ctx, const struct placed_row *placed);
	void (*over)(void *ctx, struct request *request, uint32_t flags);
};

#define SCHEMAS_MAX 64u /* that differ, of a channel */

struct r3ring_assembler {
	struct r3ring_assembler_options options;
	struct onlooker onlooker;
	struct r3ring_assembler_stats stats;
	struct channel **channel; /* [channels] */
	uint32_t channels;
	bool model_known;
	char model[R3RING_MODEL_NAME_MAX + 1];
	uint32_t experts;
	uint16_t top_k;
	struct request *requests; /* by id */
	struct request *all;
	struct gone *gone; /* by id: those that may go on, and were let go */
	uint64_t touches;  /* of them and their attempts so far: their clock */
	struct r3ring_assembled *given_first, *given_last;
	struct memory memory;
	uint64_t sorted_at;   /* by touches, when requests were last sorted by them */
	bool waits_for_times; /* some that are over, until it is known that their runs are one */
	bool let_go_early;    /* some, before all ranks had told of them */
	bool flushing;        /* nothing more comes */
};

/* steps.c */
/* @step: all zero, or one that was cleared; as it is on failure: -ENOMEM. */
int step_open(struct step *step, const struct channel *channel, uint64_t seq,
	      const struct r3ring_record *record);
/* Lets go of all but the memory that the next step may be opened in, */
void step_clear(struct step *step);
/* and of that. */
void step_release(struct step *step);
/* What it has, its rows aside; and what one takes that is opened, with its rows. */
uint64_t step_bytes(const struct step *step);
uint64_t step_bytes_to_open(const struct channel *channel, const struct r3ring_record *record);
void step_layer(struct step *step, const struct r3ring_record *record, uint32_t experts);
void step_skip(struct step *step, uint32_t first, uint32_t end);
void step_rows(struct step *step, const struct r3ring_record *record);
void step_spans(struct step *step, uint64_t seq, const struct r3ring_record *record);
/* Records were lost: what was to come right behind does not. */
void step_gap(struct step *step);
void step_end(struct step *step, const struct r3ring_record *record);
void step_lost(struct step *step, uint8_t cause);
/* Whether its daemon ended in it. */
bool step_was_cut(const struct step *step);
/* Decides of every cell whether it is valid, or why not. */
void step_seal(struct step *step);
/* Whether nothing of its spans is to be waited for. */
bool step_map_settled(const struct step *step);

/* settle.c: @all: also what still waits for spans. */
void channel_settle(struct r3ring_assembler *assembler, struct channel *channel, bool all);
/* Accounts for what it has now. */
void item_account(const struct channel *channel, struct item *item);
void item_free(struct item *item);

/* lives.c: requests begin and end */
int request_begin(struct r3ring_assembler *assembler, struct channel *channel,
		  const struct item *item);
void request_end(struct r3ring_assembler *assembler, struct channel *channel,
		 const struct r3ring_record *record);
void requests_keyframe(struct r3ring_assembler *assembler, struct channel *channel,
		       uint64_t keyframe);
void requests_suspend(struct r3ring_assembler *assembler, struct channel *channel);
/* All that live on a channel of which nobody tells any more. */
void requests_unfollowed(struct r3ring_assembler *assembler, struct channel *channel);
void requests_gap(struct channel *channel, uint8_t cause);
/* Something of its time was lost, behind the newest step that was settled. Attempts that begin
 * later, or have ended, lost nothing by it. */
void part_tear(struct part *part, const struct channel *channel, uint8_t cause);
void requests_flush(struct r3ring_assembler *assembler);

/* tables.c; both return 0 or -ENOMEM */
int request_enlist(struct r3ring_assembler *assembler, struct request *request);
int part_enlist(struct channel *channel, struct part *part);
void request_delist(struct r3ring_assembler *assembler, struct request *request);
/* Nothing happens to one that is not live. */
void part_delist(struct channel *channel, struct part *part);
struct part *part_of(const struct channel *channel, uint64_t handle);
/* The first that lives of those that have the text id; the others are its `same`. */
struct request *requests_of(const struct r3ring_assembler *assembler, const char *id, size_t len);

/* over.c */
/* Whether as many channels told of its end as know of it. */
bool all_have_told(const struct r3ring_assembler *assembler, const struct request *request);
void request_give_if_over(struct r3ring_assembler *assembler, struct request *request);
/* Those that waited for a channel that will not tell any more of what they waited for. */
void requests_look_again(struct r3ring_assembler *assembler);
/* Out of the tables, to the user. @flags: what is to be said beside what the request knows. */
void request_let_go(struct r3ring_assembler *assembler, struct request *request, uint32_t flags);

static inline uint32_t coordinate_size(struct r3ring_coordinate coordinate)
{
	return coordinate.size ? coordinate.size : 1;
}

/* runs.c */
enum likeness { ARE_OTHERS, MAY_BE_ONE, ARE_ONE };
/* The generation may be the first of another run. @from_its_beginning: nothing of it was lost. */
void runs_follow(struct channel *channel, bool from_its_beginning);
void runs_note_step(struct channel *channel, uint64_t host_ns);
/* Whether the part may be of the run that the channel, another rank of its engine, is in now. */
bool part_may_be_of_run(const struct r3ring_assembler *assembler, const struct part *part,
			const struct channel *channel);
/* Whether the order of their requests of an id is enough, if nothing was lost: neither's engine was started
 * again, whose former run may have taken some. */
bool channels_count(const struct channel *channel, const struct channel *other);
/* Whether two parts, of ranks of one engine, are of one request. */
enum likeness parts_compare(const struct r3ring_assembler *assembler, const struct part *part,
			    const struct part *other);

/* join.c */
/* Whether the channels are stages, shards or copies of one engine. */
bool channels_of_one_engine(const struct channel *channel, const struct channel *other);
/* Or the very same. */
static inline bool channels_share_engine(const struct channel *channel, const struct channel *other)
{
	return channel == other || channels_of_one_engine(channel, other);
}
struct part *part_on(const struct request *request, const struct channel *channel);
/* The newest request of the id that the channel has a part of; or NULL. */
struct request *request_known(const struct r3ring_assembler *assembler,
			      const struct channel *channel, const struct r3ring_record *record);
/* The request whose part the one may be that the channel begins behind @known; or NULL. */
struct request *request_to_join(const struct r3ring_assembler *assembler,
				const struct channel *channel, const struct r3ring_record *record,
				const struct request *known);
/* The generation that the channel's engine was in before this one; this one itself where it began
 * anew, or that is not known. */
uint64_t former_of(const struct channel *channel);
/* An end was told that was no preemption. */
bool part_ended_for_good(const struct part *part);
/* Whether what the channel begins is another request of the same text id after all. */
bool request_is_another(const struct request *request, const struct channel *channel,
			const struct item *item);
/* Whether the attempt, which the part is to have, tells by its first handle that it is the part's. */
bool part_is_told(const struct part *part, const struct channel *channel,
		  const struct r3ring_request_record *begin);
/* Notes who runs another request of the id in the place of the channel, which runs this one. */
void request_note_twins(const struct r3ring_assembler *assembler, struct request *request,
			const struct channel *channel);

/* candidates.c */
/* Whether a request of the one channel may go on at the other: of ranks of one instance that are not
 * two engines in one place. */
bool channels_may_share_requests(const struct channel *channel, const struct channel *other);
/* The numbers of its attempts that were heard of. */
uint16_t request_newest_number(const struct request *request);
uint16_t request_oldest_number(const struct request *request);
/* Whether no end of the request was told that says that no attempt follows. @channel: at this one, whose
 * engine's word is enough; NULL: at any. */
bool request_may_go_on(const struct r3ring_assembler *assembler, const struct request *request,
		       const struct channel *channel);
/* Whether an end of a request of the id was told before, as far as that is remembered. */
bool ended_before(const struct channel *channel, const char *id);
void ended_note(struct channel *channel, const char *id);
/* Something was begun of the request: it, or others of its id, may have attempts that are another's. */
void requests_doubt(const struct r3ring_assembler *assembler, struct request *begun);

static inline bool generation_goes_on(const struct channel *channel)
{
	return former_of(channel) != channel->generation;
}

/* renew.c: before the step is settled */
void channel_follow_weights(struct channel *channel, const struct step *step);

/* room.c */
void requests_make_room(struct r3ring_assembler *assembler);

/* order.c: makes the channel's order that of the step's spans; 0 or -ENOMEM: it is as it was. */
int order_follow(struct channel *channel, const struct map *map);
/* The part is not asked any more. */
void order_leave(struct channel *channel, const struct part *part);

/* claims.c: of a row that several spans claim it is not known whose it is: missing, conflict. */
void step_claims(struct step *step);
/* Likewise of rows that other requests got when the step was settled, where spans that came later
 * claim them. */
void step_claims_again(const struct channel *channel, const struct step *step);

/* place.c */
void step_place(struct r3ring_assembler *assembler, struct channel *channel, struct step *step);

/* place_keys.c */
void keys_copy(struct channel *channel, const struct r3ring_record *record,
	       uint64_t weight_version);

/* Whether @row is one of a step that was settled; its number among all rows of the step. */
static inline uint32_t row_number(const struct row *row)
{
	return row_tile(row)->number + row->index;
}

static inline bool row_is_of(const struct row *row, const struct step *step, uint64_t generation)
{
	const struct tile *tile = row_tile(row);

	return tile->step == step->head.step && tile->generation == generation &&
	       tile->pool == step->pool && row_number(row) < step->rows;
}

/* place_again.c: spans that replace those of a step that was settled already */
void spans_place_again(struct r3ring_assembler *assembler, struct channel *channel,
		       const struct r3ring_record *record);

/* mixed.c: whether two of the channels that were joined, @by, cannot have run one request by what
 * they say of it; the first two that are found. */
bool strangers_in(const struct r3ring_assembler *assembler, const struct request *request,
		  uint32_t by[2]);

/* ends.c */
/* How much the ranks of the part's engine told to be kept of the attempt; unknown where
 * none did. Another engine (one that only prefills) ends it at a length of its own. */
uint32_t kept_by_engine(const struct r3ring_assembler *assembler, const struct part *part,
			uint16_t number);
/* Behind the last row of the attempt that counts on the part's engine, when another one ran it too,
 * or a later one; else, or when it cannot be known, R3RING_UNKNOWN_U32. */
uint32_t end_on_engine(const struct r3ring_assembler *assembler, const struct part *part,
		       uint16_t number);
/* Takes back what one rank does not know not to have been run. */
void request_trim(const struct r3ring_assembler *assembler, const struct request *request);

/* give.c: makes an assembled request of it and frees what is not needed any more. */
void request_give(struct r3ring_assembler *assembler, struct request *request, uint32_t flags);

#endif
