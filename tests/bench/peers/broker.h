/* SPDX-License-Identifier: Apache-2.0 */
/* A program that a peer needs beside its processes. */
#ifndef TESTS_BENCH_PEERS_BROKER_H
#define TESTS_BENCH_PEERS_BROKER_H

#include <sys/types.h>

#include "tests/bench/peers/peer.h"

/*
 * Starts @argv (the first is looked for in PATH), writes what it prints to a file in
 * the channel's directory, and waits until that holds @ready, for ten seconds at
 * most. It is killed with this process.
 *
 * Returns its pid, -ENOTSUP (no such program, or it ended by itself) or another
 * negative errno.
 */
pid_t broker_start(const struct peer_channel *channel, const char *const *argv, const char *ready);

/* Asks it to end and waits for that; after two seconds it is killed. */
void broker_stop(pid_t pid);

#endif
