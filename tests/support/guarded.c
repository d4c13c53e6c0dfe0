/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that end where memory ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/guarded.h"

struct guarded guarded_create(size_t capacity)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t usable = (capacity + page - 1) / page * page;
	struct guarded guarded = {.mapped = usable + page};

	guarded.base = mmap(NULL, guarded.mapped, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guarded.base == MAP_FAILED)
		abort();
	guarded.end = (uint8_t *)guarded.base + usable;
	if (mprotect(guarded.end, page, PROT_NONE))
		abort();
	return guarded;
}

void guarded_destroy(struct guarded *guarded)
{
	munmap(guarded->base, guarded->mapped);
}

uint8_t *guarded_put(const struct guarded *guarded, const void *bytes, size_t len)
{
	uint8_t *at = guarded->end - len;

	if (len)
		memcpy(at, bytes, len);
	return at;
}
