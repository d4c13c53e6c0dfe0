/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what r3ring says about routing, as it lies in a ring's payloads.
 *
 * All numbers are little-endian and fixed width. A record is a fixed head
 * (struct r3ring_*_record below) and, for some types, arrays or texts behind
 * it. Encoders compute exact sizes; decoders check every count, offset and text
 * against the payload's length and never follow one that does not fit.
 *
 * Expert ids are u16; R3RING_MISSING (0xFFFF) is "missing", never an expert.
 */
#ifndef R3RING_RECORD_H
#define R3RING_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/abi.h>
#include <r3ring/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define R3RING_MISSING 0xFFFFu
#define R3RING_EXPERTS_MAX 65535u
#define R3RING_LAYERS_MAX 1024u
#define R3RING_TOP_K_MAX 256u
#define R3RING_ROWS_MAX (1u << 20)
#define R3RING_MODEL_NAME_MAX 63
#define R3RING_INSTANCE_MAX 48
#define R3RING_TEXT_ID_MAX 256 /* request, session, turn and sample texts, each */
#define R3RING_UNKNOWN_U32 0xFFFFFFFFu

enum r3ring_record_type {
	R3RING_SCHEMA = 1,
	R3RING_REQUEST = 2,
	R3RING_STEP = 3,
	R3RING_SPANS = 4,
	R3RING_ROWS = 5,
	R3RING_LAYER = 6, /* counts once STEP_END has come that does not list it */
	R3RING_STEP_END = 7,
	R3RING_LOST = 8,
	R3RING_EPLB = 9,
	R3RING_KEY_COPY = 10,
	R3RING_KEYFRAME = 11,
	R3RING_CLOSED = 12,
	R3RING_RECORD_TYPES = 13,
};

enum r3ring_cause {
	R3RING_CAUSE_NONE = 0,
	R3RING_CAUSE_BUFFER_FULL = 1,
	R3RING_CAUSE_RING_FULL = 2,
	R3RING_CAUSE_QUEUE_FULL = 3,
	R3RING_CAUSE_PRODUCER_DIED = 4,
	R3RING_CAUSE_DAEMON_RESTART = 5,
	R3RING_CAUSE_COPY_FAILED = 6,
	R3RING_CAUSE_TOO_BIG = 7,
	R3RING_CAUSE_CONFLICT = 8,
	/* Only as the reason of a missing layer in STEP_END: */
	R3RING_CAUSE_NOT_CAPTURED = 9,  /* no row of the layer came */
	R3RING_CAUSE_TOO_FEW_ROWS = 10, /* fewer rows than were run */
	R3RING_CAUSE_OVERLAP = 11,      /* more rows than were run */
	R3RING_CAUSE_COUNT = 12,
};

enum r3ring_layer_kind {
	R3RING_LAYER_MOE = 0,
	R3RING_LAYER_HASH = 1, /* routed by a table of token ids */
	R3RING_LAYER_MTP = 2,  /* multi-token prediction; numbers of its own */
};

enum r3ring_id_space {
	R3RING_IDS_LOGICAL = 0, /* before EPLB; the only one that is captured */
};

/* ---- SCHEMA ----------------------------------------------------------- */

/* Index and size of one parallel dimension of the rank; size 0 reads as 1. */
struct r3ring_coordinate {
	uint16_t index;
	uint16_t size;
};

struct r3ring_coordinates {
	struct r3ring_coordinate dp, tp, sp, pp, ep, cp;
};

struct r3ring_layer_entry {
	int32_t layer_id; /* the model's own layer number */
	uint8_t kind;     /* enum r3ring_layer_kind; part of the layer's identity */
	uint8_t bound;    /* 1 when a capture source is bound to it */
	uint16_t reserved;
};

struct r3ring_schema_record {
	uint32_t layers; /* entries of the layer table behind this head */
	uint32_t experts;
	uint16_t top_k;
	uint16_t id_space;
	uint32_t max_rows;        /* rows of the largest step */
	uint32_t rows_per_record; /* rows of a layer beyond this go to a further LAYER record */
	uint32_t clock;           /* clock of all *_ns fields: CLOCK_MONOTONIC (1) */
	struct r3ring_coordinates rank;
	uint16_t replica; /* 0: primary; else a copy of a primary's rows, left out of load */
	/* The engine goes on from where it was in the generation that is so many before this
	 * one: its steps from there on are told here. 0: it begins anew. */
	uint16_t continues;
	uint32_t captures_rows; /* 1 when ROWS records follow the steps */
	uint64_t weight_version;
	uint64_t generation;
	uint64_t bound_since_ns;
	int64_t realtime_offset_ns; /* add to a *_ns field for CLOCK_REALTIME */
	uint8_t uuid[16];
	uint8_t boot_id[16];
	char model[R3RING_MODEL_NAME_MAX + 1];
	/* struct r3ring_layer_entry[layers] */
};

