/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prime-rl takes: msgpack, a message a request, one behind the other.
 *
 * Seen in https://github.com/PrimeIntellect-ai/prime-rl:
 *  - src/prime_rl/transport/routed_experts.py at cd4ec228164fa9ea15791c2d20adb6b0c7b40712: a
 *    msgspec structure RoutedExperts of shape, data and dtype; dtype must be "int16", shape
 *    [seq_len, num_layers, topk], data the raw bytes. align_routed_experts() takes as many
 *    rows as there are tokens, or one fewer, and appends zeros.
 *  - src/prime_rl/transport/types.py at the same commit: TrainingSample.routed_experts,
 *    "[seq_len, layers, topk]".
 *  - src/prime_rl/trainer/models/layers/moe/routing.py at
 *    1654689c6aa3acc5de68c4d2469b5b714c48bacf: the ids index the router's scores as they are
 *    (gather), so -1 is out of bounds, and any expert is replayed.
 * That the layers are all of the model's, dense ones ignored, is said by a comment in its
 * model code ("indexed by global layer index"), seen in an excerpt without path or commit.
 * There is no place for a mask, so --missing says what stands there.
 *
 * The message is a map: request_id, tokens, prompt_tokens (nil: unknown), and routed_experts as above.
 * msgpack's source: https://github.com/msgpack/msgpack/blob/master/spec.md.
 */
#include <errno.h>
#include <string.h>

#include "archive/export/ids.h"
#include "archive/export/single.h"

#define HEAD_BYTES (R3RING_TEXT_ID_MAX * 4u + 512u)

const struct export_format export_prime_rl = {
	.name = "prime-rl",
	.summary = "msgpack: {shape, data, dtype: int16} a request, all layers",
	.tensor = "routed_experts",
	.dtype = EXPORT_I16,
	.fixed = true,
	.whole = true,
	.rows = EXPORT_ROWS_MINUS_ONE,
	.layers = EXPORT_LAYERS_ALL,
	.pad = EXPORT_FILL_ZEROS,
	.missing =
		{
			[EXPORT_FILL_MINUS_ONE] = {true,
						   "prime-rl takes every id for an expert, and -1 "
						   "is none: give --missing zeros or arange, which "
						   "it replays, or leave --missing out"},
			[EXPORT_FILL_ZEROS] =
				{.why = "prime-rl has no mask: it replays expert 0 there"},
			[EXPORT_FILL_ARANGE] =
				{.why = "prime-rl has no mask: it replays experts 0, 1, ... there"},
		},
	.container = &export_msgpack_container,
};

/* ---- words of msgpack ---------------------------------------------------- */

struct words {
	uint8_t byte[HEAD_BYTES];
	size_t used;
};

/* A type and a big-endian number behind it. */
static void put_type(struct words *words, uint8_t type, uint32_t number, unsigned int bytes)
{
	words->byte[words->used++] = type;
	while (bytes--)
		words->byte[words->used++] = (uint8_t)(number >> (8 * bytes));
}

static void put_text(struct words *words, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes < 32)
		put_type(words, (uint8_t)(0xA0 | bytes), 0, 0);
	else
		put_type(words, 0xDA, (uint32_t)bytes, 2);
	memcpy(words->byte + words->used, text, bytes);
	words->used += bytes;
}

static void put_number(struct words *words, const char *key, uint32_t number)
{
	put_text(words, key);
	put_type(words, 0xCE, number, 4);
}

static void put_head(struct words *words, const struct export_plan *plan,
		     const struct export_request *request, uint32_t bytes)
{
	const uint32_t shape[3] = {request->rows, plan->layers, plan->top_k};

	put_type(words, 0x84, 0, 0);
	put_text(words, "request_id");
	put_text(words, request->id);
	put_number(words, "tokens", request->info->tokens);
	if (request->info->prompt_tokens == R3RING_UNKNOWN_U32) {
		put_text(words, "prompt_tokens");
		put_type(words, 0xC0, 0, 0);
	} else {
		put_number(words, "prompt_tokens", request->info->prompt_tokens);
	}
	put_text(words, plan->format->tensor);
	put_type(words, 0x83, 0, 0);
	put_text(words, "shape");
	put_type(words, 0x93, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		put_type(words, 0xCE, shape[i], 4);
	put_text(words, "dtype");
	put_text(words, "int16");
	put_text(words, "data");
	put_type(words, 0xC6, bytes, 4);
}

/* ---- requests and rows -------------------------------------------------- */

static int msgpack_request(struct export_writer *writer, const struct export_request *request,
			   struct r3ring_error *err)
{
	const uint64_t bytes = request->rows * (uint64_t)writer->plan->row_bytes;
	struct words words = {.used = 0};
	char id[EXPORT_ID_WORDS];

	if (bytes > UINT32_MAX)
		return r3ring_error_set(err, -EFBIG,
					"request '%s' has %llu bytes of routes, and msgpack's data "
					"end at 4 GiB: export safetensors",
					export_id_words(id, request->id),
					(unsigned long long)bytes);
	put_head(&words, writer->plan, request, (uint32_t)bytes);
	return export_file_append(&writer->file, words.byte, words.used, err);
}

const struct export_container export_msgpack_container = {
	.open = export_single_stream,
	.begin = export_single_begin,
	.request = msgpack_request,
	.rows = export_single_rows,
	.request_end = export_single_request_end,
	.finish = export_single_finish,
	.close = export_single_close,
};
