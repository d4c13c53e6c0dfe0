/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/socket_watch.h"

/* Connections that there are stay; only who has yet to come needs the file. */
static void listen_again(struct daemon *daemon)
{
	struct r3ring_error err = {0};
	int r;

	loop_remove(daemon->loop, &daemon->listener);
	r = runtime_dir_listen_again(&daemon->dir, daemon->gid, &err);
	daemon->listener.fd = daemon->dir.listen_fd;
	if (r == 0)
		r = loop_add(daemon->loop, &daemon->listener);
	if (r == 0)
		log_warn("socket %s was removed: made again", daemon->dir.socket_path);
	else
		log_error("socket %s was removed, and cannot be made again (%s): nobody finds this "
			  "daemon; start it again",
			  daemon->dir.socket_path, err.text[0] ? err.text : strerror(-r));
}

static void changed(struct loop_source *source, uint32_t events)
{
	struct daemon *daemon = source->owner;
	char told[4096];

	(void)events;
	while (read(source->fd, told, sizeof(told)) > 0)
		;
	if (!daemon->stopping && !runtime_dir_has_socket(&daemon->dir))
		listen_again(daemon);
}

void socket_watch_open(struct daemon *daemon)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	daemon->socket_watch =
		(struct loop_source){.fd = fd, .events = POLLIN, .ready = changed, .owner = daemon};
	if (fd < 0 || inotify_add_watch(fd, daemon->dir.path, IN_DELETE | IN_MOVED_FROM) < 0 ||
	    loop_add(daemon->loop, &daemon->socket_watch) < 0)
		log_debug("the socket's file is not watched: %s", strerror(errno));
}

void socket_watch_close(struct daemon *daemon)
{
	if (daemon->socket_watch.fd < 0)
		return;
	loop_remove(daemon->loop, &daemon->socket_watch);
	close(daemon->socket_watch.fd);
	daemon->socket_watch.fd = -1;
}