/* ---- REQUEST ---------------------------------------------------------- */

enum r3ring_request_event {
	R3RING_REQUEST_BEGIN = 1,
	R3RING_REQUEST_END = 2,
};

enum r3ring_end_reason {
	R3RING_END_FINISHED = 1,
	R3RING_END_ABORTED = 2,
	R3RING_END_PREEMPTED = 3, /* it may begin again with the next attempt */
	R3RING_END_UNKNOWN = 4,   /* only a daemon says it: it lost sight of the engine, which may
				   * have run it to any end */
};

struct r3ring_request_record {
	uint64_t handle;
	uint32_t prompt_tokens;   /* BEGIN */
	uint32_t accepted_tokens; /* END: prompt plus tokens returned; UNKNOWN_U32 otherwise */
	uint16_t attempt;
	uint8_t event;  /* enum r3ring_request_event */
	uint8_t reason; /* enum r3ring_end_reason, 0 for BEGIN */
	uint16_t id_len, session_len, turn_len,
		sample_len; /* texts behind this head, in this order */
	/* BEGIN of a later attempt: its handle less that of the request's first attempt on this channel;
	 * 0: not known, as in what was recorded before there was such a field */
	uint32_t since_first;
};

/*
 * The handle of the request's first attempt on the channel that a BEGIN is of: all its attempts there have
 * the same, and no other request's has it, in one engine's life. 0: not known. Any thread.
 */
static inline uint64_t r3ring_request_first(const struct r3ring_request_record *begin)
{
	if (!begin->attempt)
		return begin->handle;
	return begin->since_first && begin->since_first < begin->handle
		       ? begin->handle - begin->since_first
		       : 0;
}

/* ---- STEP, SPANS ------------------------------------------------------ */

enum r3ring_step_flags {
	R3RING_STEP_WARMUP = 1u << 0,
	R3RING_STEP_GRAPH = 1u << 1,
	R3RING_STEP_SPANS_FOLLOW = 1u << 2,  /* SPANS records of this step follow */
	R3RING_STEP_DROPPED = 1u << 3,       /* no layer follows; LOST says why */
	R3RING_STEP_MAP_CONTINUED = 1u << 4, /* its map goes on in the SPANS records right behind */
};

enum r3ring_span_kind {
	R3RING_SPAN_COMPUTED = 0, /* rows run in this step */
	R3RING_SPAN_CACHED =
		1, /* served from a prefix cache: no rows here; of 0 positions: a miss */
	R3RING_SPAN_EXTERNAL = 2, /* KV from elsewhere: no routes are known */
};

enum r3ring_span_flags {
	R3RING_SPAN_DRAFT = 1u << 0, /* speculative rows; `accepted` of them count */
};

enum r3ring_key_kind {
	R3RING_KEYS_NONE = 0,
	R3RING_KEYS_BLOCK_HASH = 1,
	R3RING_KEYS_SLOT = 2,
};

/*
 * A key stands for a block of tokens_per_key positions that begins at a multiple of that.
 * Key j of a span covers the positions [b, b + tokens_per_key) of its request with
 * b = (position / tokens_per_key + j) * tokens_per_key, rounded down: its key 0 is of the
 * block that the span begins in, wherever in it.
 *
 * A miss, a CACHED span of 0 positions, says that the engine had no block of the hashes that are its
 * keys (r3ring/producer.h): of any blocks of its request, wherever the span begins.
 */
struct r3ring_span {
	uint64_t request;  /* handle */
	uint32_t position; /* absolute position of the first token */
	uint32_t row;      /* first row within the step (COMPUTED) */
	uint32_t rows;     /* COMPUTED: rows; otherwise: positions covered */
	uint32_t accepted; /* of a DRAFT span; UNKNOWN_U32 until known */
	uint32_t keys;     /* how many of the record's keys are this span's, in order */
	uint16_t attempt;
	uint8_t kind;  /* enum r3ring_span_kind */
	uint8_t flags; /* enum r3ring_span_flags */
};

