/* SPDX-License-Identifier: Apache-2.0 */
/* Two descriptors of the kernel as a channel: [0] is read, [1] is written. */
#ifndef TESTS_BENCH_PEERS_KERNEL_H
#define TESTS_BENCH_PEERS_KERNEL_H

#include "tests/bench/peers/peer.h"

/* The running kernel's release. */
const char *kernel_version(void);

/* Sets channel->shared to a pair of no descriptors yet and returns it, or NULL. */
int *kernel_pair_make(struct peer_channel *channel);

/* Closes the other one of the two in this process, so that the peer's end is noticed. */
void kernel_pair_keep(struct peer_channel *channel, int kept);

void kernel_pair_dispose(struct peer_channel *channel);

#endif
