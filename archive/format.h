/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an archive is on disk. docs/ARCHIVE.md explains it with a worked example.
 *
 *	DIR/00000001.r3seg, 00000002.r3seg, ...   segments; numbers rise by one
 *	DIR/index.sqlite                          of requests; rebuilt from the segments at will
 *	DIR/lock                                  held (flock) by whoever writes, as DIR itself
 *
 * A segment is a head and blocks; a block is a head and entries, compressed with zstd or
 * not. Numbers are little-endian; reserved fields and padding are zero. Each head has its
 * own XXH3 (64 bits, seed 0), each block's stored bytes too, and each block names its
 * predecessor's, so that none can be left out or exchanged. A block is whole when both
 * hashes are right and its number and previous_hash follow the block before.
 *
 * A segment can be read by itself: it begins with what was said before and still holds,
 * flagged ARCHIVE_ENTRY_REPEATED: its channels; for each its generation, with the number of
 * the last record before this segment, and a keyframe as the daemon makes them: KEYFRAME,
 * SCHEMA, EPLB maps and the BEGIN of each live request (only SCHEMA while these are not
 * known, since the recorder came late). READY ends this part. Who has read the segment
 * before passes over it: it is in no account.
 *
 * Accounts: in each generation of a channel sequences go up by one from 1 on. Each is one
 * RECORD or SKIPPED entry that is not repeated, or within a GAP.
 *
 * A segment that is complete ends with a block flagged ARCHIVE_BLOCK_LAST, and with
 * ARCHIVE_BLOCK_MORE too where the recorder begins another: an archive that ends with such a
 * segment lacks the next one, or its recorder was killed just then. A recorder that stops in
 * good order leaves LAST alone. One that did not leaves a segment without, which the next one cuts behind its last whole block
 * (removes, where it has no READY). It then begins another segment, whose first entry is
 * RESUMED, as it does after one that ended in good order.
 *
 * State, in what follows, is every entry that others are read by: CHANNEL, GENERATION, READY,
 * RESUMED, and all that is said again. A block's head says which block before it has some: so
 * who meets a damaged one knows whether those behind it can be read without it.
 *
 * Segments are made, and their heads synced, when all before is on the disk: only the
 * newest can be other than whole after a power loss. A later block of it whose `synced`
 * is not below the first that is broken tells damage from that.
 */
#ifndef ARCHIVE_FORMAT_H
#define ARCHIVE_FORMAT_H

#include <stdint.h>

#include <r3ring/abi.h>

#define ARCHIVE_MAGIC "R3RINGAR"
#define ARCHIVE_VERSION 2u
#define ARCHIVE_BLOCK_MAGIC 0x4B423352u /* "R3BK" */
#define ARCHIVE_ALIGN 64u               /* of heads and blocks in a segment */
/* Entries of a block, before compression; a larger record has a block of its own. */
#define ARCHIVE_BLOCK_BYTES (1u << 20)
#define ARCHIVE_RECORD_MAX ((1u << 30) - 4096u) /* payload */
#define ARCHIVE_SUFFIX ".r3seg"
#define ARCHIVE_LOCK "lock"

struct archive_segment_head {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* of this head: where the first block is */
	uint8_t uuid[16];
	uint64_t number;        /* as in the file's name, from 1 on */
	uint64_t created_ns;    /* CLOCK_REALTIME */
	uint64_t first_block;   /* number of its first block */
	uint64_t previous_hash; /* head_hash of the last block of the segment before; 0: none */
	uint32_t level;         /* zstd's; 0: not compressed */
	/* Layers kept, by the model's own layer numbers [first, end): those of kind moe and
	 * hash. All layers when end is 0. */
	uint32_t layer_first, layer_end;
	uint32_t flags;  /* enum archive_segment_flags */
	char writer[32]; /* "r3ring 0.1.0" */
	uint64_t reserved1;
	uint64_t hash; /* XXH3 of all above */
};

enum archive_segment_flags {
	/* Its recorder removes the oldest segments for want of room. An archive that has no
	 * segment flagged so has one numbered 1, or that is missing. */
	ARCHIVE_SEGMENT_ROTATES = 1u << 0,
};

enum archive_block_flags {
	ARCHIVE_BLOCK_ZSTD = 1u << 0,
	ARCHIVE_BLOCK_LAST = 1u << 1, /* its segment was closed in good order */
	ARCHIVE_BLOCK_MORE = 1u << 2, /* with LAST: another segment follows */
};

