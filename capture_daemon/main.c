/* SPDX-License-Identifier: Apache-2.0 */
/* r3ringd: moves captured routes from producers into rings. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_daemon/anew.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"
#include "capture_daemon/peers.h"

enum exit_code {
	EXIT_CLEAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

static int run(struct daemon *daemon)
{
	struct r3ring_error err = {0};
	int r;

	log_open();
	log_set_level((enum r3ring_log_level)daemon->options.log_level);
	umask(0027);
	if (daemon_open(daemon, &err) < 0) {
		log_error("%s", err.text);
		return EXIT_FAILED;
	}
	r = daemon_run(daemon);
	if (r == DAEMON_ANEW) {
		r = anew_execute(daemon);
		log_error("cannot execute itself anew: %s", strerror(-r));
		return EXIT_FAILED;
	}
	daemon_close(daemon);
	if (r < 0)
		return EXIT_FAILED;
	log_info("ended in good order");
	return EXIT_CLEAN;
}

/* What is opened later must not get their numbers: it would be written to. */
static bool fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

static int say(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EXIT_CLEAN;
	fprintf(stderr, "r3ringd: standard output cannot be written: %s\n", strerror(errno));
	return EXIT_FAILED;
}

static int parse(struct daemon *daemon, struct r3ring_error *err)
{
	const struct options *options = &daemon->options;
	int r = options_parse(&daemon->options, daemon->argc, daemon->argv, err);

	daemon->gid = PEERS_NO_GROUP;
	if (r != OPTIONS_RUN || !options->group[0])
		return r;
	r = peers_find_group(options->group, &daemon->gid, err);
	return r < 0 ? r : OPTIONS_RUN;
}

int main(int argc, char *argv[])
{
	static struct daemon daemon;
	struct r3ring_error err = {0};

	if (!fill_standard_descriptors())
		return EXIT_FAILED;
	daemon.argc = argc;
	daemon.argv = argv;
	switch (parse(&daemon, &err)) {
	case OPTIONS_RUN:
		return run(&daemon);
	case OPTIONS_HELP:
		return say(options_help);
	case OPTIONS_VERSION:
		return say("r3ringd " R3RING_VERSION "\n");
	default:
		fprintf(stderr, "r3ringd: %s\n", err.text);
		return EXIT_USAGE;
	}
}
