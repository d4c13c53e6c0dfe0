/* SPDX-License-Identifier: Apache-2.0 */
/* How far reading an archive is: a line on standard error that is there to be seen, not to
 * be kept. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* @shown: bool, whether there is such a line. */
void progress_show(void *shown, uint64_t bytes, uint64_t of);
void progress_hide(bool shown);

#endif
