/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's socket: SOCK_SEQPACKET, one message a packet, descriptors as
 * SCM_RIGHTS. Every message begins with struct r3ring_message; what follows it
 * has a fixed layout for each type. Both ends treat what they receive as
 * hostile until checked.
 *
 *   producer  WHOIS                 ->   <- IDENTITY (only before a buffer on a GPU)
 *             HELLO_PRODUCER + fds  ->   <- OPENING ..., WELCOME_PRODUCER or REFUSED
 *             BYE                   ->   (or hang-up)
 *   reader    HELLO_READER [+ fd]   ->   <- SEGMENT + fds, or REFUSED
 *             (stays connected while it reads)
 *                                        <- WAKE, once each time that it armed
 *   anyone    LIST                  ->   <- LISTED ..., the last one with `more` 0
 *             GET_STATUS            ->   <- STATUS_CHANNEL (JSON) ..., STATUS_DONE (JSON)
 */
#ifndef R3RING_PROTO_H
#define R3RING_PROTO_H

#include <stdint.h>

#include <r3ring/abi.h>
#include <r3ring/record.h>

#define R3RING_PROTO_MAGIC 0x52335250u /* "PR3R" in memory */
#define R3RING_PROTO_MAJOR 1
#define R3RING_PROTO_MINOR 2
#define R3RING_MESSAGE_MAX 65536u
#define R3RING_MESSAGE_FDS_MAX 4
#define R3RING_SOCKET_NAME "r3ringd.sock"
#define R3RING_LOCK_NAME "r3ringd.lock"

enum r3ring_message_type {
	R3RING_MSG_REFUSED = 1,
	R3RING_MSG_HELLO_PRODUCER = 2,
	R3RING_MSG_WELCOME_PRODUCER = 3,
	R3RING_MSG_BYE = 4,
	R3RING_MSG_HELLO_READER = 5,
	R3RING_MSG_SEGMENT = 6,
	R3RING_MSG_GET_STATUS = 7,
	R3RING_MSG_STATUS_CHANNEL = 8,
	R3RING_MSG_STATUS_DONE = 9,
	R3RING_MSG_WAKE = 10, /* nothing but the head: records came (see reader_page.h, armed) */
	R3RING_MSG_LIST = 11,
	R3RING_MSG_LISTED = 12,
	R3RING_MSG_WHOIS = 13, /* nothing but the head */
	R3RING_MSG_IDENTITY = 14,
	R3RING_MSG_OPENING = 15, /* since minor version 2, of the producer's hello */
};

struct r3ring_message {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint16_t type; /* enum r3ring_message_type */
	uint16_t fds;  /* descriptors that come with it */
	uint32_t len;  /* bytes of the whole message, this head included */
};

/* Names a channel: INSTANCE/RANK or INSTANCE/RANK.draft. */
struct r3ring_channel_name {
	char instance[R3RING_INSTANCE_MAX + 1]; /* NUL-terminated */
	uint8_t draft;
	uint16_t reserved;
	uint32_t rank;
};

struct r3ring_refused_message {
	struct r3ring_message head;
	int32_t code; /* negative errno */
	char text[R3RING_ERROR_TEXT];
};

enum r3ring_buffer_kind {
	R3RING_BUFFER_HOST = 1,     /* descriptor 1 is a sealed memfd */
	R3RING_BUFFER_CUDA_IPC = 2, /* `handle` is a cudaIpcMemHandle_t */
	R3RING_BUFFER_CUDA_VMM = 3, /* descriptor 1 is an exported allocation */
};

/* Why a buffer is of its kind. */
enum r3ring_export_reason {
	R3RING_EXPORT_HOST = 0,            /* it is in host memory */
	R3RING_EXPORT_SAME_NAMESPACES = 1, /* so an IPC handle will do */
	R3RING_EXPORT_OTHER_PID_NAMESPACE = 2,
	R3RING_EXPORT_OTHER_IPC_NAMESPACE = 3,
	R3RING_EXPORT_FORCED = 4,         /* by the producer's options */
	R3RING_EXPORT_NO_HANDLE = 5,      /* the GPU gives none */
	R3RING_EXPORT_HANDLE_REFUSED = 6, /* the daemon could not open one */
};

/* What orders the daemon's copies behind the kernels that wrote. */
enum r3ring_order {
	R3RING_ORDER_BELL = 0,  /* the bells: a release at system scope */
	R3RING_ORDER_EVENT = 1, /* an interprocess event, which the copies wait for */
};

