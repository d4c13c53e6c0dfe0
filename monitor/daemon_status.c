/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the daemon for its state: one message a channel, then one of its own.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/proto.h>

#include "channel/clock.h"
#include "channel/socket.h"
#include "monitor/daemon_status.h"

#define ANSWER_TIMEOUT_MS 5000
#define CHANNELS_MAX 4096 /* more is no daemon of ours */
#define HANG_UPS 10
#define BETWEEN_HANG_UPS_MS 20

/* The JSON object behind a message's head. */
static json_t *message_object(const struct socket_inbox *inbox)
{
	size_t head = sizeof(inbox->u.head);
	json_t *object = json_loadb((const char *)inbox->u.bytes + head, inbox->len - head,
				    JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_now_ns() / 1000000);
}

/* A conversation that ends in time, in however many messages the answer comes. */
struct conversation {
	int fd;
	int64_t deadline_ms;
};

static int receive_object(const struct conversation *with, struct socket_inbox *inbox,
			  json_t **object, struct r3ring_error *err)
{
	int64_t left = with->deadline_ms - now_ms();
	int code = socket_hear(with->fd, inbox, left > 0 ? (int)left : 0, err);

	if (code)
		return code;
	socket_inbox_close_fds(inbox);
	*object = message_object(inbox);
	if (!*object)
		return r3ring_error_set(err, -EBADMSG,
					"the daemon's status is no JSON object; use r3ring and "
					"r3ringd of one release");
	return 0;
}

/* Fills @status with what the daemon sends until it is done. */
static int receive_all(const struct conversation *with, json_t *status, json_t *channels,
		       struct r3ring_error *err)
{
	struct socket_inbox inbox;
	json_t *object = NULL;

	for (unsigned int i = 0; i <= CHANNELS_MAX; i++) {
		int code = receive_object(with, &inbox, &object, err);

		if (code)
			return code;
		if (inbox.u.head.type == R3RING_MSG_STATUS_DONE)
			return json_object_set_new(status, "daemon", object) ? -ENOMEM : 0;
		if (inbox.u.head.type == R3RING_MSG_STATUS_CHANNEL)
			code = json_array_append_new(channels, object) ? -ENOMEM : 0;
		else
			json_decref(object); /* of a later version */
		if (code)
			return code;
	}
	return r3ring_error_set(err, -EBADMSG, "the daemon tells of more than %u channels",
				CHANNELS_MAX);
}

static int ask(const struct conversation *with, json_t **status, struct r3ring_error *err)
{
	struct r3ring_message request = {.type = R3RING_MSG_GET_STATUS};
	json_t *channels = json_array();
	json_t *answer = json_pack("{s:{}, s:O}", "daemon", "channels", channels);
	int code = answer ? 0 : -ENOMEM;

	if (!code)
		code = socket_send(with->fd, &request, sizeof(request), NULL, 0, NULL, 0);
	/* A daemon that refuses at once and hangs up leaves its reason to be read. */
	if (code && code != -EPIPE)
		r3ring_error_set(err, code, "asking the daemon for its status: %s",
				 strerror(-code));
	else
		code = receive_all(with, answer, channels, err);
	json_decref(channels);
	if (code)
		json_decref(answer);
	else
		*status = answer;
	return code;
}

static int ask_once(const char *runtime_dir, int64_t deadline_ms, json_t **status,
		    struct r3ring_error *err)
{
	struct conversation with = {.deadline_ms = deadline_ms};
	int code;

	with.fd = socket_connect(runtime_dir, err);
	if (with.fd < 0)
		return with.fd;
	code = ask(&with, status, err);
	close(with.fd);
	return code;
}

/* A daemon that was killed can be connected to for some milliseconds more, while the kernel
 * takes its io_uring apart: only who is hung up on again and again was hung up on by it. */
int daemon_status_ask(const char *runtime_dir, int timeout_ms, json_t **status,
		      struct r3ring_error *err)
{
	int64_t deadline_ms = now_ms() + timeout_ms;
	int code = ask_once(runtime_dir, deadline_ms, status, err);

	for (int hung_up = 1; code == -EPIPE && hung_up < HANG_UPS; hung_up++) {
		poll(NULL, 0, BETWEEN_HANG_UPS_MS);
		code = ask_once(runtime_dir, deadline_ms, status, err);
	}
	return code;
}

int daemon_status_get(json_t **status, struct r3ring_error *err)
{
	return daemon_status_ask(NULL, ANSWER_TIMEOUT_MS, status, err);
}

bool daemon_is_missing(int code)
{
	return code == -ECONNREFUSED || code == -EACCES;
}
