/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring serve: load and reservations for schedulers in other processes, over HTTP.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel/size_text.h"
#include "channel/socket.h"
#include "serve/listen.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/serve_api.h"

#define INSTANCES_MAX 64u
#define THREADS 2u
#define DAEMON_INTERVAL_MS 1000u
#define ROUTES_BYTES (UINT64_C(64) << 20) /* for routes of all instances */
#define ROUTES_BYTES_MIN (UINT64_C(64) << 10)

static const char usage[] =
	"usage: r3ring serve --instance NAME [--instance NAME]... [OPTION]...\n"
	"\n"
	"Follows the newest records of instances: a page that shows their load and losses live, "
	"and\n"
	"answers for schedulers, over HTTP (docs/API.md).\n"
	"\n"
	"  --instance NAME    an engine; it need not be there yet. At most 64\n"
	"  --listen ADDR:PORT where to listen (127.0.0.1:9300); beyond this machine only with a\n"
	"                     token\n"
	"  --unix PATH        a Unix socket instead, for this user; what a client reserves is\n"
	"                     freed when it dies\n"
	"  --token-file FILE  asks clients for the bearer token in this file, which nobody else\n"
	"                     may read\n"
	"  --allow-host NAME  answers requests for this Host as well; may be repeated\n"
	"  --gpus N           GPUs of an instance, where neither its EPLB maps nor its ranks say "
	"so\n"
	"  --capacity N       visits of tokens to experts that a GPU has room for in a layer and\n"
	"                     step; without it nothing can be reserved\n"
	"  --window-steps N   steps that the load is counted over (256)\n"
	"  --routes-memory SIZE\n"
	"                     for the routes of requests, of all instances together (64M);\n"
	"                     0: none are kept\n"
	"  --help             this text\n"
	"\n"
	"exit codes: 0 ended by a signal, 1 failed, 2 usage\n";

struct options {
	const char *instance[INSTANCES_MAX];
	uint32_t instances;
	const char *listen, *unix_path, *token_file;
	uint64_t routes_bytes; /* of all instances */
	struct served_options served;
	struct guard guard;
};

/* ---- the command line ----------------------------------------------------- */

static int complain(const char *what, const char *text)
{
	fprintf(stderr, "r3ring serve: %s%s\n", what, text);
	return arguments_refuse("r3ring serve", NULL);
}

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *number >= least &&
	       *number <= most;
}

static int add_instance(struct options *options, const char *name)
{
	struct r3ring_error err = {0};

	if (channel_instance_check(name, &err))
		return complain(err.text, "");
	if (options->instances == INSTANCES_MAX)
		return complain("at most 64 instances", "");
	for (uint32_t i = 0; i < options->instances; i++) {
		if (strcmp(options->instance[i], name) == 0)
			return complain("named twice: ", name);
	}
	options->instance[options->instances++] = name;
	return TOOL_DONE;
}

static int take_routes_memory(struct options *options, const char *text)
{
	uint64_t bytes = 0;

	if (strcmp(text, "0") != 0 && (size_text_parse(text, &bytes) || bytes < ROUTES_BYTES_MIN ||
				       bytes > UINT64_C(1) << 40))
		return complain("--routes-memory is 0 or 64K to 1T, not ", text);
	options->routes_bytes = bytes;
	return TOOL_DONE;
}

static int take_option(struct options *options, int option, const char *text)
{
	uint64_t number;

	switch (option) {
	case 'i':
		return add_instance(options, text);
	case 'l':
		options->listen = text;
		return listen_is_address(text)
			       ? TOOL_DONE
			       : complain("--listen is ADDR:PORT, as 127.0.0.1:9300, [::1]:9300 or "
					  ":9300, not ",
					  text);
	case 'u':
		options->unix_path = text;
		return TOOL_DONE;
	case 't':
		options->token_file = text;
		return TOOL_DONE;
	case 'a':
		/* Two are for the address itself. */
		if (options->guard.host_count == GUARD_HOSTS_MAX - 3)
			return complain("too many of --allow-host", "");
		options->guard.hosts[options->guard.host_count++] = text;
		return TOOL_DONE;
	case 'g':
		if (!read_number(text, 1, 4096, &number))
			return complain("--gpus is 1 to 4096, not ", text);
		options->served.gpus = (uint32_t)number;
		return TOOL_DONE;
	case 'c':
		if (!read_number(text, 1, R3RING_DEMAND_TOKENS_MAX, &number))
			return complain("--capacity is 1 to 1048576, not ", text);
		options->served.capacity = (uint32_t)number;
		return TOOL_DONE;
	case 'w':
		if (!read_number(text, 1, 1u << 20, &options->served.load.window_steps))
			return complain("--window-steps is 1 to 1048576, not ", text);
		return TOOL_DONE;
	case 'r':
		return take_routes_memory(options, text);
	default:
		return TOOL_USAGE;
	}
}

static int check_options(const struct options *options)
{
	if (!options->instances)
		return complain("which engine? --instance NAME", "");
	if (options->listen && options->unix_path)
		return complain("either --listen or --unix", "");
	return TOOL_DONE;
}

