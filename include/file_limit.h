/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit on the size of files, which holds for shared memory too. Asked before
 * memory is sized: the kernel sends SIGXFSZ beyond it, which ends the process, and
 * a library has no business with its host's signals.
 */
#ifndef FILE_LIMIT_H
#define FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define FILE_LIMIT_REMEDY "raise the limit on file sizes (ulimit -f, LimitFSIZE)"

static inline bool file_limit_allows(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	       bytes <= limit.rlim_cur;
}

#endif
