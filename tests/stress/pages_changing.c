/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer's pages and buffer that change while the drain thread takes them: a second
 * thread stores random bytes anywhere in lanes, bells, words and buffer, and puts right
 * ones back. Readers must be told a story that holds together; nothing may be read
 * outside of what was mapped, which AddressSanitizer sees (make check-asan).
 *
 *	pages_changing [SECONDS [SEED]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/drain_image.h"

#define SECONDS 3u

/* With a view of its own, so that ThreadSanitizer knows it for another process. */
struct spoiler {
	struct pages pages;
	uint8_t *buffer;
	const struct drain_image *right;
	uint64_t seed;
	uint32_t over;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* ---- the producer that cannot keep still ---------------------------------- */

/* A word of the part, or what it was. */
static void spoil(void *part, const void *right, size_t bytes, uint64_t *seed)
{
	size_t at = next_random(seed) % (bytes / sizeof(uint64_t));
	uint64_t value;

	if (next_random(seed) % 2)
		value = next_random(seed) >> next_random(seed) % 64;
	else
		memcpy(&value, (const uint8_t *)right + at * sizeof(value), sizeof(value));
	r3ring_store_relaxed_u64((uint64_t *)part + at, value);
}

static void spoil_something(struct spoiler *spoiler)
{
	const struct drain_image *right = spoiler->right;
	struct pages *pages = &spoiler->pages;

	switch (next_random(&spoiler->seed) % 5) {
	case 0:
		spoil(pages->words, &right->words, sizeof(right->words), &spoiler->seed);
		break;
	case 1:
		spoil(pages->step_lane, right->steps, sizeof(right->steps), &spoiler->seed);
		break;
	case 2:
		spoil(pages->side_lane, right->sides, sizeof(right->sides), &spoiler->seed);
		break;
	case 3:
		spoil(pages->bells, right->bells, sizeof(right->bells), &spoiler->seed);
		break;
	default:
		spoil(spoiler->buffer, right->buffer, sizeof(right->buffer), &spoiler->seed);
		break;
	}
}

static void open_views(struct spoiler *spoiler, const struct drain_image_rig *rig)
{
	struct r3ring_error err;
	void *buffer = mmap(NULL, rig->buffer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    rig->buffer.fd, 0);

	if (buffer == MAP_FAILED ||
	    pages_attach(&spoiler->pages, dup(rig->pages.fd), rig->pages.bytes, &err) < 0) {
		fprintf(stderr, "pages_changing: no second view of the pages\n");
		exit(1);
	}
	spoiler->buffer = buffer;
}

static void *spoil_on(void *ctx)
{
	struct spoiler *spoiler = ctx;

	/* Pairs with the release in main(). */
	while (!r3ring_load_acquire_u32(&spoiler->over))
		spoil_something(spoiler);
	return NULL;
}

/* ---- the daemon ------------------------------------------------------------ */

struct tally {
	uint64_t runs, failed, refused, records, steps;
};

/* Returns what no reader may see, NULL when nothing was. */
static const char *run_once(struct drain_image_rig *rig, const struct drain_image *right,
			    uint64_t *seed, struct tally *tally)
{
	const uint64_t random = next_random(seed);
	const struct drain_image_run run = {
		.wraps = random & 1,
		.resumed = random & 2,
		.drop = random & 4,
		.producer = random & 8 ? DRAIN_PRODUCER_DIED : DRAIN_PRODUCER_CLOSED,
	};
	struct drain_image_result result;

	drain_image_work(rig, right, &run, NULL, NULL, &result);
	tally->runs++;
	tally->failed += result.failed;
	tally->refused += result.refused;
	tally->records += result.records;
	tally->steps += result.steps;
	return result.wrong;
}

static uint64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

int main(int argc, char **argv)
{
	static struct drain_image_rig rig;
	static struct drain_image right;
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : SECONDS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	struct spoiler spoiler = {.right = &right, .seed = seed | 1};
	uint64_t end = now_s() + seconds, runs_seed = seed * 2 + 1;
	const char *wrong = NULL;
	struct tally tally = {0};
	pthread_t thread;

	printf("pages_changing: seed %llu\n", (unsigned long long)seed);
	drain_image_open(&rig);
	drain_image_make(&right);
	open_views(&spoiler, &rig);
	pthread_create(&thread, NULL, spoil_on, &spoiler);
	while (!wrong && now_s() < end)
		wrong = run_once(&rig, &right, &runs_seed, &tally);
	/* Pairs with the acquire in spoil_on(). */
	r3ring_store_release_u32(&spoiler.over, 1);
	pthread_join(thread, NULL);
	pages_release(&spoiler.pages);
	munmap(spoiler.buffer, rig.buffer.bytes);
	drain_image_close(&rig);
	printf("pages_changing: %llu runs, %llu cut off, %llu refused, %llu steps, %llu records\n",
	       (unsigned long long)tally.runs, (unsigned long long)tally.failed,
	       (unsigned long long)tally.refused, (unsigned long long)tally.steps,
	       (unsigned long long)tally.records);
	if (wrong)
		printf("pages_changing: %s\n", wrong);
	return wrong ? 1 : 0;
}
