/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: what the records themselves say of losses and layers. */
#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#include "consumer/layers.h"
#include "tools/record.h"
#include "tools/status_table.h"

bool record_content_tells(const struct r3ring_view *view)
{
	return channel_losses_takes(view->type);
}

void record_content_note(struct record_report *report, struct channel_losses *losses,
			 const struct r3ring_view *view)
{
	struct r3ring_record record;
	int code = r3ring_record_decode(&record, view->type, view->data, view->len, NULL);

	report->unreadable += code == -EBADMSG;
	if (code || view->flags & R3RING_DESC_REPEATED ||
	    (!record_content_tells(view) && view->type != R3RING_STEP_END))
		return;
	if (view->type == R3RING_STEP_END)
		report->partial_steps += record.u.step_end.head.status == R3RING_STEP_PARTIAL;
	channel_losses_record(losses, &record, true);
}

int record_content_rank(struct archive_ranks *ranks, const char *channel,
			const struct r3ring_view *view)
{
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		return 0;
	return archive_ranks_note(ranks, channel, &record.u.schema.head);
}

static void tell_layers(const char *channel, const struct archive_writer_options *archive,
			const struct r3ring_record *record)
{
	json_t *ids = json_array();

	for (uint32_t i = 0; i < record->u.schema.head.layers; i++) {
		if (record->u.schema.layers[i].kind != R3RING_LAYER_MTP)
			json_array_append_new(ids,
					      json_integer(record->u.schema.layers[i].layer_id));
	}
	fprintf(stderr, "r3ring record: %s has none of the layers %u:%u (--layers); it has ",
		channel, archive->layer_first, archive->layer_end);
	status_table_layers(stderr, ids);
	fputc('\n', stderr);
	json_decref(ids);
}

void record_content_schema(struct record_report *report, const char *channel,
			   const struct archive_writer_options *archive,
			   const struct r3ring_view *view)
{
	struct r3ring_record record;
	uint64_t kept = 0;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL))
		return;
	for (uint32_t i = 0; i < record.u.schema.head.layers; i++)
		kept += layers_among(&record.u.schema.layers[i], archive->layer_first,
				     archive->layer_end);
	report->schemas++;
	report->layers += kept;
	if (!kept)
		tell_layers(channel, archive, &record);
}
