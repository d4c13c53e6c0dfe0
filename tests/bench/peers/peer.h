/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways from one process to others, side by side: each peer is a file with one
 * table of operations, and is used as its own documentation asks for where
 * latency counts.
 */
#ifndef TESTS_BENCH_PEERS_PEER_H
#define TESTS_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_READERS_MAX 8u

/* To peer.open: not a reader's index but the writer. */
#define PEER_WRITER (-1)

/* One channel of a peer, from one writer to its readers. */
struct peer_channel {
	size_t size;           /* bytes of each message */
	size_t slots;          /* messages that it holds; a power of two */
	unsigned int readers;  /* 1 to PEER_READERS_MAX */
	const char *directory; /* for sockets and files, of this channel alone */
	void *shared;          /* the peer's, made by prepare, the same in all processes */
	void *end;             /* the peer's, made by open, of one process */
};

/*
 * All functions return 0 or a negative errno unless said otherwise. None is NULL but
 * where it says so.
 */
struct peer {
	const char *name;
	const char *how;          /* in a few words, how it is used */
	const char *sources;      /* the packages it comes from, by their Debian names */
	unsigned int readers_max; /* 1, or PEER_READERS_MAX where each reader gets all */
	bool helped;              /* threads or processes of its own carry its messages */
	bool exits;               /* its library takes its leave of others at exit() */
	bool paced;               /* does not wait when full: the writer is kept from it */

	/* The version that runs, e.g. "4.3.4". */
	const char *(*version)(void);

	/* Before the processes are started. -ENOTSUP: this machine cannot. */
	int (*prepare)(struct peer_channel *channel);

	/* In the process of the writer or of reader @reader; returns when connected. */
	int (*open)(struct peer_channel *channel, int reader);

	/*
	 * Copies @message in and sends it; @more: another one follows at once.
	 * -EAGAIN: full, call again.
	 */
	int (*send)(struct peer_channel *channel, const void *message, bool more);

	/* Copies the next message out. Returns 1, 0 (none yet) or a negative errno. */
	int (*receive)(struct peer_channel *channel, void *message);

	/* Also after an open that failed. May be NULL. */
	void (*close)(struct peer_channel *channel);

	/* After the processes ended; also after a prepare that failed. */
	void (*dispose)(struct peer_channel *channel);
};

/* These need nothing but the C library. */
extern const struct peer peer_r3ring, peer_seqpacket, peer_pipe;

extern const struct peer peer_rte_ring, peer_rte_ring_in_place, peer_ck, peer_boost;
extern const struct peer peer_iceoryx, peer_zeromq, peer_redis;

#ifdef __cplusplus
}
#endif

#endif
