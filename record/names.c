/* SPDX-License-Identifier: Apache-2.0 */
/* Names of types, causes and kinds, as in documents and JSON. */
#include <stddef.h>

#include <r3ring/record.h>

static const char *name_of(const char *const *names, size_t count, uint32_t value)
{
	return value < count && names[value] ? names[value] : "?";
}

#define NAME_OF(names, value) name_of(names, sizeof(names) / sizeof((names)[0]), value)

const char *r3ring_record_type_name(uint16_t type)
{
	static const char *const names[R3RING_RECORD_TYPES] = {
		[R3RING_SCHEMA] = "SCHEMA",     [R3RING_REQUEST] = "REQUEST",
		[R3RING_STEP] = "STEP",         [R3RING_SPANS] = "SPANS",
		[R3RING_ROWS] = "ROWS",         [R3RING_LAYER] = "LAYER",
		[R3RING_STEP_END] = "STEP_END", [R3RING_LOST] = "LOST",
		[R3RING_EPLB] = "EPLB",         [R3RING_KEY_COPY] = "KEY_COPY",
		[R3RING_KEYFRAME] = "KEYFRAME", [R3RING_CLOSED] = "CLOSED",
	};

	return NAME_OF(names, type);
}

const char *r3ring_cause_name(uint32_t cause)
{
	static const char *const names[R3RING_CAUSE_COUNT] = {
		[R3RING_CAUSE_NONE] = "none",
		[R3RING_CAUSE_BUFFER_FULL] = "buffer_full",
		[R3RING_CAUSE_RING_FULL] = "ring_full",
		[R3RING_CAUSE_QUEUE_FULL] = "queue_full",
		[R3RING_CAUSE_PRODUCER_DIED] = "producer_died",
		[R3RING_CAUSE_DAEMON_RESTART] = "daemon_restart",
		[R3RING_CAUSE_COPY_FAILED] = "copy_failed",
		[R3RING_CAUSE_TOO_BIG] = "too_big",
		[R3RING_CAUSE_CONFLICT] = "conflict",
		[R3RING_CAUSE_NOT_CAPTURED] = "not_captured",
		[R3RING_CAUSE_TOO_FEW_ROWS] = "too_few_rows",
		[R3RING_CAUSE_OVERLAP] = "overlap",
	};

	return NAME_OF(names, cause);
}

const char *r3ring_layer_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[R3RING_LAYER_MOE] = "moe",
		[R3RING_LAYER_HASH] = "hash",
		[R3RING_LAYER_MTP] = "mtp",
	};

	return NAME_OF(names, kind);
}

const char *r3ring_span_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[R3RING_SPAN_COMPUTED] = "COMPUTED",
		[R3RING_SPAN_CACHED] = "CACHED",
		[R3RING_SPAN_EXTERNAL] = "EXTERNAL",
	};

	return NAME_OF(names, kind);
}
