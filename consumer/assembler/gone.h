/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that were let go before anybody told of their end: what goes on with an id may go on with one of
 * these. Of so many ids at most; what was let go longest ago is forgotten first.
 */
#ifndef CONSUMER_ASSEMBLER_GONE_H
#define CONSUMER_ASSEMBLER_GONE_H

#include <uthash.h>

#include "consumer/assembler/assembler.h"

#define GONE_IDS_MOST 16384u

struct gone {
	char *id;
	uint16_t oldest, newest; /* numbers of its attempts */
	bool evicted;            /* for want of room: it may come back again and again */
	struct gone *same;       /* of the same id */
	UT_hash_handle hh;       /* by id: the first of those that have it */
	uint32_t parts;
	struct gone_part {
		uint32_t channel;
		bool ended; /* by what it told, which may be no more than its daemon's word */
		uint64_t generation, handle;
	} part[];
};

/* The request is let go, with these flags of an assembled one. */
void gone_note(struct r3ring_assembler *assembler, const struct request *request, uint32_t flags);
/* One of those that are known to be others than the request, which the attempt of it that the channel told of
 * may go on with; or NULL. */
const struct gone *gone_candidate(const struct r3ring_assembler *assembler,
				  const struct request *request, const struct channel *channel,
				  uint16_t number);
/* No request that lives has the attempt. Whether one has that had gone, which is back then. */
bool gone_return(struct r3ring_assembler *assembler, const struct channel *channel,
		 const struct r3ring_record *begin);
void gone_forget(struct r3ring_assembler *assembler);

#endif
