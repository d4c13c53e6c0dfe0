/* SPDX-License-Identifier: Apache-2.0 */
/* Making a segment, its names and descriptors, and what it says of itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <file_limit.h>
#include <r3ring/atomic.h>

#include "ring/internal.h"

#define DEFAULT_MODE 0640u
#define LINES_OFFSET R3RING_REGION_ALIGN
#define DESCS_OFFSET (2u * R3RING_REGION_ALIGN)
#define ALLOCATE_TRIES 16
#define ALLOCATE_PIECE (UINT64_C(8) << 20) /* some 8 ms */

void segment_locate_regions(struct r3ring_segment *segment)
{
	const struct r3ring_region *regions = segment->header.regions;

	segment->lines = (void *)(segment->base + regions[R3RING_REGION_LINES].offset);
	segment->descs = (void *)(segment->base + regions[R3RING_REGION_DESCS].offset);
	segment->arena = segment->base + regions[R3RING_REGION_ARENA].offset;
	segment->depth = 1ull << regions[R3RING_REGION_DESCS].count_log2;
	segment->arena_bytes = 1ull << regions[R3RING_REGION_ARENA].count_log2;
}

static bool power_of_two(uint64_t value, unsigned int log2_min, unsigned int log2_max)
{
	return value >= 1ull << log2_min && value <= 1ull << log2_max && !(value & (value - 1));
}

static int check_options(const struct r3ring_segment_options *options, struct r3ring_error *err)
{
	const char *name = options->name;

	if (options->size != sizeof(*options))
		return r3ring_error_set(err, -EINVAL,
					"segment options are %zu bytes, this library knows %zu: "
					"build against its headers",
					options->size, sizeof(*options));
	if (!name || name[0] != '/' || !name[1] || strchr(name + 1, '/') || strlen(name) > NAME_MAX)
		return r3ring_error_set(err, -EINVAL,
					"segment name '%s' must be a '/' and 1 to %d more "
					"characters without '/'",
					name ? name : "", NAME_MAX - 1);
	if (options->label && strlen(options->label) > R3RING_LABEL_MAX)
		return r3ring_error_set(err, -EINVAL, "label '%s' is longer than %d bytes",
					options->label, R3RING_LABEL_MAX);
	if (!power_of_two(options->arena_bytes, RING_ARENA_LOG2_MIN, RING_ARENA_LOG2_MAX))
		return r3ring_error_set(err, -EINVAL,
					"arena of %llu bytes: must be a power of two from 4 KiB "
					"to 64 GiB",
					(unsigned long long)options->arena_bytes);
	if (!power_of_two(options->depth, RING_DEPTH_LOG2_MIN, RING_DEPTH_LOG2_MAX))
		return r3ring_error_set(err, -EINVAL,
					"depth of %u descriptors: must be a power of two from 16 "
					"to 2^24",
					options->depth);
	if (options->mode & ~0777u)
		return r3ring_error_set(err, -EINVAL, "mode 0%o has more than permission bits",
					options->mode);
	if (options->first_seq >= RING_NUMBER_LIMIT)
		return r3ring_error_set(err, -EINVAL, "first sequence %llu must be below 2^62",
					(unsigned long long)options->first_seq);
	return 0;
}

