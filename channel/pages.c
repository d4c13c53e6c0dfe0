/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that a producer shares with the daemon: making, checking, sleeping. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <file_limit.h>
#include <r3ring/atomic.h>
#include <r3ring/record.h>
#include <test_point.h>

#include "channel/pages.h"

#define WORDS_OFFSET 4096u
#define REGION_ALIGN 65536u
#define LANE_MIN 65536u
#define LANE_MAX (1ull << 30)
#define SLOTS_MAX 65536u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define BEGUN_TRIES 64

static uint64_t region_align(uint64_t bytes)
{
	return (bytes + REGION_ALIGN - 1) & ~(uint64_t)(REGION_ALIGN - 1);
}

static bool lane_bytes_fit(uint64_t bytes)
{
	return bytes >= LANE_MIN && bytes <= LANE_MAX && !(bytes & (bytes - 1));
}

static void lay_out(struct pages_header *header, uint32_t layers, uint64_t step_lane_bytes,
		    uint64_t side_lane_bytes)
{
	*header = (struct pages_header){
		.magic = PAGES_MAGIC,
		.version = PAGES_VERSION,
		.slots = PAGES_SLOTS,
		.layers = layers,
		.step_lane_offset = REGION_ALIGN,
		.step_lane_bytes = step_lane_bytes,
		.side_lane_offset = REGION_ALIGN + step_lane_bytes,
		.side_lane_bytes = side_lane_bytes,
		.bells_offset = REGION_ALIGN + step_lane_bytes + side_lane_bytes,
		.bells_bytes = PAGES_SLOTS * extent_slot_bytes(layers),
	};
	header->bytes = region_align(header->bells_offset + header->bells_bytes);
}

/* Takes private copies of the (checked) sizes; @header is no shared memory. */
static void point(struct pages *pages, const struct pages_header *header, int fd, uint8_t *base)
{
	*pages = (struct pages){
		.fd = fd,
		.base = base,
		.bytes = header->bytes,
		.slots = header->slots,
		.layers = header->layers,
		.words = (void *)(base + WORDS_OFFSET),
		.step_lane = base + header->step_lane_offset,
		.step_lane_bytes = header->step_lane_bytes,
		.side_lane = base + header->side_lane_offset,
		.side_lane_bytes = header->side_lane_bytes,
		.bells = base + header->bells_offset,
	};
}

