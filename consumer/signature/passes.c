/* SPDX-License-Identifier: Apache-2.0 */
/* Which pass over a position counts, where a request has several attempts: as when it is given out. */
#include "consumer/assembler/choose.h"
#include "consumer/signature/signature.h"

/* Those of the request, as they stand; NULL without memory. */
static const struct r3ring_assembled *passes_of(struct r3ring_signatures *signatures,
						struct request *request)
{
	struct r3ring_assembler *assembler = signatures->assembler;
	struct r3ring_assembled *passes = &signatures->passes;

	/* Each span of a step, and whatever is said of a request, moves the clock on. */
	if (passes->request == request && signatures->passes_at == assembler->touches)
		return passes;
	passes->assembler = assembler;
	passes->request = request;
	passes->policy = assembler->options.policy;
	passes->joined = assembler->options.min_ends > 0;
	signatures->passes_at = assembler->touches;
	if (assembled_find_passes(assembler, passes) == 0)
		return passes;
	passes->request = NULL;
	return NULL;
}

bool signature_is_first(struct r3ring_signatures *signatures, const struct placed_row *placed)
{
	const struct r3ring_assembled *passes;

	if (!placed->attempt->number)
		return true;
	passes = passes_of(signatures, placed->part->request);
	return passes && choose_may_be_first(passes, placed->attempt->number, placed->position);
}

uint32_t signature_kept_before(struct r3ring_signatures *signatures,
			       const struct placed_row *placed)
{
	const struct r3ring_assembled *passes = passes_of(signatures, placed->part->request);
	uint32_t most = 0;

	if (!passes)
		return UINT32_MAX;
	for (uint32_t i = 0; i < passes->passes; i++) {
		const struct pass *pass = &passes->pass[i];

		if (pass->number < placed->attempt->number && pass->kept > most)
			most = pass->kept;
	}
	return most;
}

/* The last token was sampled, and need not have been fed back. */
static bool is_not_fed(const struct r3ring_assembled *passes, uint32_t position)
{
	struct chosen chosen;

	choose(passes, position, &chosen);
	return chosen.cause == R3RING_MISSING_NOT_FED;
}

uint32_t signature_length(struct r3ring_signatures *signatures, struct request *request)
{
	struct r3ring_assembled *passes = &signatures->passes;
	uint32_t length = 0;

	request_trim(signatures->assembler, request);
	passes->request = NULL;
	if (passes_of(signatures, request)) {
		assembled_find_length(signatures->assembler, passes);
		length = passes->info.tokens;
		length -= length && is_not_fed(passes, length - 1);
	}
	/* It goes. */
	passes->request = NULL;
	return length;
}