static void fill_header(struct r3ring_segment_header *header,
			const struct r3ring_segment_options *options)
{
	uint32_t depth_log2 = (uint32_t)__builtin_ctzll(options->depth);
	uint32_t arena_log2 = (uint32_t)__builtin_ctzll(options->arena_bytes);
	uint64_t descs_bytes = options->depth * sizeof(struct r3ring_desc);
	uint64_t arena_offset = DESCS_OFFSET + ring_align(descs_bytes, R3RING_REGION_ALIGN);

	*header = (struct r3ring_segment_header){
		.magic = R3RING_MAGIC,
		.endian = R3RING_ENDIAN_MARK,
		.abi_major = R3RING_ABI_MAJOR,
		.abi_minor = R3RING_ABI_MINOR,
		.header_size = sizeof(*header),
		.state = R3RING_STATE_READY,
		.segment_size =
			arena_offset + ring_align(options->arena_bytes, R3RING_REGION_ALIGN),
		.generation = options->generation,
		.untaken = options->untaken,
		.writer_pid = (uint32_t)getpid(),
		.writer_start_time = identity_start_time((uint32_t)getpid()),
		.first_seq = options->first_seq ? options->first_seq : 1,
		.regions =
			{
				[R3RING_REGION_LINES] = {LINES_OFFSET,
							 sizeof(struct r3ring_writer_lines), 0},
				[R3RING_REGION_DESCS] = {DESCS_OFFSET, sizeof(struct r3ring_desc),
							 depth_log2},
				[R3RING_REGION_ARENA] = {arena_offset, 1, arena_log2},
			},
	};
	memcpy(header->uuid, options->uuid, sizeof(header->uuid));
	identity_boot_id(header->boot_id);
	if (options->label)
		memcpy(header->label, options->label, strlen(options->label));
}

/* What was allocated of it is given back first: it is free, too. */
static int no_space(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	struct statvfs fs;
	unsigned long long unused = 0;

	if (ftruncate(segment->fd, 0) == 0 && fstatvfs(segment->fd, &fs) == 0)
		unused = (unsigned long long)fs.f_bavail * fs.f_frsize;
	return r3ring_error_set(err, -ENOSPC,
				"ring segment %s needs %llu bytes of shared memory, %llu are free "
				"in /dev/shm: choose a smaller --ring-size or enlarge /dev/shm "
				"(docker run --shm-size, mount -o remount,size=)",
				segment->name, (unsigned long long)segment->header.segment_size,
				unused);
}

static int map_failed(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	return r3ring_error_set(err, -errno, "mapping %zu bytes of ring segment %s: %s",
				segment->bytes, segment->name, strerror(errno));
}

static int allocate_piece(const struct r3ring_segment *segment, uint64_t from, uint64_t bytes,
			  struct r3ring_error *err)
{
	int rc = EINTR;

	for (int tries = 0; rc == EINTR && tries < ALLOCATE_TRIES; tries++)
		rc = posix_fallocate(segment->fd, (off_t)from, (off_t)bytes);
	if (rc == ENOSPC)
		return no_space(segment, err);
	if (rc)
		return r3ring_error_set(err, -rc, "allocating %llu bytes for ring segment %s: %s",
					(unsigned long long)segment->header.segment_size,
					segment->name, strerror(rc));
	return 0;
}

/* In the kernel's tables before it is used; its pages are cleared only here. Pieces lie in
 * the address range that was reserved for the whole, and become one mapping. */
static int populate_piece(const struct r3ring_segment *segment, uint64_t from, uint64_t bytes,
			  struct r3ring_error *err)
{
	if (mmap(segment->base + from, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment->fd, (off_t)from) != MAP_FAILED)
		return 0;
	return map_failed(segment, err);
}

/* In pieces, so that whoever waits for it sees it grow, and may think better of it. */
static int allocate(const struct r3ring_segment *segment,
		    const struct r3ring_segment_options *options, struct r3ring_error *err)
{
	const uint64_t size = segment->header.segment_size;
	int rc = 0;

	if (!file_limit_allows(size))
		return r3ring_error_set(err, -EFBIG,
					"ring segment %s needs %llu bytes: " FILE_LIMIT_REMEDY,
					segment->name, (unsigned long long)size);
	for (uint64_t at = 0; !rc && at < size; at += ALLOCATE_PIECE) {
		uint64_t left = size - at, bytes = left < ALLOCATE_PIECE ? left : ALLOCATE_PIECE;

		if (options->carry_on && !options->carry_on(options->ctx, at))
			return r3ring_error_set(err, -ECANCELED,
						"allocating ring segment %s was ended",
						segment->name);
		rc = allocate_piece(segment, at, bytes, err);
		if (!rc)
			rc = populate_piece(segment, at, bytes, err);
	}
	return rc;
}

