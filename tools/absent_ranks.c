/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/absent_ranks.h"

#include <inttypes.h>
#include <string.h>

#include "tools/json_values.h"
#include "tools/plain_text.h"

static const char *const levels[ARCHIVE_RANK_LEVELS] = {"dp", "pp", "sp", "cp"};

void absent_ranks_print(FILE *out, const char *what, const struct archive_absent_ranks *absent)
{
	char text[ARCHIVE_RANK_TEXT];

	for (uint32_t i = 0; i < absent->told; i++) {
		archive_absent_rank_text(text, &absent->rank[i]);
		fprintf(out, "%s: ", what);
		plain_text_print(out, text, strlen(text));
		putc('\n', out);
	}
	if (absent->count > absent->told)
		fprintf(out, "%s: %" PRIu64 " more ranks\n", what, absent->count - absent->told);
}

static json_t *rank_json(const struct archive_absent_rank *rank)
{
	json_t *object =
		json_pack("{s:s, s:s}", "instance", rank->instance, "level", levels[rank->level]);

	for (uint32_t level = 0; object && level < ARCHIVE_RANK_LEVELS; level++)
		json_object_set_new(object, levels[level],
				    level > rank->level ? json_null()
							: json_pack("[i, i]", rank->index[level],
								    rank->size[level]));
	return object;
}

json_t *absent_ranks_json(const struct archive_absent_ranks *absent)
{
	json_t *told = json_array();

	for (uint32_t i = 0; told && i < absent->told; i++)
		json_array_append_new(told, rank_json(&absent->rank[i]));
	return json_pack("{s:o, s:o}", "ranks", json_u64(absent->count), "told", told);
}
