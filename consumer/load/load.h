/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load's parts:
 *
 *	feed.c      a record goes to its channel: gaps, schema, losses
 *	view.c      a record is taken where it lies in the ring
 *	steps.c     open steps: layers are counted, or held
 *	again.c     a step that two generations tell is counted once
 *	rows.c      which rows of a step count
 *	ran.c       which positions of a request were run already
 *	watch.c     of the requests that live
 *	window.c    counted steps come into windows and go out of them
 *	board.c     what of it is shown to those that read
 *	pool.c      blocks that windows and what is shown of them share
 *	maps.c      EPLB maps
 *	snapshot.c  reading; merging channels
 *	in_force.c  reading: which EPLB map a load lies by
 *	figures.c   how even it is
 *
 * A layer is counted in a table; the sums of all steps with it on top go to a place that
 * nobody reads, which is shown when the step has ended. Where that is not possible yet (rows
 * that wait, a layer in several records, a step behind another), it goes to cells of the step.
 */
#ifndef CONSUMER_LOAD_LOAD_H
#define CONSUMER_LOAD_LOAD_H

#include <stdbool.h>

#include <uthash.h>

#include <r3ring/load.h>

#include "consumer/channel_losses.h"
#include "consumer/hold.h"
#include "consumer/load/cells.h"
#include "consumer/load/pool.h"

#define LOAD_BUCKETS 8u /* of a window: it moves on by an eighth */
#define LOAD_IMAGES 4u  /* places of a board */
#define LOAD_MAPS 4u    /* kept of a channel */
#define LOAD_BOARDS 8u  /* schemas of a channel that differ in their layers */
#define LOAD_WINDOWS 2u /* of steps, of time */
#define LOAD_NO_ROW UINT32_MAX
/* Of a request's positions that were run: beyond them the shortest is forgotten. */
#define LOAD_STRETCHES 8u

/* ---- positions that were run (ran.c) ----------------------------------------- */

struct load_run {
	uint32_t from, end;
};

/* What lies between them was run by nobody who is known: it came from a cache or from elsewhere,
 * or with records that were not read. */
struct load_ran {
	uint32_t stretches;
	struct load_run stretch[LOAD_STRETCHES]; /* in no order; none touches another */
};

void load_ran_add(struct load_ran *ran, uint32_t from, uint32_t end);
/* Positions from @kept on are as if they had not been run. */
void load_ran_cut(struct load_ran *ran, uint32_t kept);
bool load_ran_any(const struct load_ran *ran, uint64_t from, uint64_t end);

/* ---- requests, and what was run of them (watch.c) --------------------------- */

struct load_watched {
	uint64_t handle;
	char *id;            /* text id */
	struct load_ran ran; /* in this attempt or before */
	uint16_t attempt;    /* newest */
	bool cut;            /* `ran` has been cut to the tokens that were kept */
	UT_hash_handle by_handle, by_id;
};

struct load_watch {
	struct load_watched *by_handle; /* in the order of their beginnings */
	struct load_watched *by_id;
	uint32_t most;
	uint64_t forgotten;
};

/* A request begins (@repeated: says a keyframe) or ends. Returns 0 or -ENOMEM: it is not
 * watched. */
int load_watch_request(struct load_watch *watch, const struct r3ring_record *record, bool repeated);
/* What was run of the request already; of one that is not watched nothing. */
const struct load_ran *load_watch_ran(const struct load_watch *watch, uint64_t handle);
/* Positions [from, end) were run. */
void load_watch_add(struct load_watch *watch, uint64_t handle, uint32_t from, uint32_t end);
void load_watch_clear(struct load_watch *watch);

/* ---- open steps ----------------------------------------------------------- */

enum load_row {
	LOAD_ROW_COUNTS = 0,
	LOAD_ROW_WAITS, /* for what its span says */
	LOAD_ROW_REJECTED,
	LOAD_ROW_RECOMPUTED,
	LOAD_ROW_LOST, /* waited in vain */
	LOAD_ROW_STATES,
};

