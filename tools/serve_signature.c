/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/signature: which experts a request's tokens went to. */
#include <string.h>

#include <microhttpd.h>

#include "tools/json_values.h"
#include "tools/serve_api.h"

static json_t *counts_of(const uint16_t *counts, uint32_t experts)
{
	json_t *list = json_array();

	for (uint32_t expert = 0; expert < experts; expert++)
		json_array_append_new(list, json_integer(counts[expert]));
	return list;
}

static json_t *layers_of(const struct r3ring_signature_info *info)
{
	json_t *layers = json_array();

	for (uint32_t layer = 0; layer < info->layers; layer++) {
		size_t first = (size_t)layer * info->experts;

		json_array_append_new(
			layers, json_pack("{s:i, s:o, s:o}", "layer",
					  (int)info->layer[layer].layer_id, "prefill",
					  counts_of(info->counts[R3RING_SIGNATURE_PREFILL] + first,
						    info->experts),
					  "decode",
					  counts_of(info->counts[R3RING_SIGNATURE_DECODE] + first,
						    info->experts)));
	}
	return layers;
}

static json_t *describe(const struct served *served, const struct r3ring_signature_info *info)
{
	return json_pack("{s:s, s:o, s:i, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:o}",
			 "instance", served_name(served), "request",
			 json_text(info->id, strlen(info->id)), "same_id", (int)info->same_id,
			 "mixed", (info->flags & R3RING_SIGNATURE_MIXED) != 0, "ended",
			 (info->flags & R3RING_SIGNATURE_ENDED) != 0, "end_missed",
			 (info->flags & R3RING_SIGNATURE_END_MISSED) != 0, "prefill_rows",
			 json_u64(info->rows[R3RING_SIGNATURE_PREFILL]), "decode_rows",
			 json_u64(info->rows[R3RING_SIGNATURE_DECODE]), "inherited_rows",
			 json_u64(info->rows_inherited), "missing_rows",
			 json_u64(info->rows_missing), "part_rows", json_u64(info->rows_in_part),
			 "experts", (int)info->experts, "layers", layers_of(info));
}

int api_signature_of(struct served *served, const char *id, struct r3ring_signature *signature)
{
	struct engine_model *model = follower_model(served_follower(served));
	int r = r3ring_signatures_get(model->signatures, id, signature);

	engine_model_put(model);
	return r;
}

void api_signature(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	const char *id = http_query(request, "request");
	struct r3ring_signature *signature = NULL;
	uint32_t first, end;

	if (!id || !id[0]) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "which request? ?request=ID");
		return;
	}
	if (!api_instances(api, request, &first, &end, answer))
		return;
	if (r3ring_signature_create(&signature) < 0) {
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
		return;
	}
	for (uint32_t i = first; !answer->json && i < end; i++) {
		if (api_signature_of(api->served[i], id, signature) == 0)
			answer->json =
				describe(api->served[i], r3ring_signature_get_info(signature));
	}
	if (!answer->json)
		http_refuse(answer, MHD_HTTP_NOT_FOUND,
			    "no request of that name is known: it did not run here, or long ago");
	r3ring_signature_free(signature);
}
