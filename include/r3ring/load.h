/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expert load: how many tokens each expert of each layer had, over the newest steps, over
 * the newest time, and as an exponential average; for each channel of an instance and
 * for all of them together.
 *
 *	create -> channel x channels -> { feed } ...			one thread
 *	snapshot_create -> { read, info } ... -> snapshot_free		any other threads
 *
 * Counted are the ids of rows that the model ran for tokens that were kept, once each.
 * Left out, and counted by reason, are
 *
 *	warm-up		steps flagged so
 *	padding		rows behind a record's valid ones, of layers that came: that of
 *			a step that was dropped is in no account
 *	rejected	draft rows that were not accepted. Rows of a span whose accepted
 *			number is not known yet are held until it comes
 *	recomputed	rows of a request at positions that the channel had run for it
 *			already, in this or an earlier attempt, as far as their tokens were
 *			kept: what a preempted or retracted request is fed again, also under
 *			new weights. Positions that an attempt had from a cache or from
 *			elsewhere it did not run: where a later one runs them, they count.
 *			A first pass that was lost counts as run where its spans were told (a
 *			step that was dropped has them, most often): it was. What this reader
 *			never saw (another channel, before it came, records that are gone
 *			with their spans) it cannot tell, and counts; of stretches that lie
 *			apart a request's eight longest are remembered. A daemon's restart
 *			changes nothing where the engine goes on, but that in the step which
 *			two generations tell recomputed rows count
 *
 * and, without being counted, whole channels of draft models and of ranks that hold
 * copies of a primary's rows (replica != 0 in SCHEMA). Rows from a cache or from elsewhere
 * were not run. A row that no span speaks of counts: somebody ran it.
 *
 * Ids are logical. An id that is no expert is no load, and is counted apart.
 *
 * A step is counted when its end was seen, whole; a snapshot never has part of one. The step that was
 * open when its daemon ended is told by two generations (docs/ABI.md, CLOSED), and counted once: as
 * the one tells it that goes on with the engine; as far as it came, with what is lost of it, when
 * another generation begins, or a later step, or with r3ring_load_end() or r3ring_load_flush().
 */
#ifndef R3RING_LOAD_H
#define R3RING_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/assembler.h> /* enum r3ring_missing_cause */
#include <r3ring/eplb.h>
#include <r3ring/record.h>
#include <r3ring/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_load;

#define R3RING_LOAD_CHANNELS_MAX 1024u

struct r3ring_load_options {
	size_t size;             /* sizeof(struct r3ring_load_options) */
	uint64_t window_steps;   /* of the window of steps; 0: 256 */
	uint64_t window_ns;      /* of the window of time; 0: one second */
	uint32_t half_life;      /* steps after which one weighs half in the average; 0: 64 */
	uint32_t late_steps;     /* steps that one waits for what comes late; 0: 8 */
	uint64_t max_held_bytes; /* ids held of rows whose acceptance is not known, a channel;
				  * 0: 64 MiB. Beyond it they are lost, R3RING_MISSING_EVICTED */
	uint32_t max_requests;   /* watched for recomputation, a channel; 0: 2^16. Beyond it the
				  * oldest is forgotten, and counted. Each takes some
				  * 220 bytes and its id: 2^16 live ones 15 MiB */
};

/*
 * @load:    receives the handle; untouched on failure.
 * @options: copied; NULL for all zero.
 *
 * Returns 0, -EINVAL (@load is NULL, or an option, named), -ENOMEM. Pairs with r3ring_load_destroy(), before
 * which every thread that reads must have ended. The handle given to the other calls must not be
 * NULL.
 */
R3RING_API int r3ring_load_create(struct r3ring_load **load,
				  const struct r3ring_load_options *options,
				  struct r3ring_error *err);
R3RING_API void r3ring_load_destroy(struct r3ring_load *load);

/*
 * Announces a channel, "INSTANCE/RANK[.draft]". The feeding thread.
 * Returns its index (0, 1, ...; the same again for a known name), -EINVAL (no name of a
 * channel), -ENOSPC (R3RING_LOAD_CHANNELS_MAX), -ENOMEM.
 */
R3RING_API int r3ring_load_channel(struct r3ring_load *load, const char *name);

/*
 * Takes the next record of a channel: one that was read and checked, copied out of the
 * ring (r3ring_reader_read()) and decoded. All types may be given, in the channel's order.
 * Records that were not read, be they lost or skipped, are noticed by their sequence
 * numbers. One thread, the same for all channels; it never waits for those that read.
 *
 * Returns 0, -EINVAL (no such channel), -EPROTO (the channel is of another model, or
 * another number of experts or ids than those before; the record is refused), -ENOMEM
 * (what the record said is not counted, but for what was lost).
 */
