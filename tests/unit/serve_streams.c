/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events, over real sockets: they hold up nobody, and none is held up. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "serve/http.h"
#include "serve/listen.h"
#include "serve/streams.h"
#include "tests/support/http_client.h"

#define ENDS "Host: 127.0.0.1\r\nConnection: close\r\n\r\n"
#define LARGE (32u << 20) /* more than sockets take */
#define PATIENCE_MS 60000

static struct guard guard = {.hosts = {"127.0.0.1"}, .host_count = 1};
static struct http_server *server;
static struct streams *streams;
static int port;
static uint32_t told_large, freed; /* by all streams */

struct told {
	uint32_t count;
	size_t size; /* of each event */
};

static char *tell(void *context)
{
	struct told *to = context;
	char *text = malloc(to->size + 64);
	int head = sprintf(text, "data: %u", to->count++);

	memset(text + head, ' ', to->size);
	strcpy(text + head + to->size, "\n\n");
	if (to->size == LARGE)
		r3ring_fetch_add_u32(&told_large, 1);
	return text;
}

static void free_told(void *context)
{
	free(context);
	r3ring_fetch_add_u32(&freed, 1);
}

static void events(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct told *to = calloc(1, sizeof(*to));
	const char *size = http_query(request, "size");

	(void)context;
	to->size = size ? (size_t)atoi(size) : 0;
	answer->response = streams_open(
		streams, request->connection,
		&(struct stream_teller){
			.tell = tell, .free = free_told, .context = to, .interval_ns = 2000000});
	if (!answer->response)
		http_refuse(answer, 503, "full");
}

static void echo(void *context, const struct http_request *request, struct http_answer *answer)
{
	(void)context;
	(void)request;
	answer->json = json_pack("{s:s}", "said", "echo");
}

static const struct http_route routes[] = {{"GET", "/events", events, "size"},
					   {"GET", "/echo", echo, NULL}};

static void start(void)
{
	struct r3ring_error err = {0};
	struct listen_place place;
	const struct http_options options = {
		.listener = listen_on_address("127.0.0.1:0", &place, &err),
		.guard = &guard,
		.routes = routes,
		.route_count = 2,
		.threads = 2,
	};

	cr_assert_geq(options.listener, 0, "%s", err.text);
	cr_assert_eq(streams_start(&streams, &err), 0);
	cr_assert_eq(http_server_start(&server, &options, &err), 0, "%s", err.text);
	port = atoi(strrchr(place.name, ':') + 1);
}

static void stop(void)
{
	streams_end(streams);
	http_server_stop(server);
	streams_free(streams);
	server = NULL;
	streams = NULL;
}

static void finish(void)
{
	if (server)
		stop();
}

TestSuite(serve_streams, .init = start, .fini = finish);

static int listen_to(const char *path)
{
	int fd = http_dial_port(port);

	dprintf(fd, "GET %s HTTP/1.1\r\n" ENDS, path);
	return fd;
}

/* Reads until @text was there, or it ends. */
static bool hears(int fd, const char *text)
{
	static char heard[1 << 20];
	size_t length = 0;
	ssize_t got;

	heard[0] = '\0';
	while (!strstr(heard, text) && length < sizeof(heard) - 1 &&
	       (got = recv(fd, heard + length, sizeof(heard) - 1 - length, 0)) > 0) {
		length += (size_t)got;
		heard[length] = '\0';
	}
	return strstr(heard, text);
}

static bool becomes(const uint32_t *counter, uint32_t least)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		if (r3ring_load_relaxed_u32(counter) >= least)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

Test(serve_streams, a_client_is_told_again_and_again)
{
	int fd = listen_to("/events");

	cr_expect(hears(fd, "text/event-stream"));
	cr_expect(hears(fd, "data: 20\n\n"));
	close(fd);
}

Test(serve_streams, as_many_as_there_may_be_leave_the_servers_threads_to_others)
{
	int fd[STREAMS_MAX];

	for (uint32_t i = 0; i < STREAMS_MAX; i++) {
		fd[i] = listen_to("/events");
		cr_assert(hears(fd[i], "data: 0\n\n"));
	}
	cr_expect(
		strstr(http_exchange(http_dial_port(port), "GET /events HTTP/1.1\r\n" ENDS), "503"),
		"one too many");
	cr_expect(
		strstr(http_exchange(http_dial_port(port), "GET /echo HTTP/1.1\r\n" ENDS), "echo"));
	for (uint32_t i = 0; i < STREAMS_MAX; i++) {
		cr_expect(hears(fd[i], "data: 3"));
		close(fd[i]);
	}
	/* Who has gone makes room, and one that was refused was freed as well. */
	cr_expect(becomes(&freed, STREAMS_MAX + 1));
	fd[0] = listen_to("/events");
	cr_expect(hears(fd[0], "data: 0\n\n"));
	close(fd[0]);
}

Test(serve_streams, a_client_that_does_not_read_is_not_told_and_holds_up_nobody)
{
	char path[64];
	int slow, other;

	snprintf(path, sizeof(path), "/events?size=%u", LARGE);
	slow = listen_to(path);
	cr_assert(becomes(&told_large, 1));
	other = listen_to("/events");
	cr_expect(hears(other, "data: 100\n\n"));
	cr_expect_eq(r3ring_load_relaxed_u32(&told_large), 1, "the first is not read yet");
	close(other);
	close(slow);
	cr_expect(becomes(&freed, 2));
}

Test(serve_streams, the_server_ends_though_streams_are_open)
{
	int fd = listen_to("/events"), waiting = listen_to("/events");

	cr_assert(hears(fd, "data: 1"));
	stop();
	cr_expect_eq(r3ring_load_relaxed_u32(&freed), 2);
	cr_expect(!hears(fd, "data: never"), "it ends");
	close(fd);
	close(waiting);
}