struct load_step {
	struct load_step *next; /* the step behind it, or another spare one */
	struct r3ring_step_record head;
	uint64_t generation;
	uint64_t ns;      /* when its end was published */
	uint32_t rows;    /* valid ones of this rank, from head.row_begin on */
	uint32_t waiting; /* rows among them */
	bool plain;       /* all rows count */
	bool first;       /* nothing was open when it began: its layers may be folded */
	bool warmup;
	bool ended;
	bool lost;  /* its LOST counts all of it, what came before as well: */
	bool cut;   /* its daemon ended in it: the next generation may tell it again */
	bool again; /* it does: what the step ran is known as run, and no recomputation */
	bool spans_follow;
	uint64_t lost_cells; /* rows times layers, where they are not among what was of no step */
	uint8_t *state;      /* [rows] enum load_row; NULL while plain */
	uint32_t *place;     /* [rows] in `held`; NULL when nothing is held */
	uint32_t held_rows;
	uint16_t *held;           /* [layers][held_rows][top_k] */
	uint8_t *held_came;       /* [layers][held_rows] */
	uint32_t *counts;         /* cells and rows */
	uint32_t *layer_rows;     /* [layers] rows counted: behind the cells */
	uint32_t *layer_came;     /* [layers] valid rows that came, counted or not */
	uint8_t *layer_lost;      /* [layers] cause that its end said, or 0 */
	uint8_t *layer_folded;    /* [layers] 1: it is in the board's next sums, not in `counts` */
	struct r3ring_span *span; /* [spans] of rows that wait */
	uint32_t spans;
	struct r3ring_load_accounts accounts;
};

/* Valid rows of a LAYER record, within its step. */
struct load_part {
	uint32_t layer;
	uint32_t first, rows;
	const uint16_t *ids;
};

/* ---- windows --------------------------------------------------------------- */

struct load_stretch { /* of steps */
	uint64_t steps;
	uint64_t from_step, to_step;
	uint64_t from_ns, to_ns;
	uint64_t ids; /* at most, in one cell */
	bool cut;     /* steps that belong to it have left for want of room */
	struct r3ring_load_accounts accounts;
};

struct load_bucket {
	uint32_t *start;  /* of the board's pool: its running counts when it began */
	uint64_t version; /* greater than that of all buckets of the board that began before */
	uint64_t number;  /* time window: which stretch of time */
	struct load_stretch stretch;
};

struct load_window {
	enum r3ring_load_over over;
	uint64_t length; /* of a bucket: steps, or ns */
	uint32_t most;   /* buckets */
	struct load_bucket bucket[LOAD_BUCKETS];
	uint32_t first, used; /* buckets, oldest first, in a ring */
	bool left;            /* one has, for room: */
	uint64_t left_number; /* the newest such one's */
};

/* ---- what is shown ----------------------------------------------------------- */

/* Running counts when a window's oldest bucket began. */
struct load_base {
	uint32_t *counts;            /* of the board's pool */
	uint64_t version;            /* its bucket's */
	struct load_stretch stretch; /* from there on */
};

/* A window's counts are the running ones less those of its base. */
struct load_image {
	uint32_t hold;
	uint64_t epoch;
	struct cells_sums sums; /* running: of the board's pool */
	struct load_base all[LOAD_WINDOWS];
	struct load_base since; /* of what ran with the newest epoch: not all, where it is newer */
	float weight;           /* of all steps in the average */
	struct load_stretch ever;
};

/* All that follows a schema's layer table. */
struct load_board {
	struct cells_shape shape;
	uint16_t top_k;
	struct r3ring_layer_entry *layer; /* [layers] */
	struct load_pool pool;
	struct cells_sums *now;  /* of all steps: an image's, or */
	struct cells_sums own;   /* where all images were being read */
	struct load_image *next; /* claimed: where the sums with the next step go */
	uint64_t versions;
	struct load_window window[LOAD_WINDOWS];
	struct load_bucket since; /* of all steps since the newest epoch began */
	float weight;
	struct load_stretch ever; /* all steps */
	uint64_t epoch;           /* of the newest step */
	struct load_image image[LOAD_IMAGES];
	uint32_t newest; /* image + 1; 0: none yet */
};

struct load_map {
	uint32_t hold;
	uint32_t former; /* read by others: it is of a generation before, whose epochs are not
			  * those of this one */
	struct r3ring_eplb_map *map; /* NULL: none */
};

