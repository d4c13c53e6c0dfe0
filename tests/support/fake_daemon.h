/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that only answers readers, with segments that the test makes: a
 * thread with a socket in a directory of its own.
 */
#ifndef TESTS_FAKE_DAEMON_H
#define TESTS_FAKE_DAEMON_H

#include <stdbool.h>

#include "tests/support/fake_channel.h"

struct fake_daemon;

/* How it misbehaves. */
enum fake_daemon_fault {
	FAKE_DAEMON_SOUND = 0,
	FAKE_DAEMON_MUTE,       /* takes questions and never answers */
	FAKE_DAEMON_HANGS_UP,   /* hangs up instead of answering */
	FAKE_DAEMON_OTHER_UUID, /* names another uuid than the segment has */
	FAKE_DAEMON_OTHER_GENERATION,
	FAKE_DAEMON_NO_DESCRIPTOR, /* forgets the descriptor */
	FAKE_DAEMON_ENDLESS_NAME,  /* sends a name without its end */
	FAKE_DAEMON_OTHER_FILE,    /* sends a descriptor that is no segment */
};

/* @dir: NULL for a new directory; else where a predecessor was. Aborts when it
 * cannot start. */
struct fake_daemon *fake_daemon_start(const char *dir);

/* Stops; the directory stays until fake_daemon_remove_dir(). */
void fake_daemon_stop(struct fake_daemon *daemon);
void fake_daemon_remove_dir(const char *dir);

const char *fake_daemon_dir(const struct fake_daemon *daemon);

/* From now on @channel is the newest generation (the others are still given to
 * who asks for them); NULL: forgets all. The channel stays the test's. */
void fake_daemon_serve(struct fake_daemon *daemon, const struct fake_channel *channel);

void fake_daemon_break(struct fake_daemon *daemon, enum fake_daemon_fault fault);

#endif
