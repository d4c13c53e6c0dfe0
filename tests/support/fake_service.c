/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's end of a channel in the hands of a test. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "channel/socket.h"
#include "tests/support/fake_service.h"

#define PAGES_MOST (64u << 20)

static int listen_at(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, R3RING_SOCKET_NAME);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		return -errno;
	return fd;
}

int fake_service_start(struct fake_service *service)
{

	memset(service, 0, sizeof(*service));
	service->generation = 1;
	service->rows_per_record = 16;
	service->buffer_fd = service->pidfd = service->peer = -1;
	service->pages.fd = -1;
	/* A process id alone may be that of a test which was killed long ago. */
	snprintf(service->dir, sizeof(service->dir), "/tmp/r3ring-fake-%d-XXXXXX", getpid());
	if (!mkdtemp(service->dir))
		return -errno;
	service->listener = listen_at(service->dir);
	return service->listener < 0 ? service->listener : 0;
}

/* ---- taking a producer in --------------------------------------------- */

static int take_pages(struct fake_service *service, int fd)
{
	struct pages_words *words;
	int ret = pages_attach(&service->pages, fd, PAGES_MOST, NULL);

	if (ret)
		return ret;
	words = service->pages.words;
	ret = lane_reader_init(&service->steps, service->pages.step_lane,
			       service->pages.step_lane_bytes, &words->step_head,
			       &words->step_tail);
	return ret ? ret
		   : lane_reader_init(&service->sides, service->pages.side_lane,
				      service->pages.side_lane_bytes, &words->side_head,
				      &words->side_tail);
}

static int take_buffer(struct fake_service *service, int fd)
{
	service->buffer_fd = fd;
	service->buffer = mmap(NULL, service->hello.buffer_bytes, PROT_READ, MAP_SHARED, fd, 0);
	return service->buffer == MAP_FAILED ? -errno : 0;
}

static int take_hello(struct fake_service *service, const struct socket_inbox *inbox)
{
	size_t head = sizeof(service->hello);
	int ret;

	if (inbox->u.head.type != R3RING_MSG_HELLO_PRODUCER || inbox->len < head ||
	    inbox->len - head > sizeof(service->schema) || inbox->fd_count < 2)
		return -EBADMSG;
	memcpy(&service->hello, inbox->u.bytes, head);
	memcpy(service->schema, inbox->u.bytes + head, inbox->len - head);
	ret = take_pages(service, inbox->fds[0]);
	if (!ret)
		ret = take_buffer(service, inbox->fds[1]);
	if (service->hello.has_pidfd && inbox->fd_count == 3)
		service->pidfd = inbox->fds[2];
	return ret;
}

static int answer(struct fake_service *service)
{
	struct r3ring_welcome_producer_message welcome = {
		.head.type = R3RING_MSG_WELCOME_PRODUCER,
		.generation = service->generation,
		.rows_per_record = service->rows_per_record,
	};
	struct r3ring_refused_message refused = {
		.head.type = R3RING_MSG_REFUSED,
		.code = service->refuse,
		.text = "refused by the test",
	};

	if (service->refuse)
		return socket_send(service->peer, &refused.head, sizeof(refused), NULL, 0, NULL, 0);
	return socket_send(service->peer, &welcome.head, sizeof(welcome), NULL, 0, NULL, 0);
}

static void *take_in(void *arg)
{
	static __thread struct socket_inbox inbox;
	struct fake_service *service = arg;

	service->taker = getpid();
	service->peer = accept4(service->listener, NULL, NULL, SOCK_CLOEXEC);
	service->result = service->peer < 0 ? -errno : socket_receive(service->peer, &inbox, 10000);
	if (!service->result)
		service->result = take_hello(service, &inbox);
	if (!service->result)
		service->result = answer(service);
	return NULL;
}

void fake_service_expect(struct fake_service *service)
{
	service->result = pthread_create(&service->thread, NULL, take_in, service);
}

int fake_service_await(struct fake_service *service)
{
	pthread_join(service->thread, NULL);
	return service->result;
}

int fake_service_open(struct fake_service *service, struct r3ring_producer **producer,
		      struct r3ring_producer_options *options, struct r3ring_error *err)
{
	int opened, taken;

	fake_service_expect(service);
	opened = r3ring_producer_open(producer, options, err);
	taken = fake_service_await(service);
	return opened ? opened : taken;
}

/* ---- what it takes and gives back ------------------------------------- */

const uint8_t *fake_service_next(struct fake_service *service, int *error)
{
	struct lane_reader *from;
	int corrupt = 0;
	const uint8_t *payload;

	if (service->from)
		lane_consume(service->from, &service->entry);
	payload = lane_next(&service->steps, &service->sides, false, &from, &service->entry,
			    &corrupt);
	service->from = payload ? from : NULL;
	if (error)
		*error = corrupt;
	return payload;
}

void fake_service_release(struct fake_service *service, uint64_t count)
{
	/* Pairs with the acquire in take_back() of the producer's extents. */
	r3ring_fetch_add_u64(&service->pages.words->extents_released, count);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fake_service_hang_up(struct fake_service *service)
{
	/* In shared memory these are addresses and numbers of another process, and went with it:
	 * here they are something else's. */
	if (service->taker != getpid())
		return;
	close_fd(&service->peer);
	close_fd(&service->pidfd);
	if (service->buffer)
		munmap(service->buffer, service->hello.buffer_bytes);
	service->buffer = NULL;
	close_fd(&service->buffer_fd);
	pages_release(&service->pages);
	service->from = NULL;
}

void fake_service_stop(struct fake_service *service)
{
	char path[128];

	fake_service_hang_up(service);
	close_fd(&service->listener);
	snprintf(path, sizeof(path), "%s/%s", service->dir, R3RING_SOCKET_NAME);
	unlink(path);
	rmdir(service->dir);
}

struct r3ring_producer_options fake_service_options(const struct fake_service *service)
{
	static const struct r3ring_layer_entry layers[] = {
		{.layer_id = 0, .kind = R3RING_LAYER_HASH},
		{.layer_id = 3, .kind = R3RING_LAYER_MOE},
		{.layer_id = 5, .kind = R3RING_LAYER_MOE},
		{.layer_id = 3, .kind = R3RING_LAYER_MTP},
	};

	return (struct r3ring_producer_options){
		.size = sizeof(struct r3ring_producer_options),
		.runtime_dir = service->dir,
		.instance = "test",
		.device = "host",
		.model = "small",
		.experts = 16,
		.top_k = 2,
		.max_rows = 64,
		.layer_count = 4,
		.layers = layers,
	};
}
