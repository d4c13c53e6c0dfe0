/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tools/json_values.h"
#include "tools/left_out_json.h"

json_t *left_out_json(const struct follower_left_out *list, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:o}", "channel", list[i].channel, "model",
						json_text(list[i].model, strlen(list[i].model))));
	return array;
}

json_t *left_out_json_of(struct follower *follower)
{
	struct follower_left_out *list;
	int count = follower_left_out(follower, &list);
	json_t *array = count < 0 ? NULL : left_out_json(list, (uint32_t)count);

	free(list);
	return array;
}