struct load_channel {
	char *name;
	uint32_t index;
	bool draft;
	bool copy;
	bool schema_seen;
	bool gap_told;  /* in front of the next record */
	uint32_t ended; /* read by others: CLOSED, or told so, and not begun again */
	uint64_t generation, seq, units; /* of the last record */
	uint64_t unknown_step;           /* the newest of which too little is known to be counted */
	struct r3ring_schema_record schema;
	struct load_board *board[LOAD_BOARDS]; /* all that were */
	uint32_t boards;                       /* read by others */
	uint32_t board_at; /* the present one + 1; 0: none yet. Read by others */
	struct load_watch watch;
	uint64_t begun_step, begun_generation; /* the newest that began, dropped or not */
	struct load_step *open;                /* oldest first */
	uint32_t open_steps;
	struct load_step *spare;
	uint32_t spare_steps;
	uint64_t held_bytes;
	struct r3ring_load_accounts unseen; /* of no step: into the next */
	struct channel_losses losses;       /* that LOST records, or else totals, tell */
	struct load_map map[LOAD_MAPS];
	struct r3ring_eplb_map *coming; /* a map of which layers are still to come, */
	uint8_t *coming_layer;          /* [layers] those that came */
};

struct r3ring_load {
	struct r3ring_load_options options;
	struct r3ring_load_stats stats;
	float decay;
	uint32_t *any;     /* [CELLS_ANY_ID] ids of a layer; empty between two */
	void *copy;        /* of a record that is taken from its view */
	size_t copy_bytes; /* room in it */
	uint32_t channels; /* read by others */
	struct load_channel *channel[R3RING_LOAD_CHANNELS_MAX];
	bool model_known;
	char model[R3RING_MODEL_NAME_MAX + 1];
	uint32_t experts;
	uint16_t top_k;
};

/* feed.c */
/* r3ring_load_feed(), where the ids of a layer may be in the table. */
int load_take_record(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_view *view, const struct r3ring_record *record,
		     bool looked);

static inline struct load_board *load_board_now(const struct load_channel *channel)
{
	/* Pairs with the release in load_board_take(). */
	uint32_t at = r3ring_load_acquire_u32(&channel->board_at);

	return at ? channel->board[at - 1] : NULL;
}

/* steps.c */
int load_step_begin(struct r3ring_load *load, struct load_channel *channel,
		    const struct r3ring_record *record);
/*
 * Counts the ids of a LAYER record, that may change meanwhile, in the table. False when it must
 * be copied for that. What is then known to be intact goes to load_step_layer() as @looked.
 */
bool load_step_look(struct r3ring_load *load, const struct load_channel *channel,
		    const struct r3ring_record *record);
/* Counts a step that is none of those that can be; once. feed.c */
void load_note_unknown(struct r3ring_load *load, struct load_channel *channel, uint64_t step);
void load_step_layer(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_record *record, bool looked);
void load_step_end(struct load_channel *channel, const struct r3ring_record *record);
struct load_step *load_step_find(const struct load_channel *channel, uint64_t number);
void load_steps_end_all(struct load_channel *channel);
/* Counts what is ready into the windows; @all: also what still waits for spans. */
void load_steps_settle(struct r3ring_load *load, struct load_channel *channel, bool all);
/* Forgets an open step. */
void load_step_drop(struct load_channel *channel, struct load_step *step);
void load_steps_free(struct load_channel *channel);

/* again.c */
/* The step that waits for the next generation to tell it again; NULL: there is none. */
struct load_step *load_cut_step(const struct load_channel *channel);
/* The newest step may be one, whose end was not seen. */
void load_cut_open(struct load_channel *channel);
/* Nobody tells it again: it is as it is. */
void load_cut_stays(struct load_channel *channel);
/* Another generation begins, or says by its SCHEMA whether it goes on with the engine. */
void load_cut_passes(struct load_channel *channel);
void load_cut_schema(struct load_channel *channel, const struct r3ring_schema_record *schema);
/* A step begins that is the one, or another. */
void load_cut_step_begins(struct load_channel *channel, const struct r3ring_step_record *step);

