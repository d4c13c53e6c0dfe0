/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as a whole: opened, run until a signal, closed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utlist.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/notify.h"
#include "capture_daemon/opening.h"
#include "capture_daemon/orphans.h"
#include "capture_daemon/peers.h"
#include "capture_daemon/socket_watch.h"

#define PATIENCE_NS (2 * NS_PER_SECOND)
#define TICK_MS 1000
#define ANEW_NS (2 * NS_PER_SECOND)

/* ---- signals ------------------------------------------------------------ */

static void say_what_needs_a_restart(const struct daemon *daemon, const struct options *fresh)
{
	char names[256];

	if (options_differences(&daemon->options, fresh, names, sizeof(names)))
		log_warn("configuration: changed, but in force only once r3ringd is started again: "
			 "%s",
			 names);
}

/* Only what may change while channels are open. */
static void reload(struct daemon *daemon)
{
	struct r3ring_error err = {0};
	struct options fresh;

	if (options_parse(&fresh, daemon->argc, daemon->argv, &err) != OPTIONS_RUN) {
		log_error("configuration not read again, the old one holds: %s", err.text);
		return;
	}
	daemon->options.log_level = fresh.log_level;
	daemon->options.ring_size = fresh.ring_size;
	daemon->options.buffer_size = fresh.buffer_size;
	daemon->options.max_channels = fresh.max_channels;
	daemon->options.max_memory = fresh.max_memory;
	daemon->options.max_readers = fresh.max_readers;
	daemon->options.lossless_limit = fresh.lossless_limit;
	daemon->options.stall_limit = fresh.stall_limit;
	log_set_level((enum r3ring_log_level)fresh.log_level);
	log_info("configuration read again: log level, limits, and the size of new rings hold from "
		 "now on");
	say_what_needs_a_restart(daemon, &fresh);
}

static void stop(struct daemon *daemon)
{
	struct channel *channel;

	if (daemon->stopping)
		return;
	log_info("stopping: draining what was submitted");
	notify_send("STOPPING=1");
	daemon->stopping = true;
	daemon->stop_deadline_ns = clock_now_ns() + PATIENCE_NS;
	loop_remove(daemon->loop, &daemon->listener);
	openings_cancel(daemon);
	DL_FOREACH(daemon->channels, channel)
	drain_stop(&channel->drain, daemon->stop_deadline_ns);
}

static void signal_ready(struct loop_source *source, uint32_t events)
{
	struct daemon *daemon = source->owner;
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(daemon);
	else
		stop(daemon);
}

static int signals_open(struct daemon *daemon, struct r3ring_error *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* writing says EFBIG then */
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return r3ring_error_set(err, -errno, "signalfd: %s", strerror(errno));
	daemon->signals = (struct loop_source){
		.fd = fd, .events = POLLIN, .ready = signal_ready, .owner = daemon};
	return 0;
}

/* ---- opening ------------------------------------------------------------ */

/* Three or four descriptors a channel: the soft limit of 1024 may be too few. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			log_debug("the limit on descriptors stays: %s", strerror(errno));
	}
}

static int watch(struct daemon *daemon, struct r3ring_error *err)
{
	int r = loop_create(&daemon->loop);

	daemon->listener = (struct loop_source){.fd = daemon->dir.listen_fd,
						.events = POLLIN,
						.ready = session_accept,
						.owner = daemon};
	if (r == 0)
		r = loop_add(daemon->loop, &daemon->signals);
	if (r == 0)
		r = loop_add(daemon->loop, &daemon->listener);
	return r < 0 ? r3ring_error_set(err, r, "the control loop: %s", strerror(-r)) : 0;
}

int daemon_open(struct daemon *daemon, struct r3ring_error *err)
{
	int r;

	daemon->started_ns = clock_now_ns();
	daemon->dir.lock_fd = -1;
	daemon->signals.fd = -1;
	daemon->socket_watch.fd = -1;
	daemon->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	raise_descriptor_limit();
	r = signals_open(daemon, err);
	if (r == 0)
		r = runtime_dir_open(&daemon->dir, daemon->options.runtime_dir, daemon->gid, err);
	if (r == 0)
		r = watch(daemon, err);
	if (r < 0) {
		daemon_close(daemon);
		return r;
	}
	socket_watch_open(daemon);
	orphans_adopt(daemon);
	return 0;
}

/* ---- running ------------------------------------------------------------ */

