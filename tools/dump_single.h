/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a dump_source_ops that are the same for all sources of one channel. */
#ifndef TOOLS_DUMP_SINGLE_H
#define TOOLS_DUMP_SINGLE_H

#include "tools/dump_source.h"

uint32_t dump_single_channels(void *handle);
uint32_t dump_single_current(void *handle);
const char *dump_single_channel(void *handle, uint32_t index);

#endif
