/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout of a ring segment in shared memory. This is an ABI: programs built
 * against another minor version must be able to read it.
 *
 * All numbers are little-endian. Regions start at multiples of 64 KiB, so that
 * nothing depends on the page size of the machine. Nothing in a segment is a
 * pointer. Readers map it read-only and check everything before use.
 *
 *   0        header            (64 KiB)
 *   64 KiB   writer lines      (64 KiB)   struct r3ring_writer_lines
 *   128 KiB  descriptors       64 bytes x 2^n
 *   ...      arena             2^m bytes, records 64-byte aligned
 */
#ifndef R3RING_ABI_H
#define R3RING_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define R3RING_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define R3RING_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "r3ring runs on little-endian machines only"
#endif

#define R3RING_MAGIC 0x31474e4952335200ull /* "\0R3RING1" in memory */
#define R3RING_ENDIAN_MARK 0x01020304u
#define R3RING_ABI_MAJOR 1
#define R3RING_ABI_MINOR 0

#define R3RING_REGION_ALIGN 65536u
#define R3RING_RECORD_ALIGN 64u
#define R3RING_LINE 128u /* also covers the adjacent-line prefetcher */
#define R3RING_LABEL_MAX 127
#define R3RING_INLINE_MAX 20

/* Stored last by the writer; nothing else may be read before it is READY. */
enum r3ring_segment_state {
	R3RING_STATE_NEW = 0,
	R3RING_STATE_READY = 1,
};

enum r3ring_region_index {
	R3RING_REGION_LINES = 0,
	R3RING_REGION_DESCS = 1,
	R3RING_REGION_ARENA = 2,
	R3RING_REGION_COUNT = 3,
};

struct r3ring_region {
	uint64_t offset;     /* bytes from the segment's start */
	uint32_t stride;     /* bytes per element (1 for the arena) */
	uint32_t count_log2; /* number of elements is 1 << count_log2 */
};

/*
 * A reader that finds an incompatible bit that it does not know refuses the
 * segment (-EPROTO); unknown compatible bits change nothing for it.
 */
#define R3RING_FEATURES_INCOMPATIBLE_KNOWN 0ull

struct r3ring_segment_header {
	uint64_t magic;
	uint32_t endian;
	uint16_t abi_major;
	uint16_t abi_minor;
	uint32_t header_size; /* sizeof(struct r3ring_segment_header) of the writer */
	uint32_t state;       /* enum r3ring_segment_state, stored last with release */
	uint64_t segment_size;
	uint64_t features_compatible;
	uint64_t features_incompatible;
	uint8_t uuid[16];
	uint64_t generation;
	uint8_t boot_id[16];
	uint32_t writer_pid;
	uint32_t untaken;           /* numbers right in front of `generation` that none of the
				     * channel had; 0 also where its writer does not say */
	uint64_t writer_start_time; /* /proc/PID/stat field 22: clock ticks since boot */
	uint64_t first_seq;         /* sequence of the first record ever published */
	struct r3ring_region regions[R3RING_REGION_COUNT];
	char label[R3RING_LABEL_MAX + 1]; /* the caller's name for the ring, NUL-terminated */
};

/* For whom the writer keeps records that nobody holds any more by a page of its own; the
 * next writer goes on with that, should this one die. */
enum r3ring_keeps {
	R3RING_KEEPS_NONE = 0,
	R3RING_KEEPS_RETURNING = 1, /* lossless readers of the writer that died */
	R3RING_KEEPS_FORMER = 2,    /* those that still read the generation before */
};

/*
 * Words that only the writer stores. One line each for what changes at
 * different times, so that a spinning reader shares as little as possible.
 */
struct r3ring_writer_lines {
	/* Arena position up to which bytes may be in the middle of being written. */
	uint64_t intent_pos;
	uint8_t pad0[R3RING_LINE - 8];

	uint64_t tail_seq; /* newest published sequence; first_seq - 1 when none */
	uint64_t tail_pos; /* arena position behind that record */
	uint32_t wake;     /* futex word of sleeping readers */
	uint32_t reserved1;
	uint8_t pad1[R3RING_LINE - 24];

	uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the writer's last sign of life */
	uint64_t writer_epoch; /* raised by each writer that adopts the segment */
	uint64_t keyframe_seq; /* newest record that begins a keyframe, 0 when none */
	uint64_t boundary_seq; /* newest record flagged as a boundary, 0 when none */
	uint32_t closed;       /* 1 once the writer has published its last record */
	uint32_t keeps;        /* enum r3ring_keeps; stored behind what goes with it */
	uint64_t kept_from;    /* oldest record that is kept so */
	uint8_t pad2[R3RING_LINE - 48];

	uint64_t published_records;
	uint64_t published_bytes; /* payload bytes */
	uint8_t pad3[R3RING_LINE - 16];
};

enum r3ring_desc_flags {
	R3RING_DESC_INLINE = 1u << 0,   /* payload is in inline_data, not in the arena */
	R3RING_DESC_KEYFRAME = 1u << 1, /* first record of a keyframe */
	R3RING_DESC_BOUNDARY = 1u << 2, /* a reader may begin here (first record of a step) */
	R3RING_DESC_REPEATED = 1u << 3, /* part of a keyframe: says again what was said before */
	R3RING_DESC_ABRIDGED = 1u << 4, /* with KEYFRAME: live requests may be left out of it */
};

/*
 * One descriptor per record, in slot `seq % depth`. `seq` is stored last; while
 * a record is being written it holds the sequence minus one, which fits no
 * reader of this slot.
 */
struct r3ring_desc {
	uint64_t seq;
	uint64_t pos;   /* arena position (not wrapped) of the first payload byte */
	uint64_t step;  /* caller's step number, 0 for none */
	uint64_t units; /* running total of the caller's units, this record included */
	uint32_t len;   /* payload bytes */
	uint16_t type;
	uint16_t flags;
	uint8_t inline_data[R3RING_INLINE_MAX];
	uint32_t check; /* low half of XXH3 over the bytes before it, with the final seq */
};

R3RING_STATIC_ASSERT(sizeof(struct r3ring_region) == 16, "region layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_segment_header) == 288, "header layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_writer_lines) == 4 * R3RING_LINE, "line layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_desc) == 64, "descriptor layout");

#endif
