/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer's pages and buffer that a test may spoil anywhere, and the daemon's drain
 * thread that works them off into a ring. The parts that mean anything, without the
 * padding between them, are an image; its lanes may begin anywhere in the real ones.
 */
#ifndef TESTS_SUPPORT_DRAIN_IMAGE_H
#define TESTS_SUPPORT_DRAIN_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture_daemon/drain.h"

#define DRAIN_IMAGE_LAYERS 3u
#define DRAIN_IMAGE_TOP_K 4u
#define DRAIN_IMAGE_EXPERTS 64u
#define DRAIN_IMAGE_MAX_ROWS 32u
#define DRAIN_IMAGE_ROWS 4u
#define DRAIN_IMAGE_STEPS 3u
#define DRAIN_IMAGE_LANE 3072u
#define DRAIN_IMAGE_SLOTS 4u
#define DRAIN_IMAGE_BELLS (DRAIN_IMAGE_SLOTS * (64u + DRAIN_IMAGE_LAYERS * 32u))
#define DRAIN_IMAGE_BUFFER 2048u

struct drain_image {
	struct pages_words words;
	uint8_t steps[DRAIN_IMAGE_LANE];
	uint8_t sides[DRAIN_IMAGE_LANE];
	uint8_t bells[DRAIN_IMAGE_BELLS];
	uint8_t buffer[DRAIN_IMAGE_BUFFER]; /* its beginning; the rest is zero */
};

/* How it is worked off. */
struct drain_image_run {
	bool wraps;   /* the lanes' first entries lie right before their ends */
	bool resumed; /* the producer comes back after another daemon */
	bool drop;    /* --lossless-policy drop */
	bool late;    /* all is submitted behind the last look of a thread that was told to end */
	enum drain_producer producer; /* what became of it; not ALIVE, or the run has no end */
};

struct drain_image_result {
	uint64_t records, steps;
	bool refused;      /* the pages were not taken */
	bool failed;       /* the producer was cut off */
	const char *wrong; /* what no reader may see, NULL when nothing is */
};

/* Three steps, whole, dropped and half, with requests, spans, an EPLB map, a key copy and
 * a schema among them. */
void drain_image_make(struct drain_image *image);

/* Makes the heads of entries, their numbers and the lanes' heads right again, as far
 * as there are entries at all; payloads stay. */
void drain_image_frame(struct drain_image *image);

/* Pages, buffer and so on, made once and used by every run; end the process when they
 * cannot be made. */
struct drain_image_rig {
	struct pages pages;
	struct device *device;
	struct device_buffer buffer;
	struct r3ring_segment *segment;
	struct r3ring_record schema;
	struct r3ring_layer_entry layers[DRAIN_IMAGE_LAYERS];
};
void drain_image_open(struct drain_image_rig *rig);
void drain_image_close(struct drain_image_rig *rig);

/*
 * Puts the image into the pages and lets a drain thread work it off, up to CLOSED; then
 * reads the ring. @meanwhile (may be NULL) is called between the thread's start and
 * waiting for its end.
 */
void drain_image_work(struct drain_image_rig *rig, const struct drain_image *image,
		      const struct drain_image_run *run, void (*meanwhile)(void *ctx), void *ctx,
		      struct drain_image_result *result);

#endif
