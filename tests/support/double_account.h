/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An account in shared memory that is whole whenever it is looked at, even if who keeps
 * it was killed while it did: two copies in turn, and a version whose parity says which
 * one is whole.
 */
#ifndef TESTS_SUPPORT_DOUBLE_ACCOUNT_H
#define TESTS_SUPPORT_DOUBLE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

/* By one process. @copies: two of @bytes each. */
void double_account_publish(uint64_t *version, void *copies, const void *account, size_t bytes);

/* The newest whole one; by anybody. */
void double_account_read(const uint64_t *version, const void *copies, void *account, size_t bytes);

#endif
