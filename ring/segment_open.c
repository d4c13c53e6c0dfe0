/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and adopting a segment that another process made. Its header is
 * copied once and every number in it is checked before anything is computed
 * with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "ring/adopt.h"
#include "ring/internal.h"

#define GROUPS_MAX 1024

/* What messages call a segment. */
static const char *shown(const struct r3ring_segment *segment)
{
	return segment->name[0] ? segment->name : "received by descriptor";
}

/* ---- the object: who may have made it ---------------------------------- */

static bool own_group(gid_t gid)
{
	gid_t groups[GROUPS_MAX];
	int count = getgroups(GROUPS_MAX, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == gid)
			return true;
	return gid == getegid();
}

static int check_owner(const struct r3ring_segment *segment, const struct stat *st,
		       struct r3ring_error *err)
{
	if (st->st_uid != geteuid() && st->st_uid != 0 && !own_group(st->st_gid))
		return r3ring_error_set(err, -EACCES,
					"ring segment %s belongs to user %u and group %u, neither "
					"to this user, root nor a group of this user: not trusted",
					shown(segment), st->st_uid, st->st_gid);
	if (st->st_mode & S_IWOTH)
		return r3ring_error_set(err, -EACCES,
					"ring segment %s has mode 0%o and anybody may write it: "
					"not trusted (chmod o-w, or make it anew)",
					shown(segment), st->st_mode & 07777u);
	return 0;
}

/* ---- the header -------------------------------------------------------- */

static int check_abi(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = &segment->header;
	uint64_t unknown = header->features_incompatible & ~R3RING_FEATURES_INCOMPATIBLE_KNOWN;

	if (header->endian == __builtin_bswap32(R3RING_ENDIAN_MARK))
		return r3ring_error_set(err, -EPROTO,
					"ring segment %s was written with the other byte order",
					shown(segment));
	if (header->magic != R3RING_MAGIC)
		return r3ring_error_set(err, -EBADMSG,
					"%s is no ring segment: magic %#llx instead of %#llx",
					shown(segment), (unsigned long long)header->magic,
					(unsigned long long)R3RING_MAGIC);
	if (header->endian != R3RING_ENDIAN_MARK)
		return r3ring_error_set(err, -EPROTO,
					"ring segment %s has the unknown byte-order mark %#x",
					shown(segment), header->endian);
	if (header->abi_major != R3RING_ABI_MAJOR)
		return r3ring_error_set(err, -EPROTO,
					"ring segment %s has ABI %u.%u, this library reads %u.x: "
					"install the writer's version of r3ring",
					shown(segment), header->abi_major, header->abi_minor,
					R3RING_ABI_MAJOR);
	if (unknown)
		return r3ring_error_set(err, -EPROTO,
					"ring segment %s needs features %#llx that this library "
					"does not know: install the writer's version of r3ring",
					shown(segment), (unsigned long long)unknown);
	return 0;
}

static int check_header_fields(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = &segment->header;

	if (header->state != R3RING_STATE_READY)
		return r3ring_error_set(err, -EBADMSG, "ring segment %s has unknown state %u",
					shown(segment), header->state);
	if (header->header_size < sizeof(*header) || header->header_size > R3RING_REGION_ALIGN)
		return r3ring_error_set(err, -EBADMSG,
					"header of ring segment %s says %u bytes instead of %zu "
					"to %u",
					shown(segment), header->header_size, sizeof(*header),
					R3RING_REGION_ALIGN);
	if (header->segment_size != segment->bytes)
		return r3ring_error_set(
			err, -EBADMSG, "ring segment %s says %llu bytes, the object has %zu",
			shown(segment), (unsigned long long)header->segment_size, segment->bytes);
	if (!header->first_seq || header->first_seq >= RING_NUMBER_LIMIT)
		return r3ring_error_set(err, -EBADMSG,
					"ring segment %s has impossible first sequence %llu",
					shown(segment), (unsigned long long)header->first_seq);
	if (!memchr(header->label, '\0', sizeof(header->label)))
		return r3ring_error_set(err, -EBADMSG, "label of ring segment %s has no end",
					shown(segment));
	return 0;
}

struct region_rule {
	const char *what;
	uint32_t stride;
	uint32_t log2_min, log2_max;
};

static const struct region_rule region_rules[R3RING_REGION_COUNT] = {
	[R3RING_REGION_LINES] = {"writer lines", sizeof(struct r3ring_writer_lines), 0, 0},
	[R3RING_REGION_DESCS] = {"descriptors", sizeof(struct r3ring_desc), RING_DEPTH_LOG2_MIN,
				 RING_DEPTH_LOG2_MAX},
	[R3RING_REGION_ARENA] = {"arena", 1, RING_ARENA_LOG2_MIN, RING_ARENA_LOG2_MAX},
};