/* Who the daemon is: numbers (inodes) of its namespaces, 0 where it cannot tell. */
struct r3ring_identity_message {
	struct r3ring_message head;
	uint64_t pid_namespace;
	uint64_t ipc_namespace;
	uint64_t reserved[2];
};

/*
 * Descriptor 0: sealed memfd with the channel's pages (submission queue, bells;
 * layout in channel/pages.h). Descriptor 1: the buffer, by kind. Last
 * descriptor, when has_pidfd is 1: a pidfd of the producer. REFUSED with -ENOTSUP:
 * the daemon opens no buffer of this kind; one of another kind may do.
 */
struct r3ring_hello_producer_message {
	struct r3ring_message head;
	struct r3ring_channel_name channel;
	uint32_t buffer_kind;
	uint32_t has_pidfd;
	uint32_t reconnect; /* 1: the same producer after the daemon went away */
	uint32_t pid;       /* as the producer sees itself */
	uint64_t pages_bytes;
	uint64_t buffer_bytes;
	uint8_t handle[64];
	uint8_t gpu_uuid[16];
	uint8_t event[64];        /* cudaIpcEventHandle_t, for order EVENT */
	uint32_t order;           /* enum r3ring_order */
	uint32_t export_reason;   /* enum r3ring_export_reason, for log and status */
	uint64_t last_generation; /* reconnect: the generation before, else 0 */
	uint32_t schema_len;      /* an encoded SCHEMA record follows; its rows_per_record, */
	uint32_t reserved;        /* generation and uuids are the daemon's to set */
};

/* While the ring's memory takes its time: about once a second, as long as `done` grows. */
struct r3ring_opening_message {
	struct r3ring_message head;
	uint64_t done;  /* bytes that are there */
	uint64_t bytes; /* of the whole */
};

struct r3ring_welcome_producer_message {
	struct r3ring_message head;
	uint64_t generation;
	uint8_t uuid[16];
	uint32_t rows_per_record;
	uint32_t reserved;
	char segment[128];
};

/*
 * Up to `generation` it is the message of minor version 0, which is still taken and
 * registers nothing. Descriptor 0, when has_pidfd is 1: a pidfd of the reader.
 */
struct r3ring_hello_reader_message {
	struct r3ring_message head;
	struct r3ring_channel_name channel;
	uint64_t generation; /* 0: the newest */
	/* since minor version 1: the reader registers */
	uint32_t lossless; /* 1: the writer is to wait for it */
	uint32_t has_pidfd;
	uint64_t limit_bytes; /* arena bytes it may leave unread; 0: what the daemon allows */
	uint32_t stall_ms;    /* how long to wait for it; 0: what the daemon allows */
	uint32_t reserved;
};

#define R3RING_HELLO_READER_MINOR0 80u /* bytes of the message of minor version 0 */

/* Descriptor 0: the segment, opened read-only. Descriptor 1, where the reader was
 * registered: its page (reader_page.h), a sealed memfd. */
struct r3ring_segment_message {
	struct r3ring_message head;
	uint64_t generation;
	uint8_t uuid[16];
	char segment[128];
};

/* Which channels there are. */
struct r3ring_list_message {
	struct r3ring_message head;
	char instance[R3RING_INSTANCE_MAX + 1]; /* NUL-terminated; empty: of all instances */
	uint8_t reserved[7];
};

/* Followed by `count` struct r3ring_channel_name. */
struct r3ring_listed_message {
	struct r3ring_message head;
	uint32_t count;
	uint32_t more; /* 1: another LISTED follows */
};

/*
 * STATUS_CHANNEL and STATUS_DONE: struct r3ring_message, then one JSON object of
 * head.len - sizeof(head) bytes. JSON, so that an older tool can show what a
 * newer daemon tells.
 */

R3RING_STATIC_ASSERT(sizeof(struct r3ring_message) == 16, "message layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_channel_name) == 56, "channel name layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_identity_message) == 48, "identity layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_hello_producer_message) == 272, "hello layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_opening_message) == 32, "opening layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_welcome_producer_message) == 176, "welcome layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_hello_reader_message) == 104, "hello layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_segment_message) == 168, "segment layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_list_message) == 72, "list layout");
R3RING_STATIC_ASSERT(sizeof(struct r3ring_listed_message) == 24, "listed layout");

#endif
