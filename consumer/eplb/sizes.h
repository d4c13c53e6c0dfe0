/* SPDX-License-Identifier: Apache-2.0 */
/* Which sizes a map may have. */
#ifndef CONSUMER_EPLB_SIZES_H
#define CONSUMER_EPLB_SIZES_H

#include <stdint.h>

#include <r3ring/error.h>

/* Returns 0 or -EINVAL (the size is named). */
int eplb_check_sizes(uint32_t layers, uint32_t experts, uint32_t physical, uint32_t gpus,
		     struct r3ring_error *err);

#endif
