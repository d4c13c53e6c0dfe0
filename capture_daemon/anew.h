/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing itself anew: an error that spoils a CUDA context lasts as long as the
 * process does. The same program with the same arguments takes over what this one
 * leaves, as after a crash; it is told which channels' copies failed.
 */
#ifndef DAEMON_ANEW_H
#define DAEMON_ANEW_H

#include <stdbool.h>

struct daemon;

/* Returns only on failure, with a negative errno. */
int anew_execute(const struct daemon *daemon);

/* Whether this process was executed because copies of that channel had failed. */
bool anew_copy_failed(const char *channel);

#endif