/*
 * Row numbers are those of the whole step. A rank runs rows [row_begin,
 * row_end) of total_rows; of these the ones before valid_end are tokens, the
 * rest is padding.
 */
struct r3ring_step_record {
	uint64_t step;
	uint32_t total_rows;
	uint32_t row_begin;
	uint32_t row_end;
	uint32_t valid_end;
	uint32_t flags; /* enum r3ring_step_flags */
	uint32_t spans;
	uint32_t keys;
	uint32_t tokens_per_key;
	uint32_t key_kind; /* enum r3ring_key_kind */
	uint16_t cause;    /* DROPPED: enum r3ring_cause, as LOST will say; 0: not known here */
	uint16_t spans_unknown; /* DROPPED: likewise */
	uint64_t weight_version;
	uint64_t eplb_epoch;
	uint64_t host_ns; /* when the host began the step */
			  /* struct r3ring_span[spans], then uint64_t[keys] */
};

/* How many of the rank's rows are tokens. Any thread. */
static inline uint32_t r3ring_step_valid_rows(const struct r3ring_step_record *step)
{
	uint32_t end = step->valid_end < step->row_end ? step->valid_end : step->row_end;

	return end > step->row_begin ? end - step->row_begin : 0;
}

enum r3ring_spans_flags {
	R3RING_SPANS_MORE = 1u << 0, /* goes on with the map of the record before: STEP or SPANS */
	R3RING_SPANS_REPLACE = 1u << 1, /* learned later: replaces the spans of the same requests */
	R3RING_SPANS_CONTINUED = 1u << 2, /* the next SPANS record goes on with these */
};

struct r3ring_spans_record {
	uint64_t step;
	uint32_t spans;
	uint32_t keys;
	uint32_t tokens_per_key;
	uint32_t key_kind;
	uint32_t flags; /* enum r3ring_spans_flags */
	uint32_t reserved;
	/* struct r3ring_span[spans], then uint64_t[keys] */
};

/* ---- ROWS, LAYER ------------------------------------------------------ */

enum r3ring_rows_content {
	R3RING_ROWS_POSITIONS = 1u << 0,
	R3RING_ROWS_TOKEN_IDS = 1u << 1,
};

struct r3ring_rows_record {
	uint64_t step;
	uint32_t row;
	uint32_t rows;
	uint32_t content; /* enum r3ring_rows_content */
	uint32_t reserved;
	/* int32_t positions[rows] if any, then int32_t token_ids[rows] if any */
};

/* 64 bytes, so that the ids behind it keep the record's alignment. */
struct r3ring_layer_record {
	uint64_t step;
	int32_t layer_id;
	uint16_t layer_index; /* place in the schema's table */
	uint8_t kind;         /* enum r3ring_layer_kind */
	uint8_t reserved0;
	uint32_t row;          /* first row, numbered over the whole step */
	uint32_t rows;         /* rows in this record */
	uint32_t total_rows;   /* rows of the whole step, over all ranks */
	uint32_t valid_rows;   /* leading rows that are tokens; the rest is padding, all missing */
	uint32_t missing;      /* -1 ids of the whole layer's valid rows, as the device counted */
	uint32_t out_of_range; /* likewise ids >= experts; stored as R3RING_MISSING */
	uint16_t top_k;
	uint16_t reserved1;
	uint32_t reserved2;
	uint64_t reserved3[2];
	/* uint16_t ids[rows][top_k] */
};

/* ---- STEP_END, LOST --------------------------------------------------- */

enum r3ring_step_status {
	R3RING_STEP_COMPLETE = 1,
	R3RING_STEP_PARTIAL = 2,
};

/*
 * A layer that is listed did not come, or its LAYER records in this step are taken back:
 * where layers are told before the step's end (doorbell_layers), rows that are captured
 * twice are found out only then (cause `overlap`).
 */
struct r3ring_missing_layer {
	int32_t layer_id;
	uint8_t kind;
	uint8_t reserved;
	uint16_t cause;    /* enum r3ring_cause */
	uint32_t captured; /* rows that came */
	uint32_t expected; /* rows that were run */
};

