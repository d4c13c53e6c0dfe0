/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest records of an engine: a thread reads all its channels, be they there already or
 * not, and hands each record on. It reads as any lossy reader does and never holds a writer up;
 * what was overwritten before it was read is told as a gap.
 */
#ifndef MONITOR_TAIL_H
#define MONITOR_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/reader.h>

#include "monitor/daemon_watch.h"

struct tail;

/* The tail's thread calls all of them. */
struct tail_hooks {
	void *context;
	/* A channel, by its index (0, 1, ...), before its first record. Returns 0, or anything else
	 * to be told again with the next one: until then its records are not given. */
	int (*channel)(void *context, uint32_t channel, const char *name);
	/* A record that was copied and checked; @name: its channel's. */
	void (*record)(void *context, uint32_t channel, const char *name,
		       const struct r3ring_view *view, const struct r3ring_record *record);
	/* Records of the channel were gone before they were read. */
	void (*gap)(void *context, uint32_t channel);
	/* Which channels have ended (monitor/ends.h), by their indices; told when that changes, once
	 * all that they had was given. NULL: none. */
	void (*ends)(void *context, const bool *ended, uint32_t channels);
	void (*read)(void *context); /* all that was there has been read; NULL: none */
	void (*turn)(void *context); /* several times a second; NULL: none */
};

struct tail_options {
	const char *instance;
	const char *runtime_dir; /* NULL: as readers find it */
	const char *label;       /* of its readers, for status, which lives as long; NULL: none */
	/* How often it looks for records, in ms: then writers never have to wake it. 0: it is
	 * woken by them, and has a record within microseconds. */
	uint32_t look_ms;
	/* Tells of ends; outlives the tail. NULL: none is noticed. */
	struct daemon_watch *watch;
	struct tail_hooks hooks;
};

/*
 * Begins to read @options->instance; names are copied.
 * Returns 0 or -ENOMEM, or what pthread_create() failed with, with a message. Pairs with
 * tail_close(), NULL is fine, after which no hook is called. *@tail is there before any hook is
 * called, and NULL on failure.
 */
int tail_open(struct tail **tail, const struct tail_options *options, struct r3ring_error *err);
void tail_close(struct tail *tail);

const char *tail_name(const struct tail *tail);

enum tail_state {
	TAIL_WAITING, /* no daemon, or it has no such instance; or what there is was not read to its
		       * end yet, or not judged by a daemon that lives */
	TAIL_LIVE,
	TAIL_SILENT, /* no sign of life from any of its channels: their daemon is gone */
	TAIL_ENDED,  /* all its channels have ended: closed by their engine, which may have died */
	TAIL_STATES,
};

/* "waiting", "live", "silent", "ended". */
const char *tail_state_name(enum tail_state state);

struct tail_status {
	enum tail_state state;
	char error[R3RING_ERROR_TEXT]; /* why it waits, "" otherwise */
	uint64_t records;
	uint64_t gaps; /* how often records were gone before they were read */
};

/* Any thread. */
void tail_get_status(struct tail *tail, struct tail_status *status);

#endif
