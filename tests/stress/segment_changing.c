/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment that a second thread changes while it is read: descriptors with right
 * and with wrong checksums, the writer's words, payloads, the header. The reader
 * may lose records; it may not read outside, hang, or miscount.
 *
 *	segment_changing [SECONDS [SEED]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "ring/internal.h"
#include "tests/support/segment_image.h"

#define HANG_S 30 /* one reading takes less than a millisecond */
#define RIGHT_EVERY 64

struct change {
	uint8_t *memory;
	struct segment_image right;
	uint64_t seed;
	uint32_t stop;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Small, near a right one, or anything. */
static uint64_t lie(uint64_t *seed, uint64_t right)
{
	uint64_t random = next_random(seed);

	switch (random % 4) {
	case 0:
		return right + random / 4 % 64 - 32;
	case 1:
		return random / 4 % 256;
	case 2:
		return right ^ 1ull << (random / 4 % 64);
	default:
		return random;
	}
}

static void store_words(void *to, const void *from, size_t bytes)
{
	const uint64_t *words = from;
	uint64_t *shared = to;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		r3ring_store_relaxed_u64(&shared[i], words[i]);
}

/* One word of a descriptor; its checksum fits two times of three. */
static void change_desc(struct change *change)
{
	uint64_t slot = next_random(&change->seed) % SEGMENT_IMAGE_DEPTH;
	struct r3ring_desc desc = change->right.descs[slot];
	uint64_t words[sizeof(desc) / 8], word;

	memcpy(words, &desc, sizeof(desc));
	word = next_random(&change->seed) % (sizeof(desc) / 8);
	words[word] = lie(&change->seed, words[word]);
	memcpy(&desc, words, sizeof(desc));
	if (next_random(&change->seed) % 3)
		desc.check = desc_checksum(&desc);
	store_words(&segment_image_descs(change->memory)[slot], &desc, sizeof(desc));
}

static void change_line(struct change *change)
{
	static const size_t words[] = {
		offsetof(struct r3ring_writer_lines, intent_pos),
		offsetof(struct r3ring_writer_lines, tail_seq),
		offsetof(struct r3ring_writer_lines, tail_pos),
		offsetof(struct r3ring_writer_lines, wake),
		offsetof(struct r3ring_writer_lines, keyframe_seq),
		offsetof(struct r3ring_writer_lines, boundary_seq),
		offsetof(struct r3ring_writer_lines, closed),
	};
	size_t at = words[next_random(&change->seed) % (sizeof(words) / sizeof(words[0]))];
	uint64_t *word = (void *)((uint8_t *)segment_image_lines(change->memory) + at);

	r3ring_store_relaxed_u64(word, lie(&change->seed, *word));
}

static void change_header(struct change *change)
{
	size_t at = next_random(&change->seed) % (sizeof(change->right.header) / 8);
	uint64_t *word = (uint64_t *)(void *)change->memory + at;
	uint64_t right = *((const uint64_t *)(const void *)&change->right.header + at);

	r3ring_store_relaxed_u64(word, lie(&change->seed, right));
	for (int i = 0; i < RIGHT_EVERY; i++)
		r3ring_cpu_relax();
	r3ring_store_relaxed_u64(word, right);
}

static void put_right(struct change *change)
{
	store_words(change->memory, &change->right.header, sizeof(change->right.header));
	store_words(segment_image_lines(change->memory), &change->right.lines,
		    sizeof(change->right.lines));
	store_words(segment_image_descs(change->memory), change->right.descs,
		    sizeof(change->right.descs));
}

static void *change_on(void *ctx)
{
	struct change *change = ctx;

	/* Pairs with the release in main(). */
	while (!r3ring_load_acquire_u32(&change->stop)) {
		switch (next_random(&change->seed) % RIGHT_EVERY) {
		case 0:
			put_right(change);
			break;
		case 1:
			change_header(change);
			break;
		case 2 ... 20:
			change_line(change);
			break;
		default:
			change_desc(change);
			break;
		}
	}
	return NULL;
}

static int report(const struct segment_reading *reading)
{
	printf("opened %llu, got %llu, lost %llu, corrupt %llu, wrong %llu\n",
	       (unsigned long long)reading->opened, (unsigned long long)reading->got,
	       (unsigned long long)reading->lost, (unsigned long long)reading->corrupt,
	       (unsigned long long)reading->wrong);
	if (!reading->opened || !reading->got || !reading->lost || !reading->corrupt)
		return 1; /* nothing was put to the test */
	return reading->wrong != 0;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	uint64_t seed = (uint64_t)(argc > 2 ? atoll(argv[2]) : getpid());
	struct segment_reading reading = {0};
	struct change change = {.seed = seed * 2654435761u | 1};
	int fd = segment_image_fd();
	pthread_t changer;

	printf("seed %llu\n", (unsigned long long)seed);
	segment_image_make(&change.right, 3 * SEGMENT_IMAGE_DEPTH);
	change.memory = segment_image_map(fd);
	segment_image_put(change.memory, &change.right);
	if (pthread_create(&changer, NULL, change_on, &change)) {
		perror("pthread_create");
		return 1;
	}
	while (time(NULL) < end) {
		alarm(HANG_S);
		segment_image_read(fd, &reading);
	}
	/* Pairs with the acquire in change_on(). */
	r3ring_store_release_u32(&change.stop, 1);
	pthread_join(changer, NULL);
	return report(&reading);
}
