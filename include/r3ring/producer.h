/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer: what a serving engine calls to have its routing captured.
 *
 *   open -> bind -> { step_begin, capture x layers, step_end } ... -> close
 *
 * Nothing between open and close blocks, allocates or (while the daemon is
 * awake) enters the kernel. What cannot be captured is dropped, counted and
 * announced to the readers by cause; the model never waits.
 *
 * Threads: step calls (step_begin, capture, capture_rows, step_end) come from
 * one thread at a time. Request and other side calls (request_begin,
 * request_end, spans, eplb, key_copy) come from one thread at a time, which may
 * be another one. In a forked child every call returns -ESTALE.
 *
 * The producer given to a call, and the step and topk of step_begin and capture, must
 * not be NULL: the path of the model does not look.
 */
#ifndef R3RING_PRODUCER_H
#define R3RING_PRODUCER_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_producer;

/* A stream of the producer's device: a cudaStream_t, or a struct
 * r3ring_host_stream * (host_stream.h); NULL is the default stream (host: the
 * calling thread itself). */
typedef void *r3ring_stream;

struct r3ring_producer_options {
	size_t size;             /* sizeof(struct r3ring_producer_options) */
	const char *runtime_dir; /* NULL or "": $R3RING_RUNTIME_DIR and the default places */
	const char *instance;    /* letters, digits, '.', '_', '-', 1 to 48 */
	uint32_t rank;
	uint32_t draft;                          /* 1: channel of a draft model */
	const char *device;                      /* "auto" (or NULL), "host", "cuda" */
	const char *model;                       /* model name, 1 to 63 bytes */
	uint32_t experts;                        /* 1 to 65535, before EPLB */
	uint32_t top_k;                          /* 1 to 256, <= experts */
	uint32_t max_rows;                       /* rows of the largest step, 1 to 2^20 */
	uint32_t layer_count;                    /* 1 to 1024 */
	const struct r3ring_layer_entry *layers; /* [layer_count]; identity is (layer_id, kind) */
	struct r3ring_coordinates coordinates; /* equal ones, and other dp: engines of their own */
	uint32_t replica;                      /* 0: primary of its rows */
	uint32_t capture_rows;                 /* 1: room for r3ring_capture_rows() */
	uint64_t weight_version;
	uint64_t buffer_bytes; /* capture buffer; 0: four of the largest steps, see below */
	uint64_t queue_bytes;  /* submission queue, power of two; 0: 4 MiB */
	/* on the cuda device; elsewhere without effect: */
	const char *buffer_export; /* "ipc" handle, "fd", or "auto" (or NULL), see below */
	const char *order;    /* what the daemon's copies wait for: "bell" (or NULL), "event" */
	uint32_t side_stream; /* 1: captures run beside the caller's stream, see below */
	uint32_t reserved;    /* 0 */
	r3ring_log_fn log;    /* NULL: silent */
	void *log_ctx;
};

/*
 * The buffer holds what the daemon has not taken yet, of 256 steps at most. Where max_rows is
 * small, or the host loaded, four steps pass before the daemon gets a core, and steps are dropped
 * (and told, `buffer_full`): give then what the steps of some 100 ms take.
 */

/*
 * The cuda device: the buffer lies on the GPU that is current for the thread that
 * opens; ids, positions and token ids are pointers which that GPU can read, streams
 * are its cudaStream_t. r3ring_capture() may be recorded into a CUDA graph: at each
 * replay it captures the step that is begun then. A graph may outlive the producer.
 *
 * By default a capture runs on the caller's stream, so that the ids may be
 * overwritten by what is enqueued next. With side_stream it runs on a stream of low
 * priority beside the model's work, and r3ring_step_end() joins it: then the ids must
 * stay as they are until the stream has passed the end of the step. While a graph is
 * being recorded the caller's stream is used all the same.
 *
 * The buffer goes to the daemon as a CUDA IPC handle where both share PID and IPC
 * namespace, else, and where the GPU or the daemon does not do handles, as a file
 * descriptor; buffer_export forces either.
 *
 * order "event" makes the daemon wait for an interprocess event instead of trusting
 * bells alone; layers then come at the end of the step only, and buffer_export "fd"
 * is refused with it. See docs/ARCHITECTURE.md.
 *
 * Source: CUDA C++ Programming Guide, "Interprocess Communication", "CUDA Graphs".
 */

