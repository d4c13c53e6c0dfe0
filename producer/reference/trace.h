/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded routing as a workload: a JSON header beside a raw file of uint16
 * [rows][layers][k], little-endian.
 *
 * The header says: `file` (beside the header), `dtype` ("uint16 little-endian"),
 * `shape` [rows, layers, k], `model`, `num_experts`, `k`, `layer_ids`,
 * `missing_value`, and `requests`: each with `request_id`, `first_row`, `rows`,
 * `prompt_tokens`; where it says `sha256` it is that of the raw file. Row r of a request is the forward at absolute position
 * prompt_tokens + r; the prompt's rows are not in the recording.
 */
#ifndef PRODUCER_REFERENCE_TRACE_H
#define PRODUCER_REFERENCE_TRACE_H

#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#include "producer/reference/workload.h"

struct trace {
	char model[R3RING_MODEL_NAME_MAX + 1];
	uint32_t rows, layer_count, top_k, experts;
	struct r3ring_layer_entry *layers; /* [layer_count] */
	uint16_t *ids;                     /* [rows][layer_count][top_k] */
	struct workload_request *requests;
	uint32_t request_count;
};

/*
 * Reads a header and its file. Every field, the file's size, the requests' rows
 * and each id are checked. Returns 0, an errno (cannot be read), -EBADMSG or
 * -ERANGE (a field is missing or wrong), -EMSGSIZE (the file has another size
 * than the shape says), -EBADMSG (or another sha256), -ENOMEM; @err names the file, the field and the remedy.
 * Free with trace_free().
 */
int trace_read(struct trace *trace, const char *header, struct r3ring_error *err);
void trace_free(struct trace *trace);

/*
 * The recorded requests, @repeat times; round n > 1 appends "~n" to their ids.
 * A row's token is its number in the recording. Returns 0, -EINVAL (@repeat),
 * -ENAMETOOLONG or -ENOMEM. Free with workload_free().
 */
int trace_workload(const struct trace *trace, uint32_t repeat, struct workload *workload,
		   struct r3ring_error *err);

/* A megamoe router's layer function; @ctx is the trace. */
void trace_layer(void *ctx, uint32_t layer, const int32_t *token_ids, uint32_t rows, uint16_t *ids);

#endif
