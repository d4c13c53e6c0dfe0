/* SPDX-License-Identifier: Apache-2.0 */
/* Requests made of a text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "producer/reference/weights.h"
#include "producer/reference/workload.h"

#define WORKLOAD_PURPOSE 16
#define PREEMPTED_EVERY 8
#define PREEMPTED_FIRST 5

static void plan_request(struct workload_request *request, uint32_t index, uint64_t seed,
			 size_t text_tokens)
{
	uint64_t key = weight_key(seed, WORKLOAD_PURPOSE, index);
	uint32_t output = 8 + (uint32_t)(weight_word(key, 1) % 64);

	snprintf(request->id, sizeof(request->id), "req-%04u", index);
	request->prompt_tokens = 16 + (uint32_t)(weight_word(key, 0) % 240);
	request->rows = request->prompt_tokens + output - 1;
	request->source = weight_word(key, 2) % text_tokens;
	request->arrival = 2 * index;
	if (index % PREEMPTED_EVERY == PREEMPTED_FIRST)
		request->preempt_after = request->prompt_tokens + output / 2;
}

int workload_from_text(struct workload *workload, const struct tokens *text, uint32_t count,
		       uint64_t seed, struct r3ring_error *err)
{
	struct workload_request *requests;

	if (count < 1 || count > WORKLOAD_REQUESTS_MAX)
		return r3ring_error_set(err, -EINVAL, "%u requests: --requests takes 1 to %u",
					count, WORKLOAD_REQUESTS_MAX);
	requests = calloc(count, sizeof(*requests));
	if (!requests)
		return r3ring_error_set(err, -ENOMEM, "no memory for %u requests", count);
	for (uint32_t i = 0; i < count; i++)
		plan_request(&requests[i], i, seed, text->count);
	*workload = (struct workload){.requests = requests, .count = count, .text = text};
	return 0;
}

void workload_free(struct workload *workload)
{
	free(workload->requests);
	*workload = (struct workload){0};
}

int32_t workload_token(const struct workload *workload, const struct workload_request *request,
		       uint32_t position)
{
	uint64_t place = request->source + (position - request->first_position);

	if (!workload->text)
		return (int32_t)place;
	return workload->text->ids[place % workload->text->count];
}

uint32_t workload_accepted(const struct workload_request *request)
{
	return request->first_position + request->rows + 1;
}

uint64_t workload_rows(const struct workload *workload)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < workload->count; i++)
		rows += workload->requests[i].rows;
	return rows;
}