/*
 * Opens a channel: checks the sizes, makes the capture buffer and the pages
 * shared with the daemon, and connects. A new generation of the channel begins.
 *
 * @producer: receives the handle; untouched on failure.
 * @options:  copied; see above.
 * @err:      receives the reason in words; may be NULL.
 *
 * Returns 0, -EINVAL (@producer or @options is NULL, or an option, named),
 * -ECONNREFUSED (no daemon, or one that does not accept; the message names the places
 * tried), -ENAMETOOLONG (the runtime directory), -EBUSY (another live producer has the
 * channel), -EACCES (not this user's daemon), -ENOSPC (no room for the capture buffer, or
 * /dev/shm too small for the ring), -EMSGSIZE (the daemon's rings are too small for the
 * largest step: the message says what --ring-size it takes), -ETIMEDOUT (the daemon did
 * not answer in time), -EPIPE and -ESHUTDOWN (it died, or was ending: open again),
 * -EPROTO (other version), -EBADMSG (its answer is malformed), -EDQUOT (its limits),
 * -EMFILE (it, or this process, has no descriptors left), -ENODEV (device asked for is
 * not there), -ENOTSUP (buffer_export "ipc" where no handle is to be had), -EIO (device
 * or daemon met with a failure, in words), -ENOMEM, or another errno of making buffer,
 * pages or socket, or of the daemon's making the ring, with words.
 *
 * Opening again after r3ring_producer_close() works. Any thread. Blocks for the
 * handshake (10 s, and longer as long as the daemon says that a large ring grows).
 * Pairs with r3ring_producer_close().
 */
R3RING_API int r3ring_producer_open(struct r3ring_producer **producer,
				    const struct r3ring_producer_options *options,
				    struct r3ring_error *err);

/*
 * Ends an open step as PARTIAL, unbinds all sources, hands what is left to the
 * daemon and frees the handle; NULL is fine. Without a daemon, what none has
 * taken is lost; the log says how many steps. See `undelivered_steps`. Waits for the capture work already
 * enqueued (never for the daemon), so the stream of the newest step must still
 * exist. On the cuda device, where the buffer went by IPC handle, it also waits up to
 * 5 s until the daemon has let go of it; a buffer that it still holds stays allocated
 * until the process ends. No other call may be running.
 */
R3RING_API void r3ring_producer_close(struct r3ring_producer *producer);

/* ---- steps ------------------------------------------------------------ */

/*
 * One forward pass, its token map given as arrays by field so that a caller
 * from Python needs no loop. Arrays marked (opt) may be NULL for "all zero".
 */
struct r3ring_step {
	size_t size;         /* sizeof(struct r3ring_step) */
	uint32_t total_rows; /* rows of the whole step over all ranks, padding included */
	uint32_t row_begin;  /* this rank's rows: [row_begin, row_end) */
	uint32_t row_end;
	uint32_t valid_end;        /* rows before it are tokens, the rest is padding */
	uint32_t first_source_row; /* the step's row that row 0 of topk ids is */
	uint32_t flags;            /* enum r3ring_step_flags: WARMUP, GRAPH, SPANS_FOLLOW */
	uint32_t doorbell_layers;  /* ring after each n layers; 0: once, at step_end */
	uint64_t weight_version;
	uint64_t eplb_epoch;
	uint32_t spans;
	uint32_t keys;
	uint32_t tokens_per_key;
	uint32_t key_kind;             /* enum r3ring_key_kind */
	const uint64_t *span_request;  /* [spans] handles; one that was not given, or 0: nobody's */
	const uint32_t *span_position; /* [spans] */
	const uint32_t *span_row;      /* [spans] (opt) */
	const uint32_t *span_rows;     /* [spans] */
	const uint32_t *span_accepted; /* [spans] (opt: all unknown) */
	const uint32_t *span_keys;     /* [spans] (opt) how many; of which blocks: r3ring_span */
	const uint16_t *span_attempt;  /* [spans] (opt) */
	const uint8_t *span_kind;      /* [spans] (opt: all COMPUTED) */
	const uint8_t *span_flags;     /* [spans] (opt) */
	const uint64_t *key;           /* [keys], grouped by span; hashes: salted, see below */
};

