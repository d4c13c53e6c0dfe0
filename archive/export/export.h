/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes out of an archive, in the form that a trainer takes.
 *
 *	open -> { feed } ... -> finish -> close
 *
 * Requests are written as they are assembled, so memory does not grow with the archive.
 * The output appears under its name when it is whole and on the disk, or not at all.
 */
#ifndef ARCHIVE_EXPORT_EXPORT_H
#define ARCHIVE_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/assembler.h>
#include <r3ring/error.h>

#include "archive/ranks.h"
#include "archive/reader.h"
#include "consumer/channel_losses.h"

struct exporter;

enum export_dtype {
	EXPORT_DTYPE_DEFAULT = 0, /* the format's */
	EXPORT_U8,
	EXPORT_I8,
	EXPORT_U16,
	EXPORT_I16,
	EXPORT_I32,
	EXPORT_I64,
	EXPORT_DTYPES,
};

enum export_fill {
	EXPORT_FILL_DEFAULT = 0, /* missing: error; pad: the format's */
	EXPORT_FILL_ERROR,       /* missing only */
	EXPORT_FILL_MINUS_ONE,   /* 0xFFFF as u16 */
	EXPORT_FILL_ZEROS,
	EXPORT_FILL_ARANGE, /* 0, 1, ... top_k - 1: distinct experts */
	EXPORT_FILLS,
};

enum export_rows {
	EXPORT_ROWS_DEFAULT = 0, /* the format's */
	EXPORT_ROWS_MINUS_ONE,   /* none for the last token, which need not have been fed back */
	EXPORT_ROWS_FULL,
	EXPORT_ROWS,
};

enum export_layers {
	EXPORT_LAYERS_DEFAULT = 0, /* the format's */
	EXPORT_LAYERS_MOE,         /* those that route */
	EXPORT_LAYERS_ALL,         /* of the model, dense ones padded */
	EXPORT_LAYERS,
};

/* Requests that are left out unless they are asked for. */
enum export_include {
	EXPORT_INCLUDE_UNFINISHED = 1u << 0, /* no end was seen */
	EXPORT_INCLUDE_ABORTED = 1u << 1,
	EXPORT_INCLUDE_GUESSED = 1u << 2, /* nobody said how many tokens were kept */
	EXPORT_INCLUDE_DAMAGED = 1u << 3, /* what can be read of a damaged archive */
};

/* Names as on command lines; "" for a value that has none. */
const char *export_dtype_name(enum export_dtype dtype);
const char *export_fill_name(enum export_fill fill);
const char *export_rows_name(enum export_rows rows);
const char *export_layers_name(enum export_layers layers);

/* The name of the @index-th format and what it is for, NULL beyond the last. */
const char *export_format_name(uint32_t index, const char **summary);

struct export_options {
	const char *format;
	const char *out; /* path; what is there is replaced, unless it is a FIFO; "-": stdout */
	const char *const *request; /* [requests] text ids, or names in the output; none: all */
	uint32_t requests;
	const char *instance; /* NULL: all */
	uint64_t since_ns;    /* of requests that ended in [since, until), CLOCK_REALTIME */
	uint64_t until_ns;    /* 0: no limit */
	int32_t layer_first, layer_end;        /* model layer numbers; layer_end 0: all */
	uint32_t position_first, position_end; /* position_end 0: all */
	enum export_dtype dtype;
	enum export_fill missing; /* what was lost */
	enum export_fill pad;     /* where nothing can be: dense layers, and the last token's row
				   * where it was never fed back */
	enum export_rows rows;
	enum export_layers layers;
	uint32_t model_layers; /* layers of the model, for EXPORT_LAYERS_ALL; 0: up to the
				* last that routes */
	bool mtp;              /* multi-token prediction layers too, behind the others */
	enum r3ring_row_policy policy;
	uint32_t include;   /* enum export_include */
	bool join;          /* a session's next turn supplies the last token's row */
	uint64_t max_bytes; /* of requests at work; 0: the assembler's default */
	uint32_t min_ends;  /* as in struct r3ring_assembler_options */
};

#define EXPORT_GAPS_TOLD 16u
#define EXPORT_IDS_TOLD 8u
#define EXPORT_ID_BYTES (R3RING_TEXT_ID_MAX + 24u) /* with "#2" and the like */

#define EXPORT_CHANNEL_BYTES (R3RING_INSTANCE_MAX + 18u)

/* A place at which the recorder lost records. */
struct export_gap {
	char channel[EXPORT_CHANNEL_BYTES];
	uint32_t cause; /* enum archive_gap_cause */
	uint64_t generation;
	uint64_t lost;                    /* records; 0: how many is not known */
	uint64_t step_before, step_after; /* 0: none was seen in that generation */
	uint64_t from_ns, to_ns;          /* CLOCK_REALTIME; from: 0 where the channel begins */
	struct archive_place place;
};

/* What the recorder removed (--rotate): all before the first segment that is there. */
struct export_rotated {
	uint64_t segments; /* 0: nothing; the rest is then of no meaning */
	uint64_t from_ns;  /* of the first block that is there, CLOCK_REALTIME */
};

/* What could not be read; the records are those of gaps, too. */
struct export_damage {
	uint64_t places, bytes, records;
	uint64_t unsized; /* places of which it is not known how many records they are */
	char first[R3RING_ERROR_TEXT]; /* in words; "" for none */
};

