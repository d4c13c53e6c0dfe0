/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel/socket.h"
#include "consumer/assembler/assembler.h"
#include "consumer/options.h"

#define BYTES_MAX_DEFAULT (UINT64_C(1) << 30)
#define BYTES_MAX (UINT64_MAX / 4) /* more than there is: sums of it have room */
#define KEYS_MAX_DEFAULT (UINT64_C(1) << 16)
#define TOKENS_MAX_DEFAULT (1u << 20)
#define LATE_STEPS_DEFAULT 64u

static int options_take(struct r3ring_assembler_options *to,
			const struct r3ring_assembler_options *from, struct r3ring_error *err)
{
	int r = options_copy(to, from, sizeof(*to), err);

	if (r < 0)
		return r;
	r = options_check_switch("keys_go_first", to->keys_go_first, err);
	if (r < 0)
		return r;
	if (to->policy != R3RING_ROWS_FIRST && to->policy != R3RING_ROWS_LATEST)
		return r3ring_error_set(err, -EINVAL, "policy: %d is none", (int)to->policy);
	if (!to->max_bytes)
		to->max_bytes = BYTES_MAX_DEFAULT;
	if (to->max_bytes > BYTES_MAX)
		to->max_bytes = BYTES_MAX;
	if (!to->max_keys)
		to->max_keys = KEYS_MAX_DEFAULT;
	if (!to->max_tokens)
		to->max_tokens = TOKENS_MAX_DEFAULT;
	if (!to->late_steps)
		to->late_steps = LATE_STEPS_DEFAULT;
	return 0;
}

int r3ring_assembler_create(struct r3ring_assembler **assembler,
			    const struct r3ring_assembler_options *options,
			    struct r3ring_error *err)
{
	struct r3ring_assembler *created;
	int r;

	if (!assembler)
		return r3ring_error_set(err, -EINVAL, "r3ring_assembler_create: assembler is NULL");
	created = calloc(1, sizeof(*created));
	if (!created)
		return r3ring_error_set(err, -ENOMEM, "out of memory");
	r = options_take(&created->options, options, err);
	if (r < 0) {
		free(created);
		return r;
	}
	created->memory.most = created->options.max_bytes;
	*assembler = created;
	return 0;
}

static void channel_free(struct channel *channel)
{
	struct row_pool *pool;

	key_store_clear(&channel->keys);
	free(channel->order);
	if (channel->spare)
		item_free(channel->spare);
	while (channel->pools) {
		pool = channel->pools;
		channel->pools = pool->next;
		row_pool_destroy(pool);
	}
	free(channel->run);
	free(channel->ended);
	free(channel->name);
	free(channel);
}

void r3ring_assembler_destroy(struct r3ring_assembler *assembler)
{
	struct r3ring_assembled *given;

	if (!assembler)
		return;
	r3ring_assembler_flush(assembler);
	while ((given = r3ring_assembler_take(assembler)))
		r3ring_assembled_free(given);
	for (uint32_t i = 0; i < assembler->channels; i++)
		channel_free(assembler->channel[i]);
	free(assembler->channel);
	free(assembler);
}

static struct channel *channel_create(const char *name, bool draft, uint32_t index,
				      uint64_t max_keys, struct memory *memory)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->name = strdup(name);
	if (!channel->name) {
		free(channel);
		return NULL;
	}
	channel->index = index;
	channel->draft = draft;
	channel->memory = memory;
	channel->keys.most = max_keys;
	channel->keys.memory = memory;
	return channel;
}

/* Index of the first channel of the instance. */
static uint32_t instance_of(const struct r3ring_assembler *assembler, const char *name)
{
	size_t len = (size_t)(strchr(name, '/') - name) + 1;
	uint32_t i = 0;

	while (i < assembler->channels && strncmp(assembler->channel[i]->name, name, len) != 0)
		i++;
	return i;
}

int r3ring_assembler_channel(struct r3ring_assembler *assembler, const char *name)
{
	struct r3ring_channel_name parsed;
	struct channel **table;

	if (!name || channel_name_parse(&parsed, name, NULL) < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < assembler->channels; i++)
		if (strcmp(assembler->channel[i]->name, name) == 0)
			return (int)i;
	table = realloc(assembler->channel, (assembler->channels + 1) * sizeof(*table));
	if (!table)
		return -ENOMEM;
	assembler->channel = table;
	table[assembler->channels] = channel_create(name, parsed.draft, assembler->channels,
						    assembler->options.max_keys,
						    &assembler->memory);
	if (!table[assembler->channels])
		return -ENOMEM;
	table[assembler->channels]->instance = instance_of(assembler, name);
	table[assembler->channels]->came_late = assembler->let_go_early;
	return (int)assembler->channels++;
}

void r3ring_assembler_get_stats(const struct r3ring_assembler *assembler,
				struct r3ring_assembler_stats *stats)
{
	*stats = assembler->stats;
	stats->bytes = assembler->memory.held;
	for (uint32_t i = 0; i < assembler->channels; i++) {
		const struct key_store *keys = &assembler->channel[i]->keys;

		stats->keys += HASH_COUNT(keys->keys);
		stats->keys_forgotten += keys->forgotten;
	}
}