/*
 * A block hash must name one content: its tokens and the weights that ran them. Engines' own name the
 * tokens alone, so tell them salted, mixed with the weight version that ran the block, or, where the
 * cache is flushed at new weights, with the one of the step. What is found under a hash that ran under
 * several weight versions is missing for readers (`unknown_key`): a block of each may be in KV.
 */

/*
 * Behind a step that a reader did not see it knows of no hash what is found under it (`unknown_key`): any
 * block may have been run in that step, and be in the cache. That one is run later says nothing of
 * that. Engines run blocks that they have: for the logits of a prompt, for its last token, or a draft
 * model's sake, behind a block that was evicted, or in two requests at a time.
 *
 * An engine that tells its misses is known again. A miss is a span of kind CACHED and 0 rows whose keys are
 * block hashes, of any of its request's blocks. It says that when the step was made up there was no
 * block of these hashes
 *	- in the cache, whoever might have found it, whole or in some layers only;
 *	- nor full with a request that runs, to come into the cache later;
 *	- nor one that a span of the same step has found.
 * So what is found under them by this step or later was filled by this step or later. Told best for all
 * blocks that a request is to run, in the step that asks the cache for them, or where a block
 * becomes full; several requests may miss one, and all run it. Where in doubt it is not told: that
 * costs cells and no truth.
 */

/*
 * A row is of one request: COMPUTED spans must not overlap. In the order of their rows, in which
 * batches lie, spans that do are refused; in another order readers find it, and such a row is
 * missing for all that claim it, as `conflict`. Rows of nobody's spans, and those that no span
 * speaks of, are load, but reach no request.
 */

/*
 * Begins a step: announces it with its token map, takes room in the capture
 * buffer, and enqueues on @stream the work that arms the captures. A step that
 * finds no room is dropped (its captures do nothing) and counted; that is not
 * an error of the caller's: see r3ring_producer_get_stats().
 *
 * A step still open on the same stream ends as PARTIAL.
 *
 * Returns the step's number (1, 2, ...), -EINVAL (rows or spans do not fit each
 * other, or overlap, or @stream is being captured into a graph), -EMSGSIZE (total_rows >
 * max_rows, or more spans than the queue takes: counted as lost `too_big`), -EIO
 * (the device refused the launch), -ESTALE: no step is open then. -EBUSY: a step
 * is open on another stream and stays so.
 */
R3RING_API int64_t r3ring_step_begin(struct r3ring_producer *producer,
				     const struct r3ring_step *step, r3ring_stream stream);

enum r3ring_id_type {
	R3RING_INT16 = 1,
	R3RING_UINT16 = 2,
	R3RING_INT32 = 3,
	R3RING_UINT32 = 4,
	R3RING_INT64 = 5,
};

/* A matrix of logical expert ids in device memory. */
struct r3ring_topk {
	const void *ids;     /* device pointer, aligned to the id type */
	uint32_t type;       /* enum r3ring_id_type */
	uint32_t rows;       /* rows of the matrix */
	uint32_t columns;    /* >= top_k; columns beyond top_k are ignored */
	uint32_t row_offset; /* row of the batch that row 0 is (micro-batches) */
	uint64_t row_stride; /* elements from one row to the next, >= columns */
};

/*
 * Enqueues the capture of one layer's ids on @stream. The ids must be the
 * logical ones: call it before the EPLB mapping. Outside of a step it captures
 * nothing. Row r of @topk is row first_source_row + row_offset + r of the step;
 * rows outside of the rank's range are passed over.
 *
 * @layer_id: model layer number (kinds moe and hash; for mtp layers use
 *            r3ring_layer_index() and r3ring_capture_layer()).
 *
 * Returns 0, -EINVAL (topk: type, columns, stride, pointer), -ENOENT (no such
 * layer in the schema), -EIO (the device refused the launch), -ESTALE. May be
 * recorded in a CUDA graph.
 */