/* A block may have no entries. */
struct archive_block_head {
	uint32_t magic;
	uint32_t flags;
	uint64_t number; /* over all segments, from 1 on */
	uint32_t stored; /* bytes behind this head, then zeros up to ARCHIVE_ALIGN */
	uint32_t raw;    /* bytes of its entries */
	uint32_t entries;
	uint32_t own;           /* RECORD and SKIPPED in it, without those repeated; version 1: 0 */
	uint64_t records;       /* likewise, of the archive up to and including this block */
	uint64_t time_ns;       /* CLOCK_REALTIME when it was written */
	uint64_t previous_hash; /* head_hash of the block before, 0: there is none */
	uint64_t synced;        /* number of the newest block known to be on the disk by then */
	uint64_t stored_hash;   /* XXH3 of the stored bytes */
	/* Number of the newest block before it, of its segment, that has state; 0: none, and so
	 * in version 1. */
	uint64_t state;
	uint64_t reserved1[5];
	uint64_t head_hash; /* XXH3 of all above */
};

enum archive_entry_kind {
	ARCHIVE_CHANNEL = 1,    /* text: "INSTANCE/RANK[.draft]"; declares `channel` */
	ARCHIVE_GENERATION = 2, /* struct archive_generation: what follows is of it */
	ARCHIVE_RECORD = 3,     /* a ring record's payload, as it was */
	ARCHIVE_GAP = 4,        /* struct archive_gap: records that are not here */
	ARCHIVE_RESUMED = 5,    /* struct archive_resumed: the recorder began anew */
	ARCHIVE_SKIPPED = 6,    /* a LAYER record that `--layers` left out; no payload */
	ARCHIVE_READY = 7,      /* the end of what the segment says again; no payload */
	/* The recorder ended while nobody wrote the channel's ring, or its engine was waited for,
	 * or the ring, which was read to its end, was gone before anybody wrote CLOSED: what the
	 * engine ran since is not known, unless more of it follows. No payload; `seq` is that of
	 * the next record, `step` the newest that was announced, 0: none. */
	ARCHIVE_UNFOLLOWED = 8,
};

/* In `flags` beside the ring's: said again at the beginning of a segment. */
#define ARCHIVE_ENTRY_REPEATED 0x8000u

/* 8-byte aligned; its payload behind it, zero-padded to 8 bytes. */
struct archive_entry {
	uint16_t kind;
	uint16_t type;    /* RECORD, SKIPPED: enum r3ring_record_type */
	uint16_t flags;   /* RECORD, SKIPPED: enum r3ring_desc_flags; ARCHIVE_ENTRY_REPEATED */
	uint16_t channel; /* declared before; RESUMED, READY: 0 */
	uint32_t bytes;   /* payload */
	uint32_t reserved;
	/* RECORD, SKIPPED: as in the ring; repeated: from 0 on in its keyframe. UNFOLLOWED */
	uint64_t seq;
	uint64_t step;
	uint64_t units;
};

struct archive_generation {
	uint64_t generation;
	uint8_t uuid[16]; /* of the ring's segment: numbers may come again, this does not */
	/* Before this entry; 0 where the generation begins here: */
	uint64_t seq;    /* of its last record, or the end of its last gap */
	uint32_t closed; /* 1: that was CLOSED */
	uint32_t reserved;
};

enum archive_gap_cause {
	ARCHIVE_GAP_LATE = 1,     /* the recorder attached after they were overwritten */
	ARCHIVE_GAP_OVERRUN = 2,  /* they were overwritten before it read them */
	ARCHIVE_GAP_CORRUPT = 3,  /* the ring's content was refused */
	ARCHIVE_GAP_STOPPED = 4,  /* overwritten, or gone with their ring, while no recorder ran */
	ARCHIVE_GAP_UNSYNCED = 5, /* had been written, and went with a crash */
	ARCHIVE_GAP_DAMAGED = 6,  /* of readers alone: in what cannot be read of the archive */
	ARCHIVE_GAP_CAUSES,
};

/* Records [from_seq, to_seq] of the channel's generation. lost == 0: how many is unknown,
 * and then to_seq is 0: from from_seq to its end. */
struct archive_gap {
	uint64_t lost; /* records */
	uint64_t from_seq, to_seq;
	uint32_t cause; /* enum archive_gap_cause */
	uint32_t reserved;
};

struct archive_resumed {
	uint64_t cut_bytes;              /* of the segment before: a block that was not whole */
	uint64_t stopped_ns, resumed_ns; /* CLOCK_REALTIME; stopped: of the last whole block */
};

R3RING_STATIC_ASSERT(sizeof(struct archive_segment_head) == 128, "segment head layout");
R3RING_STATIC_ASSERT(sizeof(struct archive_block_head) == 128, "block head layout");
R3RING_STATIC_ASSERT(sizeof(struct archive_entry) == 40, "entry layout");
R3RING_STATIC_ASSERT(sizeof(struct archive_generation) == 40, "GENERATION layout");
R3RING_STATIC_ASSERT(sizeof(struct archive_gap) == 32, "GAP layout");
R3RING_STATIC_ASSERT(sizeof(struct archive_resumed) == 24, "RESUMED layout");

#endif