/* Requests that began and ended in one of these places left no trace. */
struct export_losses {
	struct export_damage damage;
	struct export_rotated rotated;
	struct archive_absent_ranks absent; /* of the engines that are exported */
	uint64_t gaps, records;
	uint64_t unsized;             /* gaps of which it is not known how many records they are */
	bool late;                    /* one of them: the recorder came late to a generation */
	struct lost_account channels; /* what the channels themselves lost */
	uint32_t told;
	struct export_gap gap[EXPORT_GAPS_TOLD]; /* [told], the first */
};

/* Some of the requests that something is said of: as the output names them, or would. */
struct export_told {
	uint32_t told;
	struct {
		char id[EXPORT_ID_BYTES];
		uint64_t time_ns;   /* of its end; 0: not all told of it */
	} request[EXPORT_IDS_TOLD]; /* [told], the first */
};

/* Some of those that are left out since each of two channels ran one of their id. */
struct export_mixed {
	uint32_t told;
	struct {
		char id[EXPORT_ID_BYTES];
		char by[2][EXPORT_CHANNEL_BYTES];
	} request[EXPORT_IDS_TOLD]; /* [told], the first */
};

struct export_summary {
	const char *format;
	const char *warning; /* of the format's: why its trainer may not want this fill */
	enum export_dtype dtype;
	enum export_fill missing, pad;
	enum export_rows rule;
	uint32_t layers, top_k, experts;
	uint32_t mtp_layers; /* of these, of multi-token prediction */
	uint64_t requests, rows, cells;
	uint64_t filled[R3RING_MISSING_CAUSES]; /* cells by cause, instead of what was lost */
	uint64_t padded;                        /* cells */
	uint64_t joined;                        /* rows that a next turn supplied */
	uint64_t turns_forgotten;               /* that waited for a next turn, for want of room */
	uint64_t unfinished, aborted, guessed, evicted; /* requests left out for it */
	uint64_t mixed;        /* and since they are of several that engines ran on their own, */
	uint64_t cut;          /* or have more positions than are put together */
	uint64_t not_asked;    /* requests of other ids or times */
	uint64_t other_times;  /* of these, for their time */
	uint64_t rowless;      /* requests written without a row */
	uint64_t repeated_ids; /* requests of an id that another had before: "ID#2", ... */
	uint32_t longest;      /* rows that a request has, whatever --positions says */
	struct export_told repeated, too_large, too_long;
	struct export_mixed mixed_told;
	struct export_losses losses;
	struct archive_kept kept; /* layers; end 0: none were seen to be left out */
	uint64_t unattributed;    /* rows of requests nobody announced */
	uint64_t conflicts;       /* cells */
	uint64_t keys_forgotten;  /* prefix cache keys, for want of room */
	uint64_t rows_beyond;     /* of those that were cut, left out */
	uint64_t bytes;           /* of the output */
};

/* Whether an output of this name is standard output. */
bool export_to_stdout(const char *out);

/* What is said of requests that are left out as unfinished. */
const char *export_unfinished_words(const struct export_options *options);

/* Cells of all causes. */
uint64_t export_summary_filled(const struct export_summary *summary);

/*
 * Checks the options and begins the output beside its final name.
 *
 * @options: what it points to must live until close.
 *
 * Returns 0, -EINVAL (an option, named with the remedy), -EACCES, -ENOENT, -ENOSPC or
 * another of open(2) (the output's directory), -ENOMEM. One thread.
 */
int export_open(struct exporter **exporter, const struct export_options *options,
		struct r3ring_error *err);

/*
 * Takes the archive's next entry, and writes the requests that it completes.
 *
 * Returns 0, -ENODATA (something is missing that was
 * not to be filled, or a stage of which nobody knows the layers), -ERANGE (an id, or a layer,
 * that the output has no room for), -EPROTO (another model), -EBADMSG (a record that does not decode), -EFBIG (beyond what the format
 * can hold), -ENOSPC, -EIO, -ENOMEM. After an error only close may be called.
 */
int export_feed(struct exporter *exporter, const struct archive_item *item,
		struct r3ring_error *err);

/*
 * No more entries come: writes the rest, and gives the output its name.
 *
 * @summary: may be NULL; untouched on failure.
 *
 * Returns as export_feed(), 0 for a whole output, -ENOENT (a request was asked for by its id
 * and is not there, or none at all is, or none that has a row asked for) and -ENOBUFS
 * (requests did not fit into `max_bytes`; they are named).
 */
int export_finish(struct exporter *exporter, struct export_summary *summary,
		  struct r3ring_error *err);

/* The archive's next entries could not be read: what was lost by all such places up to now. */
void export_note_damage(struct exporter *exporter, const struct export_damage *damage);

/* Before the first entry: what is missing in front of it is damage, no recorder removed it. */
void export_note_beginning_lost(struct exporter *exporter);

/* Without a successful finish nothing is left of the output. NULL is fine. */
void export_close(struct exporter *exporter);

/* For whoever feeds records without an archive: its assembler, and writes what that has ready
 * as if it had ended at @time_ns. Returns as export_feed(). */
struct r3ring_assembler *export_assembler(struct exporter *exporter);
int export_take(struct exporter *exporter, uint64_t time_ns, struct r3ring_error *err);

/* Called now and then with the bytes of the archive that were read, of how many. */
typedef void (*export_progress_fn)(void *ctx, uint64_t bytes, uint64_t of);

/*
 * Exports an archive: open to close in one.
 *
 * @progress: NULL: nobody is told.
 *
 * Returns as export_finish(), and as archive_reader_open() and archive_reader_next():
 * a damaged archive is not exported unless EXPORT_INCLUDE_DAMAGED says so; -EINVAL where the output is a file of the archive's own.
 */
int export_archive(const char *dir, const struct export_options *options,
		   export_progress_fn progress, void *ctx, struct export_summary *summary,
		   struct r3ring_error *err);

#endif