/* Returns TOOL_DONE; TOOL_USAGE once it has complained; -1 when help was asked for. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"instance", required_argument, NULL, 'i'},
		{"listen", required_argument, NULL, 'l'},
		{"unix", required_argument, NULL, 'u'},
		{"token-file", required_argument, NULL, 't'},
		{"allow-host", required_argument, NULL, 'a'},
		{"gpus", required_argument, NULL, 'g'},
		{"capacity", required_argument, NULL, 'c'},
		{"window-steps", required_argument, NULL, 'w'},
		{"routes-memory", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, code;

	options->routes_bytes = ROUTES_BYTES;
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'h')
			return -1;
		if (option == '?')
			return arguments_refuse(argv[0], NULL);
		code = take_option(options, option, optarg);
		if (code)
			return code;
	}
	if (optind < argc)
		return arguments_refuse(argv[0], argv[optind]);
	return check_options(options);
}

/* ---- serving -------------------------------------------------------------- */

struct service {
	struct options options;
	struct served *served[INSTANCES_MAX];
	struct listen_place place;
	struct api api;
	struct http_server *server;
};

static int fail(const struct r3ring_error *err)
{
	fprintf(stderr, "r3ring serve: %s\n", err->text);
	return TOOL_FAILED;
}

/* Who may ask: those who name us as we are known, and bear the token. */
static int open_listener(struct service *service, struct r3ring_error *err)
{
	const struct options *options = &service->options;
	struct guard *guard = &service->options.guard;
	int fd;

	if (options->token_file && guard_read_token(guard, options->token_file, err) < 0)
		return -1;
	if (options->unix_path) {
		guard->any_host = true;
		return listen_on_path(options->unix_path, &service->place, err);
	}
	fd = listen_on_address(options->listen ? options->listen : "127.0.0.1:9300",
			       &service->place, err);
	if (fd < 0)
		return fd;
	guard->hosts[guard->host_count++] = service->place.host;
	guard->hosts[guard->host_count++] = "localhost";
	guard->hosts[guard->host_count++] = "[::1]";
	if (service->place.loopback || guard->token[0])
		return fd;
	close(fd);
	return r3ring_error_set(err, -EACCES,
				"%s can be reached from other machines: ask them for a token with "
				"--token-file",
				service->place.name);
}

static void forget_owner(void *context, uint64_t owner)
{
	struct service *service = context;

	for (uint32_t i = 0; i < service->api.count; i++) {
		struct engine_model *model = follower_model(served_follower(service->served[i]));
		struct r3ring_book *book = served_made_book(service->served[i], model);

		if (book)
			r3ring_book_owner_gone(book, owner);
		engine_model_put(model);
	}
}

static void tell_change(void *context, const struct served *served,
			const struct served_change *change)
{
	(void)context;
	fprintf(stderr,
		"r3ring serve: %s: runs %s now, %s before: load and signatures begin anew, and %u "
		"reservations were freed\n",
		served_name(served), change->now, change->former, change->freed);
}

static int follow_all(struct service *service, struct r3ring_error *err)
{
	struct served_options options = service->options.served;
	int r = daemon_watch_start(&service->api.daemon, NULL, DAEMON_INTERVAL_MS, err);

	if (r == 0)
		r = r3ring_history_create(&service->api.history, NULL, err);

	options.history = service->api.history;
	options.watch = service->api.daemon;
	options.routes_bytes = service->options.routes_bytes / service->options.instances;
	options.load.size = sizeof(options.load);
	options.replaced = tell_change;
	service->api.served = service->served;
	for (uint32_t i = 0; r == 0 && i < service->options.instances; i++) {
		options.instance = service->options.instance[i];
		r = served_open(&service->served[i], &options, err);
		if (r == 0)
			service->api.count++;
	}
	return r;
}

/* What the page is told, beside loads. */
static int watch(struct service *service, struct r3ring_error *err)
{
	struct api *api = &service->api;
	int r = past_start(&api->past, api->served, api->count, err);

	if (r == 0)
		r = metrics_start(&api->metrics, api->daemon, api->served, api->count, err);
	if (r == 0)
		r = streams_start(&api->streams, err);
	return r;
}

static int start(struct service *service, struct r3ring_error *err)
{
	struct http_options options = {
		.listener = open_listener(service, err),
		.guard = &service->options.guard,
		.routes = api_routes,
		.route_count = api_route_count,
		.open_path = "/",
		.context = &service->api,
		.threads = THREADS,
	};
	int r = options.listener < 0 ? -1 : follow_all(service, err);

	if (r == 0)
		r = watch(service, err);
	if (r == 0 && service->options.unix_path)
		r = owners_start(&service->api.owners, forget_owner, service, err);
	if (r == 0)
		return http_server_start(&service->server, &options, err);
	if (options.listener >= 0)
		close(options.listener);
	return r;
}

static void stop(struct service *service)
{
	streams_end(service->api.streams);
	http_server_stop(service->server);
	streams_free(service->api.streams);
	past_stop(service->api.past);
	owners_stop(service->api.owners);
	for (uint32_t i = 0; i < service->api.count; i++)
		served_close(service->served[i]);
	daemon_watch_stop(service->api.daemon);
	metrics_stop(service->api.metrics);
	r3ring_history_destroy(service->api.history);
	if (service->options.unix_path && service->server)
		unlink(service->options.unix_path);
}

/* The signals that end it are blocked before any thread is made. */
static void block_signals(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, ends, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int serve(struct service *service)
{
	struct r3ring_error err = {0};
	sigset_t ends;
	int code = TOOL_DONE, signal_number;

	block_signals(&ends);
	if (start(service, &err) < 0) {
		code = fail(&err);
	} else {
		fprintf(stderr, "r3ring serve: listening on %s\n", service->place.name);
		sigwait(&ends, &signal_number);
	}
	stop(service);
	return code;
}

int cmd_serve(int argc, char **argv)
{
	static struct service service;
	int code = parse(argc, argv, &service.options);

	if (code < 0) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	return code ? code : serve(&service);
}
