/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread: notices that the daemon went away and connects to the next
 * one, with the same pages and the same buffer; hands on what waits in the spill.
 * It takes no signals and makes no call to the device.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "channel/socket.h"
#include "producer/producer.h"

#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 1000
#define SPILL_PERIOD_MS 5

static bool stopping(const struct r3ring_producer *producer)
{
	return r3ring_load_relaxed_u32(&producer->stopping) != 0;
}

/* Returns whether anything is left in it. */
static bool empty_spill(struct r3ring_producer *producer)
{
	bool had_any, left;

	pthread_mutex_lock(&producer->side_lock);
	had_any = producer->spill.first != NULL;
	left = !producer_flush_spill(producer);
	pthread_mutex_unlock(&producer->side_lock);
	if (had_any)
		pages_wake(&producer->pages);
	return left;
}

static void clear_kick(const struct r3ring_producer *producer)
{
	uint64_t kicks;

	while (read(producer->kick, &kicks, sizeof(kicks)) < 0 && errno == EINTR)
		;
}

/* The daemon says nothing after its welcome: anything that comes is its end. */
static bool hung_up(struct r3ring_producer *producer)
{
	static const char *const why = "daemon went away; connecting again";
	struct socket_inbox inbox;
	int ret = socket_receive(producer->socket, &inbox, 0);

	if (!ret)
		socket_inbox_close_fds(&inbox);
	if (!ret || ret == -ETIMEDOUT)
		return false;
	if (!stopping(producer))
		producer_log(producer, R3RING_LOG_WARN, "%s", why);
	return true;
}

/* While connected: until the daemon hangs up or the producer is closed. */
static void watch(struct r3ring_producer *producer)
{
	struct pollfd polled[2] = {
		{.fd = producer->kick, .events = POLLIN},
		{.fd = producer->socket, .events = POLLIN},
	};

	while (!stopping(producer)) {
		int timeout = empty_spill(producer) ? SPILL_PERIOD_MS : -1;

		if (poll(polled, 2, timeout) <= 0)
			continue;
		if (polled[0].revents)
			clear_kick(producer);
		if (polled[1].revents && hung_up(producer))
			return;
	}
}

/* Waits without a daemon for @ms, or until the producer is closed. */
static void pause_for(struct r3ring_producer *producer, int ms)
{
	struct pollfd polled = {.fd = producer->kick, .events = POLLIN};

	if (poll(&polled, 1, ms) > 0)
		clear_kick(producer);
}

static void report_refusal(struct r3ring_producer *producer, const struct r3ring_error *err)
{
	if (err->code != producer->refusal && !stopping(producer))
		producer_log(producer, R3RING_LOG_WARN, "connecting again: %s", err->text);
	producer->refusal = err->code;
}

static void connect_again(struct r3ring_producer *producer)
{
	int backoff = BACKOFF_MIN_MS;

	producer->refusal = 0;
	while (!stopping(producer)) {
		struct r3ring_error err = {0};

		if (!producer_connect(producer, true, &err)) {
			producer_log(producer, R3RING_LOG_INFO,
				     "connected again; generation %" PRIu64,
				     producer->last_generation);
			return;
		}
		report_refusal(producer, &err);
		pause_for(producer, backoff);
		backoff = backoff * 2 < BACKOFF_MAX_MS ? backoff * 2 : BACKOFF_MAX_MS;
	}
}

static void *help(void *arg)
{
	struct r3ring_producer *producer = arg;

	while (!stopping(producer)) {
		watch(producer);
		if (stopping(producer))
			break;
		producer_disconnect(producer);
		connect_again(producer);
	}
	return NULL;
}

/* Signals are the application's: none is delivered to a thread of ours. */
static int start_thread(struct r3ring_producer *producer)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&producer->helper, NULL, help, producer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

int producer_helper_start(struct r3ring_producer *producer, struct r3ring_error *err)
{
	int ret;

	producer->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (producer->kick < 0)
		return r3ring_error_set(err, -ENOMEM, "eventfd for the helper thread: %m");
	ret = start_thread(producer);
	if (!ret) {
		pthread_setname_np(producer->helper, "r3ring-helper");
		return 0;
	}
	close(producer->kick);
	producer->kick = -1;
	errno = -ret;
	return r3ring_error_set(err, -ENOMEM, "starting the helper thread: %m");
}

void producer_helper_kick(struct r3ring_producer *producer)
{
	const uint64_t one = 1;

	/* Fails only when it is set as often as it can be: then it is set. */
	while (write(producer->kick, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void producer_helper_stop(struct r3ring_producer *producer)
{
	if (producer->kick < 0)
		return;
	pthread_mutex_lock(&producer->socket_lock);
	r3ring_store_relaxed_u32(&producer->stopping, 1);
	/* A handshake that is going on ends; one that is done has served. */
	if (!r3ring_load_relaxed_u32(&producer->connected) && producer->socket >= 0 &&
	    !producer_sees_through(producer))
		shutdown(producer->socket, SHUT_RDWR);
	pthread_mutex_unlock(&producer->socket_lock);
	producer_helper_kick(producer);
	pthread_join(producer->helper, NULL);
	close(producer->kick);
	producer->kick = -1;
}