/* Addresses for all of it. Not by mapping the object, which is empty yet: qemu, whose pages
 * may be larger than the kernel's, refuses that. */
static int reserve_addresses(struct r3ring_segment *segment, struct r3ring_error *err)
{
	segment->bytes = (size_t)segment->header.segment_size;
	segment->base = mmap(NULL, segment->bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (segment->base != MAP_FAILED)
		return 0;
	segment->base = NULL;
	return map_failed(segment, err);
}

static int make_object(struct r3ring_segment *segment, const struct r3ring_segment_options *options,
		       struct r3ring_error *err)
{
	uint32_t mode = options->mode ? options->mode : DEFAULT_MODE;
	int rc;

	if (flock(segment->fd, LOCK_EX | LOCK_NB))
		return r3ring_error_set(err, -errno, "locking new ring segment %s: %s",
					segment->name, strerror(errno));
	if (fchmod(segment->fd, mode))
		return r3ring_error_set(err, -errno, "setting mode 0%o of ring segment %s: %s",
					mode, segment->name, strerror(errno));
	rc = reserve_addresses(segment, err);
	return rc ? rc : allocate(segment, options, err);
}

/* From here on readers that find it take it. */
static void segment_publish(struct r3ring_segment *segment)
{
	struct r3ring_segment_header *shared = (void *)segment->base;
	struct r3ring_segment_header header = segment->header;

	segment_locate_regions(segment);
	segment->lines->tail_seq = header.first_seq - 1;
	header.state = R3RING_STATE_NEW;
	memcpy(shared, &header, sizeof(header));
	/* Pairs with the acquire of `state` in segment_open.c. */
	r3ring_store_release_u32(&shared->state, R3RING_STATE_READY);
}

int r3ring_segment_create(struct r3ring_segment **segment,
			  const struct r3ring_segment_options *options, struct r3ring_error *err)
{
	struct r3ring_segment *made;
	int rc = check_options(options, err);

	if (rc)
		return rc;
	made = calloc(1, sizeof(*made));
	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for a segment handle");
	made->writable = true;
	memcpy(made->name, options->name, strlen(options->name) + 1);
	fill_header(&made->header, options);
	made->fd = shm_open(made->name, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (made->fd < 0) {
		rc = r3ring_error_set(err, -errno, "making ring segment %s: %s%s", made->name,
				      strerror(errno),
				      errno == EEXIST ? " (another writer has it, or a dead one "
							"left it: r3ring gc)"
						      : "");
		goto fail;
	}
	rc = make_object(made, options, err);
	if (rc) {
		shm_unlink(made->name);
		goto fail;
	}
	segment_publish(made);
	*segment = made;
	return 0;
fail:
	r3ring_segment_close(made);
	return rc;
}

void r3ring_segment_close(struct r3ring_segment *segment)
{
	if (!segment)
		return;
	if (segment->base)
		munmap(segment->base, segment->bytes);
	if (segment->fd >= 0)
		close(segment->fd);
	free(segment);
}

int r3ring_segment_unlink(const struct r3ring_segment *segment)
{
	return shm_unlink(segment->name) ? -errno : 0;
}

int r3ring_segment_reader_fd(const struct r3ring_segment *segment)
{
	char path[64];
	int fd;

	if (segment->fd < 0)
		return -EINVAL;
	/* A duplicate would carry the right to write along; opening anew does not. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", segment->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

const struct r3ring_segment_header *r3ring_segment_get_header(const struct r3ring_segment *segment)
{
	return &segment->header;
}

const char *r3ring_segment_name(const struct r3ring_segment *segment)
{
	return segment->name;
}

size_t r3ring_segment_max_record(const struct r3ring_segment *segment)
{
	return (size_t)ring_max_record(segment);
}

void *r3ring_segment_arena(const struct r3ring_segment *segment, size_t *bytes)
{
	*bytes = (size_t)segment->arena_bytes;
	return segment->arena;
}
