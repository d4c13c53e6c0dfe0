/* SPDX-License-Identifier: Apache-2.0 */
#include <r3ring/assembler.h>

static const char *const names[] = {
	[R3RING_MISSING_GAP] = "gap",
	[R3RING_MISSING_EXTERNAL] = "external",
	[R3RING_MISSING_UNKNOWN_KEY] = "unknown_key",
	[R3RING_MISSING_NO_EXPERT] = "no_expert",
	[R3RING_MISSING_NOT_RUN] = "not_run",
	[R3RING_MISSING_NOT_FED] = "not_fed",
	[R3RING_MISSING_SPANS] = "spans_unknown",
	[R3RING_MISSING_EVICTED] = "evicted",
	[R3RING_MISSING_OTHER_LAYERS] = "other_layers",
	[R3RING_MISSING_NOT_RECORDED] = "not_recorded",
	[R3RING_MISSING_OTHER_SHARDS] = "other_shards",
};

const char *r3ring_missing_cause_name(uint32_t cause)
{
	if (cause < R3RING_MISSING_GAP)
		return r3ring_cause_name(cause);
	return cause < R3RING_MISSING_CAUSES ? names[cause] : "?";
}
