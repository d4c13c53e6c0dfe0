/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of registered readers: made, put into a channel's gate, taken out. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utlist.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/registration.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- the page ----------------------------------------------------------- */

static int size_and_seal(int fd)
{
	if (ftruncate(fd, R3RING_READER_PAGE_BYTES) < 0)
		return -errno;
	/* Allocated now: memory that is out is an error here, no SIGBUS later. */
	if (fallocate(fd, 0, 0, R3RING_READER_PAGE_BYTES) < 0)
		return -errno;
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

/* @known_to: the epoch of the daemon that knows the reader, and 1. */
static int page_make(struct registration *registration, uint64_t known_to)
{
	void *base;
	int r;

	registration->page_fd = memfd_create("r3ring-reader", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (registration->page_fd < 0)
		return -errno;
	r = size_and_seal(registration->page_fd);
	if (r == 0) {
		base = mmap(NULL, R3RING_READER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    registration->page_fd, 0);
		if (base != MAP_FAILED) {
			registration->page = base;
			registration->page->known_to = known_to;
			return 0;
		}
		r = -errno;
	}
	close(registration->page_fd);
	return r;
}

static void page_free(struct registration *registration)
{
	munmap(registration->page, R3RING_READER_PAGE_BYTES);
	close(registration->page_fd);
}

/* ---- what the reader is granted ------------------------------------------ */

/* By the thread that publishes. A socket that takes no more has enough to be read. */
static void poke(void *owner)
{
	struct session *session = owner;
	struct r3ring_message message = {.type = R3RING_MSG_WAKE};

	if (socket_send(session->source.fd, &message, sizeof(message), NULL, 0, NULL, 0) < 0)
		log_debug("a reader's socket is full");
}

static uint64_t smaller_of(uint64_t asked, uint64_t allowed)
{
	return asked && (!allowed || asked < allowed) ? asked : allowed;
}

static struct gate_terms terms_of(struct session *session, const struct channel *channel,
				  const struct r3ring_hello_reader_message *hello)
{
	const struct stall_policy policy = channel_policy(channel);

	return (struct gate_terms){
		.lossless = hello->lossless == 1,
		.limit_bytes = smaller_of(hello->limit_bytes, policy.limit_bytes),
		.stall_ns = smaller_of(hello->stall_ms * NS_PER_MS, policy.limit_ns),
		.poke = poke,
		.owner = session,
	};
}

/* ---- beginning and end ---------------------------------------------------- */

static void reader_died(struct loop_source *source, uint32_t events)
{
	struct session *session = source->owner;

	(void)events;
	log_info("reader %d is gone", session->peer.pid);
	session_close(session);
}

static int watch(struct session *session, int *pidfd)
{
	struct loop_source *source = &session->registration.pidfd;

	*source = (struct loop_source){
		.fd = *pidfd, .events = POLLIN, .ready = reader_died, .owner = session};
	if (*pidfd < 0)
		return 0;
	*pidfd = -1;
	return loop_add(session->daemon->loop, source);
}

static void unwatch(struct session *session)
{
	struct loop_source *source = &session->registration.pidfd;

	loop_remove(session->daemon->loop, source);
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}

int registration_open(struct session *session, struct channel *channel,
		      const struct r3ring_hello_reader_message *hello, int *pidfd,
		      struct r3ring_error *err)
{
	struct registration *registration = &session->registration;
	const struct gate_terms terms = terms_of(session, channel, hello);
	int r;

	registration_close(session);
	r = page_make(registration, r3ring_segment_epoch(channel->segment) + 1);
	if (r < 0)
		return r3ring_error_set(err, r, "a page for the reader: %s", strerror(-r));
	r = watch(session, pidfd);
	if (r == 0)
		r = gate_add(channel->drain.publisher.stall.gate, registration->page, &terms);
	if (r < 0) {
		unwatch(session);
		page_free(registration);
		return r3ring_error_set(err, r,
					r == -ENOSPC ? "channel %s has %d registered readers, as "
						       "many as it takes"
						     : "channel %s: its readers (%d) stay",
					channel->text, GATE_MEMBERS_MAX);
	}
	registration->number = r;
	registration->channel = channel;
	drain_nudge(&channel->drain);
	return 0;
}

void registration_close(struct session *session)
{
	struct registration *registration = &session->registration;

	if (!registration->channel)
		return;
	gate_remove(registration->channel->drain.publisher.stall.gate, registration->number);
	unwatch(session);
	page_free(registration);
	*registration = (struct registration){0};
}

void registrations_move(const struct channel *from, struct channel *to)
{
	struct session *session;

	DL_FOREACH(to->daemon->sessions, session)
	{
		if (session->registration.channel == from)
			session->registration.channel = to;
	}
}

void registrations_forget(struct channel *channel)
{
	struct session *session;

	DL_FOREACH(channel->daemon->sessions, session)
	{
		if (session->registration.channel == channel)
			registration_close(session);
	}
}