struct r3ring_step_end_record {
	uint64_t step;
	uint32_t status;          /* enum r3ring_step_status */
	uint32_t missing;         /* entries behind this head */
	uint64_t host_begin_ns;   /* the host called step_begin */
	uint64_t device_begin_ns; /* the device ran begin; 0 where it has no clock of the host's */
	uint64_t device_end_ns;   /* the device ran end */
	uint64_t publish_ns;      /* the daemon published this record */
				  /* struct r3ring_missing_layer[missing] */
};

struct r3ring_lost_record {
	uint64_t from_step; /* 0, 0: steps unknown */
	uint64_t to_step;
	uint64_t steps;         /* how many */
	uint64_t rows;          /* valid rows of this rank in them */
	uint64_t layer_rows;    /* valid rows times layers */
	uint32_t cause;         /* enum r3ring_cause */
	uint32_t spans_unknown; /* 1: slot keys of these steps are not known either */
};

/* ---- EPLB, KEY_COPY --------------------------------------------------- */

struct r3ring_eplb_record {
	uint64_t epoch;
	uint64_t first_step;
	uint32_t first_layer; /* index into the schema's table */
	uint32_t layers;
	uint32_t experts;
	uint32_t replicas; /* columns of the map */
	uint32_t physical; /* physical experts of a layer, over all GPUs */
	uint32_t gpus;     /* physical expert p is on GPU p / (physical / gpus) */
			   /* uint16_t map[layers][experts][replicas], R3RING_MISSING padded */
};

struct r3ring_key_pair {
	uint64_t from, to;
};

struct r3ring_key_copy_record {
	uint64_t step; /* the copy happens before this step runs */
	uint32_t pairs;
	uint32_t tokens_per_key;
	uint32_t key_kind;
	uint32_t reserved;
	/* struct r3ring_key_pair[pairs] */
};

/* ---- KEYFRAME, CLOSED ------------------------------------------------- */

/* Running totals of the generation. */
struct r3ring_totals {
	uint64_t steps; /* steps announced by the producer, lost ones too */
	uint64_t steps_complete;
	uint64_t steps_partial;
	uint64_t rows; /* valid rows of this rank of which a layer came; LOST ones are not in it */
	uint64_t layer_records;
	uint64_t layer_rows; /* valid rows times layers delivered */
	uint64_t layers_missing;
	uint64_t ids_out_of_range;
	uint64_t ids_missing;
	uint64_t lost_steps[R3RING_CAUSE_COUNT];
	uint64_t lost_rows[R3RING_CAUSE_COUNT];
};

/* Begins a keyframe; the `records` records behind it are flagged REPEATED. */
struct r3ring_keyframe_record {
	uint64_t step; /* newest step announced before it */
	uint32_t records;
	uint32_t live_requests;
	struct r3ring_totals totals;
};

enum r3ring_closed_reason {
	R3RING_CLOSED_NEXT = 1,     /* a newer generation continues it */
	R3RING_CLOSED_SHUTDOWN = 2, /* the daemon ended in good order */
	R3RING_CLOSED_CRASHED = 3,  /* its daemon died; a later one says so */
};

struct r3ring_closed_record {
	uint32_t reason;
	/* 1: as far as is known its engine lived on: what that ran afterwards is told by the
	 * generation that continues this one, and else nobody knows it. CRASHED: the same. */
	uint32_t engine_lives;
	uint64_t next_generation; /* 0 when none */
	char next_name[128];      /* shm name of the next segment, "" when none */
};

/* ---- decoding --------------------------------------------------------- */

/*
 * A decoded record. The heads are private copies; pointers lead into the
 * payload that was given, so they live as long as that does, and what they
 * point to is as trustworthy as the payload (in a ring: until checked).
 */
struct r3ring_record {
	uint16_t type;
	union {
		struct {
			struct r3ring_schema_record head;
			const struct r3ring_layer_entry *layers;
		} schema;
		struct {
			struct r3ring_request_record head;
			const char *id, *session, *turn, *sample; /* not NUL-terminated */
		} request;
		struct {
			struct r3ring_step_record head;
			const struct r3ring_span *spans;
			const uint64_t *keys;
		} step;
		struct {
			struct r3ring_spans_record head;
			const struct r3ring_span *spans;
			const uint64_t *keys;
		} spans;
		struct {
			struct r3ring_rows_record head;
			const int32_t *positions; /* NULL when not there */
			const int32_t *token_ids; /* NULL when not there */
		} rows;
		struct {
			struct r3ring_layer_record head;
			const uint16_t *ids;
		} layer;
		struct {
			struct r3ring_step_end_record head;
			const struct r3ring_missing_layer *missing;
		} step_end;
		struct r3ring_lost_record lost;
		struct {
			struct r3ring_eplb_record head;
			const uint16_t *map;
		} eplb;
		struct {
			struct r3ring_key_copy_record head;
			const struct r3ring_key_pair *pairs;
		} key_copy;
		struct r3ring_keyframe_record keyframe;
		struct r3ring_closed_record closed;
	} u;
};

