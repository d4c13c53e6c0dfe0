/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small ring segment in a memfd that a test may spoil anywhere, and a reader
 * that goes through it in every way there is. The parts of a segment that mean
 * anything, without the padding between them, are its image.
 */
#ifndef TESTS_SUPPORT_SEGMENT_IMAGE_H
#define TESTS_SUPPORT_SEGMENT_IMAGE_H

#include <stdint.h>

#include <r3ring/abi.h>

#define SEGMENT_IMAGE_DEPTH 16u
#define SEGMENT_IMAGE_ARENA 4096u
#define SEGMENT_IMAGE_BYTES (4u * R3RING_REGION_ALIGN)

struct segment_image {
	struct r3ring_segment_header header;
	struct r3ring_writer_lines lines;
	struct r3ring_desc descs[SEGMENT_IMAGE_DEPTH];
	uint8_t arena[SEGMENT_IMAGE_ARENA];
};

/* Image of a ring that a real writer has filled with @records records. Ends the
 * process when it cannot. */
void segment_image_make(struct segment_image *image, unsigned int records);

/* Likewise of one that holds what a daemon writes: a small record of every type that fits. */
void segment_image_make_capture(struct segment_image *image);

/* Makes the checksums of all descriptors right again. */
void segment_image_seal(struct segment_image *image);

/* A memfd as large as a segment of this shape; ends the process when it cannot. */
int segment_image_fd(void);
/* Its memory, to be written; likewise. */
uint8_t *segment_image_map(int fd);

/* Puts the parts of an image where they belong. */
void segment_image_put(uint8_t *memory, const struct segment_image *image);

/* Where they belong. */
struct r3ring_writer_lines *segment_image_lines(uint8_t *memory);
struct r3ring_desc *segment_image_descs(uint8_t *memory);

struct segment_reading {
	uint64_t opened, got, lost, corrupt;
	uint64_t endless; /* readings that had no end; */
	uint64_t untold;  /* and that were told nothing of what an intent hides: of a ring that lies
			   * still, both are wrong */
	uint64_t wrong;   /* accounts that do not add up, payloads outside of the segment */
	unsigned int sum; /* of all bytes seen: keeps the looks from being left out */
};

/*
 * Goes on with it as a daemon does after the death of the one that made it: adopts it,
 * reads what was published, writes more. @name: of the segment, which is there.
 */
void segment_image_adopt(const char *name, struct segment_reading *reading);

/* Opens it as a reader does and reads in every mode, from every start, a bounded
 * number of records; adds to @reading what came of it. */
void segment_image_read(int fd, struct segment_reading *reading);

#endif