/* rows.c */
/* Decides of each row of a step that begins. Returns 0 or -ENOMEM. */
int load_rows_decide(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		     const struct r3ring_span *spans, uint32_t count);
/* Positions that spans say were run, be their rows there or lost. */
void load_rows_ran(struct load_channel *channel, const struct r3ring_span *spans, uint32_t count);
/* Spans that came later: counts held rows that they speak of. */
void load_rows_learn(struct load_channel *channel, struct load_step *step,
		     const struct r3ring_record *record);
/* All of the step's map has come: a row that no span speaks of counts. */
void load_rows_map_ended(struct load_channel *channel, struct load_step *step);
/* What still waits is lost, but for rows that nobody claimed. */
void load_rows_give_up(struct load_channel *channel, struct load_step *step);
/* Counts or holds a record's ids. */
void load_rows_count(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		     const struct load_part *part);
/* Likewise of rows that all count, when their ids are in the table already. */
void load_rows_take(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		    const struct load_part *part);

/* window.c */
void load_window_open(struct load_window *window, enum r3ring_load_over over, uint64_t length);
/* A step that is about to be added to the board's running counts. */
void load_window_add(struct load_window *window, struct load_board *board,
		     const struct load_step *step);
/* What was left out or lost apart from any step that counts; only once there was one. */
void load_window_account(struct load_window *window, const struct r3ring_load_accounts *accounts);
/* The bucket that the window begins with, and what it has from there on. Only once a step
 * was added. */
const struct load_bucket *load_window_begin(const struct load_window *window,
					    struct load_stretch *stretch);
/* Of what is added from now on. */
void load_bucket_begin(struct load_bucket *bucket, struct load_board *board);
/* What a step, or a stretch behind @to, adds to it. */
struct load_stretch load_stretch_of(const struct load_board *board, const struct load_step *step);
void load_stretch_add(struct load_stretch *to, const struct load_stretch *from);
void load_accounts_add(struct r3ring_load_accounts *to, const struct r3ring_load_accounts *from);

/* board.c */
/* Makes the board of the channel's schema the present one. Returns 0, -ENOMEM or -EPROTO. */
int load_board_take(struct r3ring_load *load, struct load_channel *channel,
		    const struct r3ring_record *record);
/* Whether layers of a step that begins now, the only one, may be folded as they come. */
bool load_board_prepare(struct load_board *board);
/* Adds what the table has, @ids of them, to a layer of the next sums. */
void load_board_fold(const struct r3ring_load *load, struct load_board *board,
		     struct load_step *step, uint32_t layer, uint64_t ids);
/* The step's counts are zero then. */
void load_board_add(const struct r3ring_load *load, struct load_board *board,
		    struct load_step *step);
/* Into the accounts of what was counted already; true when there was any. */
bool load_board_account(struct load_board *board, const struct r3ring_load_accounts *accounts);
/* Another generation counts its epochs anew: no step that was counted is of any of them. */
void load_board_end_epoch(struct load_board *board);
void load_board_show(struct r3ring_load *load, struct load_board *board);
uint64_t load_board_bytes(const struct load_board *board);
void load_board_free(struct load_board *board);

/* What is asked for by who reads. */
struct load_asking {
	const struct r3ring_load *load;
	uint32_t first, end; /* channels */
	bool merged;
	enum r3ring_load_over over;
	uint64_t epoch;
};

/* snapshot.c */
/* Returns 0 or -EINVAL (no such channel). */
int load_asking_channels(struct load_asking *asking, uint32_t channel);
/* A channel's present board, where it has no more than one to be read; NULL: none. */
struct load_board *load_asking_board(const struct load_asking *asking, uint32_t channel);
/* Its newest image, which is the caller's to leave (hold_leave()); NULL: no step was counted yet. */
struct load_image *load_image_enter(struct load_board *board);
/* The layers of all that is to be read, in order, for the caller to free. Returns 0 or -ENOMEM. */
int load_asking_layers(const struct load_asking *asking, struct r3ring_layer_entry **layer,
		       uint32_t *layers);

/* maps.c */
int load_maps_take(struct r3ring_load *load, struct load_channel *channel,
		   const struct r3ring_record *record);
/* Those of a generation that has ended. */
void load_maps_end(struct load_channel *channel);
void load_maps_free(struct load_channel *channel);

#endif