R3RING_API int r3ring_capture(struct r3ring_producer *producer, int32_t layer_id,
			      const struct r3ring_topk *topk, r3ring_stream stream);

/* The same with the layer's place in the schema's table. */
R3RING_API int r3ring_capture_layer(struct r3ring_producer *producer, uint32_t layer_index,
				    const struct r3ring_topk *topk, r3ring_stream stream);

/* Place of a layer in the schema's table, or -ENOENT. Any thread. */
R3RING_API int32_t r3ring_layer_index(const struct r3ring_producer *producer, int32_t layer_id,
				      uint8_t kind);

/*
 * Enqueues a copy of the rows' positions and token ids as the device has them.
 *
 * @positions: int32[rows of this rank's step], device pointer, or NULL.
 * @token_ids: likewise; the users' content: leave NULL unless asked for.
 *
 * Returns 0, -EINVAL (both NULL), -ENOTSUP (opened without capture_rows), -EIO
 * (the device refused the launch), -ESTALE.
 */
R3RING_API int r3ring_capture_rows(struct r3ring_producer *producer, const int32_t *positions,
				   const int32_t *token_ids, r3ring_stream stream);

/*
 * Ends the step: enqueues the work that reports every layer's row count and
 * disarms the captures. Returns 0, -EINVAL (no step is open, or @stream is
 * being captured), -EBUSY (the step is open on another stream), -EIO (the device
 * refused the launch), -ESTALE.
 */
R3RING_API int r3ring_step_end(struct r3ring_producer *producer, r3ring_stream stream);

/* ---- requests and other announcements --------------------------------- */

struct r3ring_request {
	size_t size;
	const char *id;                      /* text id, 1 to R3RING_TEXT_ID_MAX bytes */
	const char *session, *turn, *sample; /* optional texts, NULL for none */
	/* Of a later attempt: with the tokens that were kept of those before, so that who lost their
	 * ends knows how far they came. The first prompt's length is taken too; then such a reader
	 * knows less (assembler.h). */
	uint32_t prompt_tokens;
	uint32_t attempt;
	/*
	 * Of a later attempt: the handle of the request's first one of this producer. 0: the producer looks
	 * for it, by the id: it is that of the one request of the id whose end was told as preempted, and
	 * which has not gone on; not where there are several, nor with `coordinates.dp.size` above 1, where a
	 * request may come from another rank. Who has no handle of it, and may have others of its id:
	 * R3RING_FIRST_UNKNOWN. Requests of one id of which it is not known may be left out by readers.
	 */
	int64_t first;
};

#define R3RING_FIRST_UNKNOWN (-1)

/*
 * What attempt, prompt_tokens and accepted_tokens mean together: a prompt of 10, preempted when 5
 * tokens were sampled (it ran positions 0 to 13), and begun again.
 *
 *	kept          its end   next begin   rows that count
 *	all           15        15           0-13 of attempt 0, from 14 on of attempt 1
 *	two of them   12        12           0-11 of attempt 0, from 12 on of attempt 1
 *	none          10        10           0-9 of attempt 0, from 10 on of attempt 1
 *
 * A later attempt may throw away what those before it had kept: an end, or a begin, that tells fewer
 * tokens says so. Who runs a request again under new weights had best begin a new attempt: of a later
 * pass within one attempt it is not known for one where the first was lost.
 */

/*
 * Announces a request. Never dropped: what does not fit the queue is kept in
 * this process (bounded by 64 MiB) and handed on later.
 *
 * Returns the handle (> 0) to be used in spans and for the end, or -EINVAL
 * (@request is NULL, its size, id, attempt or first), -ENAMETOOLONG (a text is too long; the message says which),
 * -ENOBUFS (the 64 MiB are full; nothing was announced), -ENOMEM, -ESTALE.
 */
R3RING_API int64_t r3ring_request_begin(struct r3ring_producer *producer,
					const struct r3ring_request *request);