R3RING_API int r3ring_load_feed(struct r3ring_load *load, uint32_t channel,
				const struct r3ring_view *view, const struct r3ring_record *record);

/*
 * Tells that the reader said of the channel that records were missed (-EOVERFLOW, -EBADMSG), in front
 * of the next record that is fed. What their numbers tell is noticed without it, and counts once;
 * of generations that were passed over whole (r3ring_reader_next()) nothing else tells: they are then
 * one of the accounts' `gaps`, with nothing in `lost`, since nobody knows how much it was. The feeding
 * thread.
 *
 * @channel: index.
 *
 * Returns 0 or -EINVAL (no such channel).
 */
R3RING_API int r3ring_load_gap(struct r3ring_load *load, uint32_t channel);

/*
 * Tells that a LAYER record of the channel came and was left out by who recorded it: its cells
 * are in the accounts as R3RING_MISSING_NOT_RECORDED, not as a gap. The feeding thread.
 *
 * @view: of the record; its data is not looked at.
 *
 * Returns 0 or -EINVAL (no such channel).
 */
R3RING_API int r3ring_load_skip(struct r3ring_load *load, uint32_t channel,
				const struct r3ring_view *view);

/*
 * Tells that a channel has ended, where no record does: a daemon that lives keeps the ring of an
 * engine that ended, or died, open for those who read late, and only its status says so. As its
 * CLOSED record does: the channel's open step is counted, and it is in no merged load, until a
 * SCHEMA is fed again, as a later generation begins with. The feeding thread, once it has fed all
 * that there was; told again it changes nothing.
 *
 * @channel: index.
 *
 * Returns 0 or -EINVAL (no such channel).
 */
R3RING_API int r3ring_load_end(struct r3ring_load *load, uint32_t channel);

/*
 * Tells that nothing more comes, as at an archive's end: steps whose end was seen, and that wait for
 * something later (spans, or the next generation, where their daemon ended), are counted without it.
 * The feeding thread, which may go on feeding all the same.
 */
R3RING_API void r3ring_load_flush(struct r3ring_load *load);

/*
 * Whether the view that was opened last is intact: r3ring_cursor_check(), r3ring_reader_check()
 * or r3ring_instance_check(), which are called once for it.
 */
typedef int (*r3ring_load_intact)(void *reader);

/*
 * Takes the record that a reader gave in place, and checks it: between r3ring_reader_next(),
 * which returned 1, and the next one, instead of r3ring_reader_check(). A layer's ids are
 * counted where they lie, which saves copying them; all else is as with r3ring_load_feed(), and
 * both may be used in turn.
 *
 *	static int intact(void *reader) { return r3ring_reader_check(reader); }
 *	...
 *	while (r3ring_reader_next(reader, &view) == 1)
 *		r3ring_load_feed_view(load, channel, &view, intact, reader);
 *
 * @view:   the record; not yet checked.
 * @intact: called once with @reader, when all that is needed of the record has been read. Unless
 *          it returns 0 nothing of the record is counted, and what is missing is noticed by the
 *          next record's number.
 *
 * Returns 0, what @intact returned (-EOVERFLOW: overwritten meanwhile), -EINVAL (no such
 * channel; @intact was not called), -ENOTSUP (a type of record that this version does not know),
 * -EBADMSG (it is no such record), or as r3ring_load_feed().
 */
R3RING_API int r3ring_load_feed_view(struct r3ring_load *load, uint32_t channel,
				     const struct r3ring_view *view, r3ring_load_intact intact,
				     void *reader);

struct r3ring_load_stats {
	uint64_t records;
	uint64_t steps;              /* counted, of all channels */
	uint64_t steps_unknown;      /* not counted: their beginning was not seen, or no schema
				      * in front of it */
	uint64_t steps_late;         /* counted without what they waited for */
	uint64_t requests_watched;   /* now */
	uint64_t requests_forgotten; /* for want of room */
	uint64_t snapshots;          /* made */
	uint64_t snapshots_put_off;  /* until the next step: all places were being read */
	uint64_t maps;               /* EPLB maps taken whole */
	uint64_t maps_refused;       /* with contradictions in them */
	uint64_t held_bytes;         /* now, of rows whose acceptance is not known */
	uint64_t bytes;              /* memory of windows, steps, snapshots and maps, now */
};

/* The feeding thread. */
R3RING_API void r3ring_load_get_stats(const struct r3ring_load *load,
				      struct r3ring_load_stats *stats);

