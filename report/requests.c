/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/requests.h"

bool request_cause_is_loss(uint32_t cause)
{
	return cause != R3RING_MISSING_NOT_FED && cause != R3RING_MISSING_EXTERNAL &&
	       cause != R3RING_MISSING_NOT_RECORDED;
}

int request_table_make(struct request_table *table, uint32_t most)
{
	*table = (struct request_table){.most = most};
	table->row = calloc(most ? most : 1, sizeof(*table->row));
	return table->row ? 0 : -ENOMEM;
}

static void free_row(struct request_row *row)
{
	free(row->id);
	free(row->session);
	*row = (struct request_row){0};
}

void request_table_free(struct request_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free_row(&table->row[i]);
	free(table->row);
	*table = (struct request_table){0};
}

/* Whether @row is told rather than @other: more was lost, or it ended earlier. */
static bool comes_first(const struct request_row *row, const struct request_row *other)
{
	return row->lost != other->lost ? row->lost > other->lost : row->number < other->number;
}

static void find_least(struct request_table *table)
{
	table->least = 0;
	for (uint32_t i = 1; i < table->count; i++)
		if (comes_first(&table->row[table->least], &table->row[i]))
			table->least = i;
}

static int fill(struct request_row *row, const struct r3ring_assembled_info *info)
{
	row->id = strdup(info->id);
	row->session = strdup(info->session);
	row->tokens = info->tokens;
	row->prompt_tokens = info->prompt_tokens;
	row->attempts = info->attempts;
	row->flags = info->flags;
	row->cells = info->cells;
	row->valid = info->cells_valid;
	memcpy(row->missing, info->cells_missing, sizeof(row->missing));
	return row->id && row->session ? 0 : -ENOMEM;
}

int request_table_take(struct request_table *table, const struct r3ring_assembled_info *info,
		       uint64_t end_ns)
{
	struct request_row row = {.number = ++table->seen, .end_ns = end_ns};
	bool full = table->count == table->most;

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		row.lost += request_cause_is_loss(cause) ? info->cells_missing[cause] : 0;
	if (full && (!table->most || !comes_first(&row, &table->row[table->least])))
		return 0;
	if (fill(&row, info) < 0) {
		free_row(&row);
		return -ENOMEM;
	}
	if (full)
		free_row(&table->row[table->least]);
	table->row[full ? table->least : table->count++] = row;
	if (table->count == table->most)
		find_least(table);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct request_row *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

void request_table_sort(struct request_table *table)
{
	qsort(table->row, table->count, sizeof(*table->row), by_number);
}
