/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "report/placing.h"

/* A map that was captured, else experts in order over the GPUs. */
static int find_today(struct placing *placing, struct r3ring_eplb_map *captured,
		      const struct r3ring_load_info *info, uint32_t gpus)
{
	int r;

	placing->captured = captured && captured->layers == info->layers &&
			    captured->experts == info->experts;
	if (placing->captured) {
		placing->today = captured;
		return 0;
	}
	r3ring_eplb_map_free(captured);
	r = r3ring_eplb_map_plain(&placing->today, info->layers, info->experts, gpus, NULL);
	return r == -EINVAL ? 0 : r;
}

int placing_make(struct placing *placing, struct r3ring_eplb_map *captured,
		 const struct r3ring_load_info *info, const struct r3ring_eplb_options *place,
		 struct r3ring_error *err)
{
	int r = find_today(placing, captured, info, place->gpus);

	if (r == 0)
		r = r3ring_eplb_place(&placing->next, info->counts, info->layers, info->experts,
				      place, err);
	if (r < 0)
		return r;
	placing->ratio_today = calloc(info->layers, sizeof(*placing->ratio_today));
	placing->ratio_next = calloc(info->layers, sizeof(*placing->ratio_next));
	if (!placing->ratio_today || !placing->ratio_next)
		return -ENOMEM;
	if (placing->today)
		r = r3ring_eplb_evaluate(placing->today, info->counts, &placing->balance_today,
					 placing->ratio_today);
	return r < 0 ? r
		     : r3ring_eplb_evaluate(placing->next, info->counts, &placing->balance_next,
					    placing->ratio_next);
}

void placing_free(struct placing *placing)
{
	free(placing->ratio_today);
	free(placing->ratio_next);
	r3ring_eplb_map_free(placing->today);
	r3ring_eplb_map_free(placing->next);
	*placing = (struct placing){0};
}