/* Only for a region whose count_log2 was checked. */
static uint64_t region_bytes(const struct r3ring_region *region)
{
	return (uint64_t)region->stride << region->count_log2;
}

static int check_region(const struct r3ring_segment *segment, unsigned int index,
			struct r3ring_error *err)
{
	const struct r3ring_region *region = &segment->header.regions[index];
	const struct region_rule *rule = &region_rules[index];

	if (region->stride != rule->stride || region->count_log2 < rule->log2_min ||
	    region->count_log2 > rule->log2_max)
		return r3ring_error_set(err, -EBADMSG,
					"ring segment %s: %s with stride %u and 2^%u elements "
					"instead of %u and 2^%u to 2^%u",
					shown(segment), rule->what, region->stride,
					region->count_log2, rule->stride, rule->log2_min,
					rule->log2_max);
	if (region->offset < R3RING_REGION_ALIGN || region->offset % R3RING_REGION_ALIGN)
		return r3ring_error_set(err, -EBADMSG,
					"ring segment %s: %s at offset %llu, not a multiple of "
					"%u behind the header",
					shown(segment), rule->what,
					(unsigned long long)region->offset, R3RING_REGION_ALIGN);
	if (region->offset > segment->bytes ||
	    region_bytes(region) > segment->bytes - region->offset)
		return r3ring_error_set(err, -EBADMSG,
					"ring segment %s: %s of %llu bytes at offset %llu end "
					"behind the object of %zu",
					shown(segment), rule->what,
					(unsigned long long)region_bytes(region),
					(unsigned long long)region->offset, segment->bytes);
	return 0;
}

static bool regions_overlap(const struct r3ring_region *a, const struct r3ring_region *b)
{
	return a->offset < b->offset + region_bytes(b) && b->offset < a->offset + region_bytes(a);
}

static int check_regions(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	const struct r3ring_region *regions = segment->header.regions;

	for (unsigned int i = 0; i < R3RING_REGION_COUNT; i++) {
		int rc = check_region(segment, i, err);

		if (rc)
			return rc;
		for (unsigned int k = 0; k < i; k++)
			if (regions_overlap(&regions[i], &regions[k]))
				return r3ring_error_set(
					err, -EBADMSG, "ring segment %s: %s and %s overlap",
					shown(segment), region_rules[k].what, region_rules[i].what);
	}
	return 0;
}

static int copy_and_check_header(struct r3ring_segment *segment, struct r3ring_error *err)
{
	const struct r3ring_segment_header *shared = (const void *)segment->base;
	int rc;

	/* Pairs with the release of `state` in segment.c. */
	if (r3ring_load_acquire_u32(&shared->state) == R3RING_STATE_NEW)
		return r3ring_error_set(err, -EAGAIN,
					"ring segment %s is not finished by its writer: try again",
					shown(segment));
	memcpy(&segment->header, shared, sizeof(segment->header));
	rc = check_abi(segment, err);
	if (!rc)
		rc = check_header_fields(segment, err);
	return rc ? rc : check_regions(segment, err);
}

/* ---- opening ----------------------------------------------------------- */

static int check_object(struct r3ring_segment *segment, int fd, bool by_name,
			struct r3ring_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return r3ring_error_set(err, -errno, "ring segment %s: fstat: %s", shown(segment),
					strerror(errno));
	if (!S_ISREG(st.st_mode))
		return r3ring_error_set(err, -EBADMSG, "%s is no shared-memory object",
					shown(segment));
	if (by_name) {
		int rc = check_owner(segment, &st, err);

		if (rc)
			return rc;
	}
	if (st.st_size == 0)
		return r3ring_error_set(err, -EAGAIN,
					"ring segment %s is not allocated by its writer yet: try "
					"again",
					shown(segment));
	if (st.st_size < (off_t)(2 * R3RING_REGION_ALIGN))
		return r3ring_error_set(err, -EBADMSG,
					"%s has %lld bytes, too few for a ring segment",
					shown(segment), (long long)st.st_size);
	segment->bytes = (size_t)st.st_size;
	return 0;
}

static int map_checked(struct r3ring_segment *segment, int fd, bool by_name,
		       struct r3ring_error *err)
{
	int protection = segment->writable ? PROT_READ | PROT_WRITE : PROT_READ;
	int rc = check_object(segment, fd, by_name, err);

