/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what a daemon may answer a reader: a message with descriptors of every kind
 * (answer_input.h), and a page that says anything. A reader that believes it reads on
 * through the segment; whatever it is told, nothing may be read outside, its accounts
 * add up, and no descriptor stays behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/socket.h"
#include "consumer/internal.h"
#include "tests/fuzz/answer_input.h"
#include "tests/support/raw_message.h"
#include "tests/support/segment_image.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define CALLS (4u * SEGMENT_IMAGE_DEPTH)
#define SOME_SEQ 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	bool opened;
	int fds[ANSWER_FD_KINDS];
	uint8_t *page;
	struct segment_image image;
	uint8_t *segment;
	unsigned int sum; /* keeps the looks from being left out */
} rig;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("%s\n", what);
	fflush(stdout);
	abort();
}

/* ---- the daemon ---------------------------------------------------------- */

static int make_memfd(off_t bytes, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && ftruncate(fd, bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0, "memfd");
	return fd;
}

static void open_rig(void)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	rig.fds[ANSWER_FD_SEGMENT] = segment_image_fd();
	rig.fds[ANSWER_FD_PAGE] = make_memfd(R3RING_READER_PAGE_BYTES, SEALS);
	rig.fds[ANSWER_FD_UNSEALED] = make_memfd(R3RING_READER_PAGE_BYTES, 0);
	rig.fds[ANSWER_FD_SMALL] = make_memfd(1, SEALS);
	rig.fds[ANSWER_FD_PIPE] = ends[0];
	rig.fds[ANSWER_FD_DIRECTORY] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	segment_image_make(&rig.image, ANSWER_INPUT_RECORDS);
	rig.segment = segment_image_map(rig.fds[ANSWER_FD_SEGMENT]);
	segment_image_put(rig.segment, &rig.image);
	rig.page = mmap(NULL, R3RING_READER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			rig.fds[ANSWER_FD_PAGE], 0);
	must(rig.page != MAP_FAILED, "the page");
	rig.opened = true;
}

static void answer(int fd, const struct answer_input_head *head, uint8_t *bytes, size_t len)
{
	unsigned int count = head->fds & ANSWER_INPUT_FD_COUNT;
	int fds[RAW_MESSAGE_FDS_MAX];

	for (unsigned int i = 0; i < count; i++)
		fds[i] = rig.fds[head->kinds[i % ANSWER_INPUT_FDS] % ANSWER_FD_KINDS];
	if (!(head->fds & ANSWER_INPUT_KEEP_HEAD))
		raw_message_make_right(bytes, len, count);
	must(raw_message_send(fd, bytes, len, fds, count) >= 0, "sending");
}

/* ---- the reader ---------------------------------------------------------- */

static bool adds_up(const struct r3ring_cursor *cursor)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_get_stats(cursor, &stats);
	return stats.got + stats.lost + stats.skipped == stats.cursor - stats.start;
}

static void look_at(const struct r3ring_view *view)
{
	for (uint32_t i = 0; i < view->len; i++)
		rig.sum += ((const uint8_t *)view->data)[i];
}

static void read_on(struct r3ring_reader *reader)
{
	struct r3ring_reader_stats stats;
	struct r3ring_view view;

	for (unsigned int call = 0; call < CALLS; call++) {
		int rc = r3ring_reader_next(reader, &view);

		if (rc == 1)
			look_at(&view);
		must(adds_up(reader->cursor), "accounts that do not add up");
		if (rc == 0 || rc == -EPIPE)
			break;
	}
	if (r3ring_reader_fd(reader) >= 0)
		r3ring_reader_arm(reader);
	r3ring_reader_get_stats(reader, &stats);
}

/* As r3ring_reader_open() leaves it; nobody is asked for the next generation. */
static struct r3ring_reader *make_reader(enum r3ring_cursor_mode mode)
{
	struct r3ring_reader *reader = calloc(1, sizeof(*reader));

	must(reader != NULL, "memory");
	reader->mode = mode;
	readiness_init(&reader->readiness);
	reader->runtime_dir = strdup("/nonexistent");
	reader->target.runtime_dir = reader->runtime_dir;
	follower_init(&reader->follower);
	return reader;
}

static void take_answer(int fd, const struct answer_input_head *head)
{
	bool lossless = head->fds & ANSWER_INPUT_LOSSLESS;
	struct attach_target target = {.registers = true, .lossless = lossless};
	struct attach_request request = {fd};
	struct attachment attachment = {0};
	struct r3ring_reader *reader;
	struct r3ring_error err;

	if (attach_finish(&request, &target, &attachment, 0, &err)) {
		attach_cancel(&request);
		return;
	}
	reader = make_reader(lossless ? R3RING_LOSSLESS : R3RING_LOSSY);
	if (reader_enter(reader, &attachment,
			 (enum r3ring_cursor_start)(head->from % (R3RING_FROM_KEYFRAME + 1)),
			 SOME_SEQ) == 0)
		read_on(reader);
	else
		attachment_release(&attachment);
	r3ring_reader_close(reader);
}

/* ---- one input ----------------------------------------------------------- */

/* The lowest one that is free: it is another when one stays behind. */
static int free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void put_page(const uint8_t *bytes, size_t len)
{
	memset(rig.page, 0, R3RING_READER_PAGE_BYTES);
	memcpy(rig.page, bytes,
	       len < R3RING_READER_PAGE_BYTES ? len : (size_t)R3RING_READER_PAGE_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t copy[R3RING_MESSAGE_MAX];
	struct answer_input_head head;
	int ends[2], before;
	size_t len;

	if (!rig.opened)
		open_rig();
	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	len = head.bytes < size ? head.bytes : size;
	memcpy(copy, data, len);
	put_page(data + len, size - len);
	before = free_fd();
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	answer(ends[0], &head, copy, len);
	take_answer(ends[1], &head);
	close(ends[0]);
	must(free_fd() == before, "a descriptor stays behind");
	return 0;
}
