/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader that comes late must be told again: requests that have begun
 * and not ended, and the newest EPLB maps. Kept as the payloads that said so.
 */
#ifndef RECORD_LIVE_H
#define RECORD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#include <r3ring/record.h>

/* A hostile producer cannot make who keeps it grow beyond this, per channel. */
#define LIVE_BYTES_MAX (64u << 20)

struct live_payload {
	uint64_t key; /* REQUEST: handle; EPLB: first layer */
	size_t len;
	UT_hash_handle hh;
	uint8_t bytes[];
};

/* Zeroed: empty. One thread. */
struct live {
	struct live_payload *requests; /* in the order of their BEGIN */
	struct live_payload *maps;
	size_t bytes;
	bool lacks; /* requests may live that are not in it: no room, or their BEGIN is not known */
};

/*
 * Notes a REQUEST record: BEGIN adds it, END takes it away.
 * Returns 0, -ENOBUFS (LIVE_BYTES_MAX), -ENOMEM; then the request is only not
 * repeated for late readers, and lacks.
 */
int live_note_request(struct live *live, const struct r3ring_request_record *head,
		      const void *payload, size_t len);

/* Whether the BEGIN @head was noted, and no END since. */
bool live_has_request(const struct live *live, const struct r3ring_request_record *head);

/* Notes an EPLB map; it replaces the one of the same first layer. Returns likewise. */
int live_note_map(struct live *live, const struct r3ring_eplb_record *head, const void *payload,
		  size_t len);

/* Moves the requests of @from to @to, which has none, and whether any lack. */
void live_move_requests(struct live *to, struct live *from);

void live_clear(struct live *live);

#endif