/*
 * Decodes and checks one payload.
 *
 * @record:  receives the result; untouched on failure.
 * @type:    record type from the view (enum r3ring_record_type).
 * @payload: at least 4-byte aligned (8-byte when it holds arrays: ring payloads
 *           are 64-byte aligned), @len bytes; may change while it is read
 *           (hostile or overwritten): only copied counts are used.
 * @err:     receives what does not fit; may be NULL.
 *
 * Checked: lengths and counts against @len, which must be met exactly; enums and
 * flags, rows and row ranges, top_k, text lengths; what arrays hold (layer
 * tables, spans and their keys, missing layers, map entries), as it was at that
 * moment. Who must rely on arrays of a hostile writer copies the payload first
 * (r3ring_reader_read()) and decodes the copy. Not checked: ids against the
 * number of experts (see r3ring_ids_check()).
 *
 * Returns 0, -EBADMSG, or -ENOTSUP for a type this version does not know (skip
 * it). Any thread.
 */
R3RING_API int r3ring_record_decode(struct r3ring_record *record, uint16_t type,
				    const void *payload, size_t len, struct r3ring_error *err);

/* ---- encoding --------------------------------------------------------- */

/*
 * Bytes that the record needs when encoded, its arrays included, or 0 when its
 * head would be refused. Any thread.
 */
R3RING_API size_t r3ring_record_size(const struct r3ring_record *record);

/*
 * Encodes into @buffer: heads and arrays in one piece, reserved fields zeroed.
 * For LAYER with ids == NULL only the head is written and needs room (the ids
 * come by device copy).
 *
 * @buffer:   8-byte aligned.
 * @capacity: bytes of @buffer.
 *
 * Returns the bytes written, -ENOBUFS (capacity), -EINVAL (what the decoder
 * would refuse; @err says what; may be NULL).
 */
R3RING_API long r3ring_record_encode(const struct r3ring_record *record, void *buffer,
				     size_t capacity, struct r3ring_error *err);

/*
 * Counts ids of @rows x @top_k that are R3RING_MISSING and ids that are neither
 * missing nor below @experts. Returns through the pointers; NULL is fine.
 */
R3RING_API void r3ring_ids_check(const uint16_t *ids, size_t rows, uint32_t top_k, uint32_t experts,
				 uint64_t *missing, uint64_t *out_of_range);

/* Names as in docs and JSON ("LAYER", "buffer_full", "moe", "COMPUTED"); never
 * NULL, "?" for an unknown value. */
R3RING_API const char *r3ring_record_type_name(uint16_t type);
R3RING_API const char *r3ring_cause_name(uint32_t cause);
R3RING_API const char *r3ring_layer_kind_name(uint32_t kind);
R3RING_API const char *r3ring_span_kind_name(uint32_t kind);

R3RING_STATIC_ASSERT(sizeof(struct r3ring_coordinates) == 24, "coordinates layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_layer_entry) == 8, "layer entry layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_schema_record) == 184, "SCHEMA layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_request_record) == 32, "REQUEST layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_span) == 32, "span layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_step_record) == 72, "STEP layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_spans_record) == 32, "SPANS layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_rows_record) == 24, "ROWS layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_layer_record) == 64, "LAYER layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_missing_layer) == 16, "missing layer layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_step_end_record) == 48, "STEP_END layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_lost_record) == 48, "LOST layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_eplb_record) == 40, "EPLB layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_key_copy_record) == 24, "KEY_COPY layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_totals) == 264, "totals layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_keyframe_record) == 280, "KEYFRAME layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_closed_record) == 144, "CLOSED layout");

#ifdef __cplusplus
}
#endif

#endif
