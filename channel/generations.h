/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that a daemon's channels have given to generations, kept in its runtime directory. */
#ifndef CHANNEL_GENERATIONS_H
#define CHANNEL_GENERATIONS_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/proto.h>

#define GENERATIONS_DIR "generations" /* below the runtime directory */

/* Writes the name of a channel's file there, with @suffix behind it. */
void generations_file(const struct r3ring_channel_name *channel, const char *suffix, char *file,
		      size_t capacity);

/* The newest generation's number that @file of the directory @dir_fd has; 0: none, or unreadable. */
uint64_t generations_read(int dir_fd, const char *file);

#endif
