/* SPDX-License-Identifier: Apache-2.0 */
/* From a load to the map of today, a new one, and what each makes of the load. */
#include <errno.h>

#include "tools/plan.h"

int plan_make(const struct r3ring_load *load, const struct r3ring_eplb_options *place,
	      struct plan *plan, struct r3ring_error *err)
{
	struct r3ring_eplb_map *captured = NULL;
	int r = r3ring_load_map_in_force(load, R3RING_LOAD_MERGED, plan->info->epoch, &captured);

	/* A map that is not whole is none. */
	if (r < 0 && r != -ENOENT)
		return r;
	return placing_make(&plan->placing, captured, plan->info, place, err);
}

void plan_free(struct plan *plan)
{
	placing_free(&plan->placing);
}
