/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's state, all of it the control plane's. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "capture_daemon/channel.h"
#include "capture_daemon/loop.h"
#include "capture_daemon/options.h"
#include "capture_daemon/refusals.h"
#include "capture_daemon/runtime_dir.h"
#include "capture_daemon/session.h"
#include "channel/socket.h"

struct daemon {
	int argc;
	char *const *argv;
	struct options options;
	gid_t gid; /* PEERS_NO_GROUP or that of --group */
	struct runtime_dir dir;
	struct loop *loop;
	struct loop_source listener;
	struct loop_source signals;
	struct loop_source socket_watch;
	int spare_fd;              /* given up to refuse a connection when descriptors are out */
	struct session *sessions;  /* utlist */
	struct opening *openings;  /* utlist */
	uint64_t openings_told_ns; /* when their producers were told how far they are */
	struct channel *channels;  /* utlist; at most one of a name is not retiring */
	struct socket_inbox inbox; /* the message being handled */
	struct refusals refusals;
	uint64_t started_ns;
	bool gpu_lost; /* no copy works in this process any more */
	bool stopping;
	uint64_t stop_deadline_ns;
};

/* Opens everything; on failure nothing stays behind. Returns 0 or a negative
 * errno with a message. daemon->options and gid must be filled in. */
int daemon_open(struct daemon *daemon, struct r3ring_error *err);

/* Runs until a signal ends it and all channels are drained. Returns 0, DAEMON_ANEW when
 * the process is to execute itself anew, or a negative errno. */
#define DAEMON_ANEW 1
int daemon_run(struct daemon *daemon);

/* Publishes the last records, removes segments and socket, frees all. */
void daemon_close(struct daemon *daemon);

#endif
