/* SPDX-License-Identifier: Apache-2.0 */
/* r3ringd: moves captured routes from producers into rings. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"

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
	daemon_close(daemon);
	if (r < 0)
		return EXIT_FAILED;
	log_info("ended in good order");
	return EXIT_CLEAN;
}

int main(int argc, char *argv[])
{
	static struct daemon daemon;
	struct r3ring_error err = {0};

	daemon.argc = argc;
	daemon.argv = argv;
	switch (options_parse(&daemon.options, argc, argv, &err)) {
	case OPTIONS_RUN:
		return run(&daemon);
	case OPTIONS_HELP:
		fputs(options_help, stdout);
		return EXIT_CLEAN;
	case OPTIONS_VERSION:
		puts("r3ringd " R3RING_VERSION);
		return EXIT_CLEAN;
	default:
		fprintf(stderr, "r3ringd: %s\n", err.text);
		return EXIT_USAGE;
	}
}