static bool any_draining(const struct daemon *daemon)
{
	for (const struct channel *c = daemon->channels; c; c = c->next) {
		if (channel_draining(c))
			return true;
	}
	return false;
}

/* Channels that nobody drains have no thread that shows a sign of life. */
static bool heartbeat(struct daemon *daemon)
{
	uint64_t now = clock_now_ns();
	bool any = false;

	for (struct channel *c = daemon->channels; c; c = c->next) {
		if (channel_draining(c) || c->drain.gpu_lost)
			continue;
		r3ring_writer_heartbeat(c->drain.publisher.writer, now);
		any = true;
	}
	return any;
}

/* Not at once again, should the GPU fail every time. */
static bool anew_due(const struct daemon *daemon)
{
	return daemon->gpu_lost && !daemon->stopping &&
	       clock_now_ns() - daemon->started_ns >= ANEW_NS;
}

static void tell_openings(struct daemon *daemon)
{
	uint64_t now = clock_now_ns();

	if (!daemon->openings || now - daemon->openings_told_ns < NS_PER_SECOND)
		return;
	daemon->openings_told_ns = now;
	openings_tell(daemon);
}

int daemon_run(struct daemon *daemon)
{
	log_info("ready: %s", daemon->dir.socket_path);
	notify_send("READY=1");
	for (;;) {
		bool ticks = heartbeat(daemon) || daemon->stopping || daemon->gpu_lost ||
			     daemon->openings || daemon->refusals.left_out;
		int timeout_ms = ticks ? TICK_MS : -1;
		int r;

		if (daemon->stopping && !any_draining(daemon) && !daemon->openings)
			return 0;
		if (anew_due(daemon))
			return DAEMON_ANEW;
		r = loop_turn(daemon->loop, timeout_ms);
		if (r < 0) {
			log_error("control loop: %s", strerror(-r));
			return r;
		}
		orphans_expire(daemon);
		tell_openings(daemon);
		refusals_tell(&daemon->refusals);
	}
}

/* ---- closing ------------------------------------------------------------ */

/* Never freed: a GPU may still write to their rings until the process is gone. */
static struct channel *left_to_the_end;

static void close_channel(struct channel *channel)
{
	drain_stop(&channel->drain, 0);
	drain_join(&channel->drain);
	/* Its ring is left to the next daemon as it is. */
	if (channel->drain.gpu_lost) {
		DL_DELETE(channel->daemon->channels, channel);
		DL_APPEND(left_to_the_end, channel);
		return;
	}
	/* The producer lives, or may: it goes on with its requests under the next daemon. */
	if (!channel->retiring && (channel->producer || channel->state == CHANNEL_ORPHAN))
		channel_leave(channel);
	if (channel->producer) {
		channel->producer->channel = NULL;
		channel->producer = NULL;
	}
	channel_retire(channel, channel->retiring ? R3RING_CLOSED_NEXT : R3RING_CLOSED_SHUTDOWN);
}

void daemon_close(struct daemon *daemon)
{
	openings_close(daemon);
	while (daemon->channels)
		close_channel(daemon->channels);
	while (daemon->sessions)
		session_close(daemon->sessions);
	socket_watch_close(daemon);
	loop_destroy(daemon->loop);
	runtime_dir_close(&daemon->dir);
	if (daemon->signals.fd >= 0)
		close(daemon->signals.fd);
	if (daemon->spare_fd >= 0)
		close(daemon->spare_fd);
}