/* ---- snapshots ----------------------------------------------------------- */

enum r3ring_load_over {
	R3RING_LOAD_STEPS = 0,   /* the newest options.window_steps steps at most: an eighth of
				  * them leaves at a time */
	R3RING_LOAD_TIME = 1,    /* the newest options.window_ns at most, likewise */
	R3RING_LOAD_AVERAGE = 2, /* a step's mean: each weighs half of the one half_life later */
	R3RING_LOAD_EVER = 3,    /* all steps, of ended channels and former generations too; counts
				  * modulo 2^32 a channel: of use as a difference to an earlier
				  * read. The accounts are whole */
};

/* Why a cell (a row's ids in a layer) is no load. */
enum r3ring_load_left_out {
	R3RING_LOAD_WARMUP = 0,
	R3RING_LOAD_PADDING,
	R3RING_LOAD_REJECTED,
	R3RING_LOAD_RECOMPUTED,
	R3RING_LOAD_REASONS,
};

/* Cells (rows times layers) of the window, those of the average too: of the window of
 * steps. What is of no step that counts (warm-up, what was lost) is with the step that was counted
 * behind it, or in front: also where that is the window's first, from_step. */
struct r3ring_load_accounts {
	uint64_t counted;
	uint64_t left_out[R3RING_LOAD_REASONS];
	uint64_t lost[R3RING_MISSING_CAUSES]; /* by enum r3ring_cause or r3ring_missing_cause;
					       * R3RING_MISSING_GAP: not read by who feeds,
					       * R3RING_MISSING_NOT_RECORDED: left out,
					       * R3RING_MISSING_SPANS: nobody ever said whether
					       * they were accepted. What the channel told in
					       * records that were not read is there from the next
					       * keyframe on, rows with all layers */
	uint64_t gaps; /* in the records' numbers, or told by r3ring_load_gap() */
};

struct r3ring_load_info {
	uint32_t channels; /* whose load is in it */
	uint32_t layers;
	uint32_t experts;
	uint16_t top_k;
	uint16_t window_cut; /* 1: the window lacks steps that it should hold: a channel's have
			      * more ids than 32 bits count. They were the oldest */
	const struct r3ring_layer_entry *layer; /* [layers], by kind and model layer number */
	const double *counts;                   /* [layers][experts] ids */
	const double *rows;                     /* [layers] rows that they are of */
	const double *no_expert;                /* [layers] ids that were no expert */
	uint64_t steps;                         /* in the window; merged: the most of a channel */
	uint64_t from_step, to_step;            /* merged: 0 but for one channel. The first and the
						 * newest counted, in their own generations: after
						 * an engine began anew the window has steps of
						 * both, and from_step may be beyond to_step */
	uint64_t from_ns, to_ns;                /* CLOCK_MONOTONIC: when the first and the newest
						 * step were published; merged: the newest of the
						 * channel that is furthest behind, of those that
						 * have not ended, or else of all */
	uint64_t age_ns;                        /* since to_ns, at the time of reading */
	uint64_t epoch; /* of the EPLB map that the newest step ran with, 0: none; merged: the
			 * newest of a channel, of those that have not ended, or else of all.
			 * r3ring_load_map_in_force() */
	struct r3ring_load_accounts accounts;
	uint64_t epoch_oldest; /* merged: the oldest of such a channel. Another one than `epoch`:
				* one of them is behind, or ran nothing since the map changed */
};

struct r3ring_load_snapshot;

/* Belongs to one thread at a time, which may read into it again and again. Returns 0,
 * -EINVAL (@snapshot is NULL) or -ENOMEM; pairs with r3ring_load_snapshot_free(), NULL is fine. */
R3RING_API int r3ring_load_snapshot_create(struct r3ring_load_snapshot **snapshot);
R3RING_API void r3ring_load_snapshot_free(struct r3ring_load_snapshot *snapshot);

/* As @channel: the sum over all channels that have load and have not ended. Layers of
 * pipeline stages stand beside one another, rows of shards and of data-parallel ranks are
 * added; each channel's part is of a step's end, not all of the same. */
#define R3RING_LOAD_MERGED UINT32_MAX

/* As @epoch: steps of whatever map. */
#define R3RING_LOAD_ANY_EPOCH UINT64_MAX