/*
 * Announces its end, once: with it the handle is over, also where it was preempted. A later
 * attempt begins with r3ring_request_begin(), and has a handle of its own.
 *
 * @accepted_tokens: prompt plus returned tokens; rows at and beyond it do not
 *                   count, of this attempt or of one before it. R3RING_UNKNOWN_U32 when not known: of an
 *                   attempt that was preempted the next one's `prompt_tokens` tells it then, unless the
 *                   engine tells the first prompt's length in all: then what both ran is missing.
 *
 * Returns 0, -EINVAL (a handle that was never given, reason or attempt), -EALREADY (it has ended;
 * nothing is announced), -ENOBUFS (as r3ring_request_begin(); it has not ended), -ESTALE.
 */
R3RING_API int r3ring_request_end(struct r3ring_producer *producer, int64_t handle,
				  enum r3ring_end_reason reason, uint32_t attempt,
				  uint32_t accepted_tokens);

/*
 * Spans whose positions or accepted counts the host learned after @step_number
 * began: they replace that step's spans of the same requests. Only the span and
 * key fields of @spans are used.
 * Returns 0, -EINVAL (@spans is NULL, the step has not begun, spans that do not fit each
 * other or overlap, or more than the queue takes at once), -ENOBUFS (queue full: counted),
 * -ESTALE.
 */
R3RING_API int r3ring_step_spans(struct r3ring_producer *producer, int64_t step_number,
				 const struct r3ring_step *spans);

/*
 * Announces an EPLB map; it holds from @head->first_step on.
 * @map: uint16[layers][experts][replicas], R3RING_MISSING padded. Each expert has a place, and no
 *       place has two: as r3ring_eplb_map_check() has it.
 * Returns 0, -EINVAL (@head or @map is NULL, a field, or a place, named; layers count from
 * @head->first_layer there), -EMSGSIZE (larger than the queue), -ENOBUFS (queue full: counted),
 * -ESTALE.
 */
R3RING_API int r3ring_eplb(struct r3ring_producer *producer, const struct r3ring_eplb_record *head,
			   const uint16_t *map);

/*
 * Announces that the engine copied KV blocks or slots before the next step. The pairs are applied one
 * after the other, in their order: two that change places need a third.
 * Returns 0, -EINVAL (@pairs is NULL, a field, or more pairs than the queue takes at
 * once), -ENOBUFS (queue full: counted), -ESTALE.
 */
R3RING_API int r3ring_key_copy(struct r3ring_producer *producer, uint32_t key_kind,
			       uint32_t tokens_per_key, const struct r3ring_key_pair *pairs,
			       uint32_t count);

/* ---- state ------------------------------------------------------------ */

struct r3ring_producer_stats {
	uint64_t steps; /* step_begin calls that got a number */
	uint64_t rows;  /* their valid rows of this rank */
	uint64_t dropped_steps[R3RING_CAUSE_COUNT];
	uint64_t dropped_rows[R3RING_CAUSE_COUNT];
	uint64_t dropped_records; /* spans, maps and key copies refused with -ENOBUFS */
	uint64_t generation;      /* of the channel; 0 while disconnected */
	uint32_t connected;       /* 1 while a daemon serves the channel */
	uint32_t bound_layers;
	/*
	 * Announced steps that the daemon which went away has not taken, without the
	 * dropped ones; the next daemon takes them. Closed while disconnected they
	 * are lost, as daemon_restart. 0 while connected: what the daemon has not
	 * taken yet it takes also after the close.
	 */
	uint64_t undelivered_steps;
	uint64_t undelivered_rows; /* their valid rows of this rank */
};

/* Any thread. While disconnected it looks through the queue. */
R3RING_API void r3ring_producer_get_stats(const struct r3ring_producer *producer,
					  struct r3ring_producer_stats *stats);

/* The newest message in words; "" when nothing failed. For the thread that
 * made the failing call; valid until its next failing call. */
R3RING_API const char *r3ring_producer_error(const struct r3ring_producer *producer);

#ifdef __cplusplus
}
#endif

#endif
