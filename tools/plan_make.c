/* SPDX-License-Identifier: Apache-2.0 */
/* From a load to the map of today, a new one, and what each makes of the load. */
#include <errno.h>
#include <stdlib.h>

#include "tools/plan.h"

/* A map that was captured, else experts in order over the GPUs. */
static int find_today(const struct r3ring_load *load, uint32_t gpus, struct plan *plan)
{
	const struct r3ring_load_info *info = plan->info;
	int r = -ENOENT;

	if (info->epoch)
		r = r3ring_load_map(load, R3RING_LOAD_MERGED, info->epoch, &plan->today);
	plan->captured = r == 0;
	if (r == -ENOENT || r == -EBADMSG)
		r = r3ring_eplb_map_plain(&plan->today, info->layers, info->experts, gpus, NULL);
	return r == -EINVAL ? 0 : r;
}

int plan_make(const struct r3ring_load *load, const struct r3ring_eplb_options *place,
	      struct plan *plan, struct r3ring_error *err)
{
	const struct r3ring_load_info *info = plan->info;
	int r = find_today(load, place->gpus, plan);

	if (r == 0)
		r = r3ring_eplb_place(&plan->next, info->counts, info->layers, info->experts, place,
				      err);
	if (r < 0)
		return r;
	plan->ratio_today = calloc(info->layers, sizeof(*plan->ratio_today));
	plan->ratio_next = calloc(info->layers, sizeof(*plan->ratio_next));
	if (!plan->ratio_today || !plan->ratio_next)
		return -ENOMEM;
	if (plan->today)
		r = r3ring_eplb_evaluate(plan->today, info->counts, &plan->balance_today,
					 plan->ratio_today);
	return r < 0 ? r
		     : r3ring_eplb_evaluate(plan->next, info->counts, &plan->balance_next,
					    plan->ratio_next);
}

void plan_free(struct plan *plan)
{
	free(plan->ratio_today);
	free(plan->ratio_next);
	r3ring_eplb_map_free(plan->today);
	r3ring_eplb_map_free(plan->next);
}
