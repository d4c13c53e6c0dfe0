/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump: which records are wanted, and whose a request's are. */
#include <string.h>

#include "tools/dump.h"

bool dump_wants(const struct dump_layer *layer, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;

	if (layer->all || record->type != R3RING_LAYER)
		return true;
	return head->layer_id == layer->id && (head->kind == R3RING_LAYER_MTP) == layer->mtp;
}

bool dump_has_layer(const struct dump_layer *layer, const struct r3ring_record *record)
{
	for (uint32_t i = 0; i < record->u.schema.head.layers; i++) {
		const struct r3ring_layer_entry *entry = &record->u.schema.layers[i];

		if (entry->layer_id == layer->id && (entry->kind == R3RING_LAYER_MTP) == layer->mtp)
			return true;
	}
	return layer->all;
}

const char *dump_request_id(const struct dump_item *item, size_t *len)
{
	const struct r3ring_request_record *head = &item->record->u.request.head;
	const char *id = item->record->u.request.id;

	*len = head->id_len;
	if (*len)
		return id;
	id = item->requests ? r3ring_requests_id(item->requests, head->handle) : NULL;
	*len = id ? strlen(id) : 0;
	return id;
}