	if (rc)
		return rc;
	segment->base = mmap(NULL, segment->bytes, protection, MAP_SHARED, fd, 0);
	if (segment->base == MAP_FAILED) {
		segment->base = NULL;
		return r3ring_error_set(err, -errno, "mapping %zu bytes of ring segment %s: %s",
					segment->bytes, shown(segment), strerror(errno));
	}
	rc = copy_and_check_header(segment, err);
	if (!rc)
		segment_locate_regions(segment);
	return rc;
}

static struct r3ring_segment *new_handle(const char *name, struct r3ring_error *err)
{
	struct r3ring_segment *segment;

	if (name[0] != '/' || strlen(name) > NAME_MAX) {
		r3ring_error_set(err, -EINVAL,
				 "segment name '%s' must begin with '/' and have at most %d "
				 "characters",
				 name, NAME_MAX);
		return NULL;
	}
	segment = calloc(1, sizeof(*segment));
	if (!segment) {
		r3ring_error_set(err, -ENOMEM, "no memory for a segment handle");
		return NULL;
	}
	segment->fd = -1;
	memcpy(segment->name, name, strlen(name) + 1);
	return segment;
}

static int open_name(const char *name, int flags, struct r3ring_error *err)
{
	/* A FIFO of that name is not waited for. */
	int fd = shm_open(name, flags | O_NONBLOCK, 0);

	if (fd < 0)
		return r3ring_error_set(err, -errno, "opening ring segment %s: %s", name,
					strerror(errno));
	return fd;
}

int r3ring_segment_open(struct r3ring_segment **segment, const char *name, struct r3ring_error *err)
{
	struct r3ring_error local;
	struct r3ring_segment *opened = new_handle(name, err ? err : (err = &local));
	int fd, rc;

	if (!opened)
		return err->code;
	fd = open_name(name, O_RDONLY, err);
	rc = fd < 0 ? fd : map_checked(opened, fd, true, err);
	if (fd >= 0)
		close(fd);
	if (rc) {
		r3ring_segment_close(opened);
		return rc;
	}
	*segment = opened;
	return 0;
}

int r3ring_segment_open_fd(struct r3ring_segment **segment, int fd, struct r3ring_error *err)
{
	struct r3ring_segment *opened = calloc(1, sizeof(*opened));
	int rc;

	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "no memory for a segment handle");
	opened->fd = -1;
	rc = map_checked(opened, fd, false, err);
	if (rc) {
		r3ring_segment_close(opened);
		return rc;
	}
	*segment = opened;
	return 0;
}

/* ---- adopting ---------------------------------------------------------- */

static int take_lock(const struct r3ring_segment *segment, struct r3ring_error *err)
{
	if (flock(segment->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return r3ring_error_set(err, -EBUSY, "ring segment %s is locked: its writer lives",
					segment->name);
	return r3ring_error_set(err, -errno, "locking ring segment %s: %s", segment->name,
				strerror(errno));
}

/* So that others can tell whether the present writer lives. */
static void store_writer_identity(struct r3ring_segment *segment)
{
	struct r3ring_segment_header *shared = (void *)segment->base;

	segment->header.writer_pid = (uint32_t)getpid();
	segment->header.writer_start_time = identity_start_time(segment->header.writer_pid);
	r3ring_store_relaxed_u32(&shared->writer_pid, segment->header.writer_pid);
	r3ring_store_relaxed_u64(&shared->writer_start_time, segment->header.writer_start_time);
}

static int adopt(struct r3ring_segment **segment, const char *name, bool for_certain,
		 struct r3ring_error *err)
{
	struct r3ring_error local;
	struct r3ring_segment *adopted = new_handle(name, err ? err : (err = &local));
	int rc;

	if (!adopted)
		return err->code;
	adopted->writable = true;
	adopted->adopted = true;
	adopted->fd = open_name(name, O_RDWR, err);
	rc = adopted->fd < 0 ? err->code : take_lock(adopted, err);
	if (rc == -EBUSY && for_certain)
		rc = 0;
	if (!rc)
		rc = map_checked(adopted, adopted->fd, true, err);
	if (rc) {
		r3ring_segment_close(adopted);
		return rc;
	}
	store_writer_identity(adopted);
	*segment = adopted;
	return 0;
}

int r3ring_segment_adopt(struct r3ring_segment **segment, const char *name,
			 struct r3ring_error *err)
{
	return adopt(segment, name, false, err);
}

int segment_adopt_ownerless(struct r3ring_segment **segment, const char *name,
			    struct r3ring_error *err)
{
	return adopt(segment, name, true, err);
}