static uint8_t *map(int fd, uint64_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Allocated in full, so that memory that is out is an error here, no SIGBUS. */
static int size_and_seal(int fd, const struct pages_header *header)
{
	if (ftruncate(fd, (off_t)header->bytes))
		return -errno;
	if (fallocate(fd, 0, 0, (off_t)header->bytes))
		return -errno;
	if (pwrite(fd, header, sizeof(*header), 0) != sizeof(*header))
		return -errno;
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

int pages_create(struct pages *pages, uint32_t layers, uint64_t step_lane_bytes,
		 uint64_t side_lane_bytes, struct r3ring_error *err)
{
	struct pages_header header;
	uint8_t *base;
	int fd, ret;

	if (!layers || layers > R3RING_LAYERS_MAX || !lane_bytes_fit(step_lane_bytes) ||
	    !lane_bytes_fit(side_lane_bytes))
		return r3ring_error_set(err, -EINVAL,
					"submission queue of %" PRIu64 " and %" PRIu64
					" bytes for %u layers: "
					"lanes are powers of two from %u to %llu, layers 1 to %u",
					step_lane_bytes, side_lane_bytes, layers, LANE_MIN,
					LANE_MAX, R3RING_LAYERS_MAX);
	lay_out(&header, layers, step_lane_bytes, side_lane_bytes);
	if (!file_limit_allows(header.bytes))
		return r3ring_error_set(err, -EFBIG,
					"submission queue of %" PRIu64 " bytes: " FILE_LIMIT_REMEDY,
					header.bytes);

	fd = memfd_create("r3ring-pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return r3ring_error_set(err, -errno, "memfd_create for the submission queue: %m");
	ret = size_and_seal(fd, &header);
	if (ret)
		goto fail;
	base = map(fd, header.bytes);
	if (base == MAP_FAILED) {
		ret = -errno;
		goto fail;
	}
	point(pages, &header, fd, base);
	return 0;

fail:
	close(fd);
	errno = -ret;
	return r3ring_error_set(err, ret,
				"submission queue of %" PRIu64
				" bytes of shared memory: %m; free memory or raise the limit",
				header.bytes);
}

/* ---- pages of another process ----------------------------------------- */

static int check_memfd(int fd, uint64_t max_bytes, uint64_t *bytes, struct r3ring_error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 && errno == EINVAL)
		return r3ring_error_set(err, -EBADMSG, "producer's pages are no memfd");
	if (seals < 0 || fstat(fd, &st))
		return r3ring_error_set(err, -errno, "producer's pages: %m");
	if ((seals & SEALS) != SEALS)
		return r3ring_error_set(err, -EBADMSG,
					"producer's pages have seals 0x%x; shrink, grow and seal "
					"(0x%x) must be set",
					(unsigned int)seals, (unsigned int)SEALS);
	if (st.st_size < (off_t)(2 * REGION_ALIGN) || (uint64_t)st.st_size > max_bytes)
		return r3ring_error_set(err, -EBADMSG,
					"producer's pages have %lld bytes; %u to %" PRIu64
					" are allowed",
					(long long)st.st_size, 2 * REGION_ALIGN, max_bytes);
	*bytes = (uint64_t)st.st_size;
	return 0;
}

/* Whether [offset, offset + bytes) begins at @from or later and ends by @to. */
static bool region_fits(uint64_t offset, uint64_t bytes, uint64_t from, uint64_t to)
{
	return offset % REGION_ALIGN == 0 && offset >= from && offset <= to && bytes <= to - offset;
}

/* What is wrong with the header, NULL when nothing is. */
static const char *header_fault(const struct pages_header *h, uint64_t bytes)
{
	if (h->bytes != bytes)
		return "size is not that of the memfd";
	if (!h->slots || h->slots > SLOTS_MAX)
		return "number of slots";
	if (!h->layers || h->layers > R3RING_LAYERS_MAX)
		return "number of layers";
	if (!lane_bytes_fit(h->step_lane_bytes) || !lane_bytes_fit(h->side_lane_bytes))
		return "size of a lane";
	if (!region_fits(h->step_lane_offset, h->step_lane_bytes, REGION_ALIGN, bytes))
		return "place of the step lane";
	if (!region_fits(h->side_lane_offset, h->side_lane_bytes,
			 h->step_lane_offset + h->step_lane_bytes, bytes))
		return "place of the side lane";
	if (!region_fits(h->bells_offset, h->bells_bytes, h->side_lane_offset + h->side_lane_bytes,
			 bytes))
		return "place of the bells";
	if (h->bells_bytes < h->slots * extent_slot_bytes(h->layers))
		return "size of the bells";
	return NULL;
}

static int check_header(int fd, struct pages_header *header, uint64_t bytes,
			struct r3ring_error *err)
{
	const char *fault;

	if (pread(fd, header, sizeof(*header), 0) != sizeof(*header))
		return r3ring_error_set(err, -EBADMSG, "producer's pages have no header");
	if (header->magic != PAGES_MAGIC)
		return r3ring_error_set(err, -EBADMSG,
					"producer's pages have magic 0x%" PRIx64
					" instead of 0x%llx",
					header->magic, PAGES_MAGIC);
	if (header->version != PAGES_VERSION)
		return r3ring_error_set(err, -EPROTO,
					"producer's pages have version %u, this daemon knows %u; "
					"use r3ringd and libr3ring of one release",
					header->version, PAGES_VERSION);
	fault = header_fault(header, bytes);
	if (fault)
		return r3ring_error_set(err, -EBADMSG, "producer's pages: bad %s", fault);
	return 0;
}

int pages_attach(struct pages *pages, int fd, uint64_t max_bytes, struct r3ring_error *err)
{
	struct pages_header header;
	uint64_t bytes = 0;
	uint8_t *base;
	int ret = check_memfd(fd, max_bytes, &bytes, err);

	if (!ret)
		ret = check_header(fd, &header, bytes, err);
	if (ret)
		return ret;

	base = map(fd, bytes);
	if (base == MAP_FAILED)
		return r3ring_error_set(err, -errno, "mapping the producer's pages: %m");
	point(pages, &header, fd, base);
	return 0;
}

void pages_release(struct pages *pages)
{
	if (!pages->base)
		return;
	munmap(pages->base, pages->bytes);
	close(pages->fd);
	*pages = (struct pages){.fd = -1};
}

/* ---- steps begun ------------------------------------------------------ */

void pages_note_begun(struct pages *pages, uint64_t step, uint64_t rows)
{
	struct pages_begun *copy = &pages->words->begun[step & 1];

	/* Pairs with the acquire of `rows` in read_copy(): who sees these rows
	 * sees the other copy's step too, and so that this one is being written. */
	r3ring_store_release_u64(&copy->rows, rows);
	R3RING_TEST_POINT("pages begun rows");
	/* Pairs with the acquire of `step` in read_copy(). */
	r3ring_store_release_u64(&copy->step, step);
	R3RING_TEST_POINT("pages begun");
}

/* Reads the copy with the larger step; false when it was overwritten meanwhile. */
static bool read_copy(const struct pages_begun *begun, struct pages_begun *out)
{
	uint64_t even = r3ring_load_acquire_u64(&begun[0].step);
	uint64_t odd = r3ring_load_acquire_u64(&begun[1].step);
	/* Both are 0 before the first step, whose rows go to the odd copy. */
	const struct pages_begun *newer = even >= odd ? &begun[0] : &begun[1];
	const struct pages_begun *older = even >= odd ? &begun[1] : &begun[0];

	out->step = even >= odd ? even : odd;
	out->rows = r3ring_load_acquire_u64(&newer->rows);
	return r3ring_load_relaxed_u64(&older->step) <= out->step;
}

void pages_note_untold(struct pages *pages, const struct pages_untold *untold)
{
	struct pages_words *words = pages->words;
	uint64_t count = r3ring_load_relaxed_u64(&words->untold_count) + 1;

	words->untold[count & 1] = *untold;
	/* Release, for the order of the stores in which a kill leaves them; the next
	 * daemon starts when this one is gone. */
	r3ring_store_release_u64(&words->untold_count, count);
}

struct pages_untold pages_read_untold(const struct pages *pages)
{
	const struct pages_words *words = pages->words;
	struct pages_untold untold;

	memcpy(&untold, &words->untold[r3ring_load_relaxed_u64(&words->untold_count) & 1],
	       sizeof(untold));
	return untold;
}

struct pages_begun pages_read_begun(const struct pages *pages)
{
	struct pages_begun begun;

	/* Bounded, because a hostile producer could go on for ever. */
	for (int i = 0; i < BEGUN_TRIES && !read_copy(pages->words->begun, &begun); i++)
		r3ring_cpu_relax();
	return begun;
}

/* ---- sleeping and waking ---------------------------------------------- */

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void pages_wake(struct pages *pages)
{
	struct pages_words *words = pages->words;

	/* Pairs with the fence in pages_sleep(): either the sleeper's look sees what
	 * was published, or this load sees that it sleeps. */
	r3ring_fence_full();
	if (!r3ring_load_relaxed_u32(&words->sleeping))
		return;
	if (!r3ring_exchange_u32(&words->sleeping, 0))
		return;
	r3ring_fetch_add_u32(&words->wake, 1);
	futex(&words->wake, FUTEX_WAKE, 1, NULL);
}

void pages_sleep(struct pages *pages, bool (*idle)(void *ctx), void *ctx, uint64_t timeout_ns)
{
	struct pages_words *words = pages->words;
	uint32_t seen = r3ring_load_relaxed_u32(&words->wake);
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	r3ring_store_relaxed_u32(&words->sleeping, 1);
	/* Pairs with the fence in pages_wake(). */
	r3ring_fence_full();
	if (idle(ctx))
		futex(&words->wake, FUTEX_WAIT, seen, &timeout);
	r3ring_store_relaxed_u32(&words->sleeping, 0);
}
