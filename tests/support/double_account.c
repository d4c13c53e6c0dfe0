/* SPDX-License-Identifier: Apache-2.0 */
/* An account in two copies. */
#include <string.h>

#include <r3ring/atomic.h>

#include "tests/support/double_account.h"

void double_account_publish(uint64_t *version, void *copies, const void *account, size_t bytes)
{
	uint64_t next = *version + 1;

	memcpy((char *)copies + next % 2 * bytes, account, bytes);
	/* Pairs with the acquire in double_account_read(). */
	r3ring_store_release_u64(version, next);
}

void double_account_read(const uint64_t *version, const void *copies, void *account, size_t bytes)
{
	uint64_t seen, again;

	do {
		/* Pairs with the release in double_account_publish(). */
		seen = r3ring_load_acquire_u64(version);
		memcpy(account, (const char *)copies + seen % 2 * bytes, bytes);
		r3ring_fence_acquire();
		again = r3ring_load_relaxed_u64(version);
	} while (again != seen);
}
