/* SPDX-License-Identifier: Apache-2.0 */
/* A ring is lapped. */
#include <poll.h>

#include <r3ring/ring.h>

#include "tests/support/channel_status.h"
#include "tests/support/lap.h"

#define LOOKS 60000
#define LOOK_MS 1
#define STEPS_A_LOOK 10

static struct r3ring_segment *segment_of(const char *dir, const char *channel)
{
	json_t *status = channel_status(dir, channel);
	const char *name = json_string_value(json_object_get(status, "segment"));
	struct r3ring_segment *segment = NULL;

	if (name && r3ring_segment_open(&segment, name, NULL) < 0)
		segment = NULL;
	json_decref(status);
	return segment;
}

bool engine_lap(struct engine *engine, const char *dir, const char *channel, uint32_t rows,
		uint64_t records)
{
	struct r3ring_segment *segment = segment_of(dir, channel);
	uint64_t last;
	bool lapped = false;

	if (!segment)
		return false;
	last = r3ring_segment_tail(segment) + records;
	for (int looks = 0; looks < LOOKS && !lapped; looks++) {
		for (int i = 0; i < STEPS_A_LOOK; i++)
			engine_step(engine, 0, rows);
		poll(NULL, 0, LOOK_MS);
		lapped = r3ring_segment_oldest(segment) > last;
	}
	r3ring_segment_close(segment);
	return lapped;
}
