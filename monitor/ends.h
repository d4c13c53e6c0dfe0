/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an engine's channel has ended. Its records do not say so while the daemon keeps its
 * ring open for those who read late, so it is judged by the daemon's pictures: by those of the
 * generation that is read, once all of its records were read; and by its process where they do not
 * say.
 */
#ifndef MONITOR_ENDS_H
#define MONITOR_ENDS_H

#include "monitor/daemon_picture.h"

/* So long may an engine take to come back to a daemon that was started anew: as the daemon waits
 * for it, too. */
#define ENDS_PATIENCE_NS 10000000000ull

/* A channel, as far as it is read. */
struct ends_channel {
	const char *name;
	uint64_t generation;
	uint64_t next;     /* sequence of the record to be read next */
	uint64_t since_ns; /* CLOCK_MONOTONIC: when this generation was come to */
	bool ended;        /* as it was judged before; of another generation: false */
	bool died;         /* the process of this generation is known to have (monitor/life.h) */
};

/*
 * Judges by the newest picture, NULL: there is none. A daemon that is gone, or knows of another
 * generation, changes nothing; one that does not know the channel at all lets it have ended once it
 * had time to hear of it. What such a daemon cannot tell, or one that still waits for the engine,
 * the death of its process does at once.
 */
bool ends_judge(const struct ends_channel *channel, const struct daemon_picture *picture);

#endif
