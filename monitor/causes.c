/* SPDX-License-Identifier: Apache-2.0 */
#include <r3ring/record.h>

#include "monitor/causes.h"

static const struct {
	const char *meaning, *remedy;
} causes[R3RING_CAUSE_COUNT] = {
	[R3RING_CAUSE_NONE] = {"a cause that this program does not know",
			       "use an r3ring as new as the daemon"},
	[R3RING_CAUSE_BUFFER_FULL] = {"the engine's capture buffer, or its 256 slots, had no room: "
				      "the daemon drains slower than the model runs",
				      "larger `buffer_bytes`; a core for the daemon"},
	[R3RING_CAUSE_QUEUE_FULL] = {"the submission queue had no room for the step's token map",
				     "larger `queue_bytes`; a core for the daemon"},
	[R3RING_CAUSE_RING_FULL] = {"a lossless reader held the ring back, with "
				    "`--lossless-policy drop`",
				    "a larger ring, a faster reader, or lossy reading"},
	[R3RING_CAUSE_PRODUCER_DIED] = {"the engine died with the step open", "look at the engine"},
	[R3RING_CAUSE_DAEMON_RESTART] = {"these steps fell between two daemons",
					 "look at the daemon's log"},
	[R3RING_CAUSE_COPY_FAILED] = {"the GPU refused the copy out of the buffer, or its context "
				      "was spoiled",
				      "the daemon's log has the error; GPU health (`nvidia-smi -q`,"
				      " `dmesg`)"},
	[R3RING_CAUSE_TOO_BIG] =
		{"a step had more rows than `max_rows` of the schema; or this is a "
		 "replay, and its archive does not say why",
		 "open the producer with the engine's real maximum; of a replay "
		 "`r3ring replay` tells how many"},
	[R3RING_CAUSE_CONFLICT] = {"two primary sources gave different ids for one row",
				   "two ranks that claim to be primary: set `replica`"},
	[R3RING_CAUSE_NOT_CAPTURED] = {"no row of the layer came",
				       "the module's hook was bypassed: a fused kernel, another "
				       "code path"},
	[R3RING_CAUSE_TOO_FEW_ROWS] = {"fewer rows came than the step ran",
				       "a micro-batch or shard without capture; wrong "
				       "`row_offset`"},
	[R3RING_CAUSE_OVERLAP] = {"rows came twice, or more than the step ran",
				  "wrong `row_offset`; a layer run twice in a step"},
};

const char *cause_meaning(uint32_t cause)
{
	return causes[cause < R3RING_CAUSE_COUNT ? cause : R3RING_CAUSE_NONE].meaning;
}

const char *cause_remedy(uint32_t cause)
{
	return causes[cause < R3RING_CAUSE_COUNT ? cause : R3RING_CAUSE_NONE].remedy;
}
