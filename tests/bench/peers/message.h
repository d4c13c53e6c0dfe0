/* SPDX-License-Identifier: Apache-2.0 */
/* What all peers carry: messages that say by themselves whether they came whole. */
#ifndef TESTS_BENCH_PEERS_MESSAGE_H
#define TESTS_BENCH_PEERS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Message sizes are multiples of this. */
#define MESSAGE_UNIT 64u

/* Fills in what is the same in all messages of @size bytes. */
void message_make(void *message, size_t size);

/* Makes it message @number, stamped @stamp_ns (0: not to be measured). */
void message_mark(void *message, size_t size, uint64_t number, uint64_t stamp_ns);

uint64_t message_number(const void *message);
uint64_t message_stamp(const void *message);

/* Whether it is whole, by the number in each KiB of it; once in a while, by the
 * number, every byte is looked at. */
bool message_holds(const void *message, size_t size);

#endif