/*
 * Reads the newest snapshot. Never waits: not for the thread that feeds, which may go on,
 * nor for others that read. Any thread.
 *
 * @channel: index, or R3RING_LOAD_MERGED.
 * @over:    which window.
 * @epoch:   R3RING_LOAD_ANY_EPOCH; or that of an EPLB map: then only steps that ran with it,
 *           of channels whose newest step did.
 *
 * Returns 0, -EINVAL (no such channel or window, @snapshot is NULL; an epoch of the average or of
 * all), -ENODATA (no
 * step was counted yet, or none with that epoch), -ENOMEM. On failure the snapshot is empty:
 * of no channels.
 */
R3RING_API int r3ring_load_read(const struct r3ring_load *load, uint32_t channel,
				enum r3ring_load_over over, uint64_t epoch,
				struct r3ring_load_snapshot *snapshot);

/* Valid until the next read into it. */
R3RING_API const struct r3ring_load_info *r3ring_load_snapshot_info(
	const struct r3ring_load_snapshot *snapshot);

/*
 * The EPLB map of an epoch, as a copy that is the caller's (r3ring_eplb_map_free()): its
 * layers are those of the snapshot of that channel. For the load of physical experts and
 * GPUs give both to r3ring_eplb_project(). The newest four are kept. Any thread.
 * r3ring_load_map_in_force() is for what runs now.
 *
 * @channel: index, or R3RING_LOAD_MERGED: the layers of all channels that have the epoch.
 *
 * Returns 0, -EINVAL (no such channel), -ENOENT (no whole map of that epoch, or not of all
 * layers), -EBADMSG (merged: the channels' maps differ in their sizes), -ENOMEM.
 */
R3RING_API int r3ring_load_map(const struct r3ring_load *load, uint32_t channel, uint64_t epoch,
			       struct r3ring_eplb_map **map);

/*
 * The EPLB map that a load lies by, as r3ring_load_map(): that of @epoch, or where it is not known
 * whole the newest one before it that is. The ranks of an instance change maps with the same step,
 * but are read at different moments, and one that runs nothing says nothing: the map of a merged
 * load is the one that the newest step of any channel that has not ended ran with, for the visits
 * of all of them. Layers that this map is not known of (pipeline stages tell of their own) are by
 * the newest one before it of the same sizes that is. Experts in order are for where no map is
 * known at all. Any thread.
 *
 * @channel: index, or R3RING_LOAD_MERGED.
 * @epoch:   info->epoch of the load. Maps of later ones are known before a step runs with them.
 * @map:     receives it, the caller's (r3ring_eplb_map_free()); its `epoch` is the newest that is
 *           in it. Untouched on failure.
 *
 * Returns 0, -EINVAL (no such channel), -ENOENT (no map up to that epoch is known of all layers),
 * -ENOMEM.
 */
R3RING_API int r3ring_load_map_in_force(const struct r3ring_load *load, uint32_t channel,
					uint64_t epoch, struct r3ring_eplb_map **map);

/*
 * The epoch that r3ring_load_map_in_force() is asked with, as a read's info->epoch, without
 * reading: cheap enough for each record. Any thread.
 *
 * @channel: index, or R3RING_LOAD_MERGED.
 * @epoch:   receives it; untouched on failure.
 *
 * Returns 0, -EINVAL (no such channel, @epoch is NULL), -ENODATA (no step was counted yet).
 */
R3RING_API int r3ring_load_epoch(const struct r3ring_load *load, uint32_t channel, uint64_t *epoch);

/* ---- figures ------------------------------------------------------------- */

struct r3ring_load_figures {
	double sum;
	double mean;
	double max;
	double max_to_mean; /* 1: even */
	double gini;        /* 0: even; (n - 1) / n: one has all */
	double jain;        /* 1: even; 1 / n: one has all */
	double hottest;     /* share of the sum that the hottest few have */
	uint32_t dead;      /* how many have nothing */
	uint32_t most;      /* index of the largest */
};

/*
 * How even the values of one layer are: its experts, physical experts or GPUs. Figures of
 * different layers are not to be had from their sum: each layer waits for its own.
 *
 * Source: Gini: G = sum (2i - n - 1) x_i / (n sum x), x ascending, i from 1 (Sen, On
 * Economic Inequality, 1973). Jain: (sum x)^2 / (n sum x^2) (Jain, Chiu, Hawe, DEC-TR-301,
 * 1984).
 *
 * @values:  [count], none below 0.
 * @hottest: how many the hottest few are.
 *
 * Without any load all figures are 0 and all are dead. Returns 0, -EINVAL (count is 0), or
 * -ENOMEM. Any thread.
 */
R3RING_API int r3ring_load_measure(const double *values, uint32_t count, uint32_t hottest,
				   struct r3ring_load_figures *figures);

#ifdef __cplusplus
}
#endif

#endif
