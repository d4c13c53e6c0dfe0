/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_session into the directory given: whole conversations of
 * producers, readers and tools, and hellos with descriptors of every wrong kind. */
#include <string.h>

#include <r3ring/proto.h>

#include "channel/extent.h"
#include "channel/pages.h"
#include "tests/fuzz/seed_file.h"
#include "tests/fuzz/session_input.h"

struct conversation {
	uint8_t bytes[8192];
	size_t len;
};

static void add(struct conversation *talk, const void *bytes, size_t len)
{
	memcpy(talk->bytes + talk->len, bytes, len);
	talk->len += len;
}

static void say(struct conversation *talk, uint8_t connection, const uint8_t kinds[4], uint8_t fds,
		const void *message, size_t len)
{
	struct session_input_message head = {
		.fds = fds, .connection = connection, .bytes = (uint16_t)len};

	if (kinds)
		memcpy(head.kinds, kinds, sizeof(head.kinds));
	add(talk, &head, sizeof(head));
	add(talk, message, len);
}

/* ---- what is said --------------------------------------------------------- */

static const uint8_t right_kinds[4] = {SESSION_FD_PAGES, SESSION_FD_BUFFER, SESSION_FD_PIDFD, 0};

static struct r3ring_channel_name channel_name(void)
{
	return (struct r3ring_channel_name){.instance = "fuzz"};
}

static size_t make_schema(uint64_t out[128])
{
	static const struct r3ring_layer_entry layers[SESSION_INPUT_LAYERS] = {{.layer_id = 0},
									       {.layer_id = 1}};
	struct r3ring_record record = {.type = R3RING_SCHEMA};
	long bytes;

	record.u.schema.head = (struct r3ring_schema_record){.layers = SESSION_INPUT_LAYERS,
							     .experts = 8,
							     .top_k = 2,
							     .max_rows = 8,
							     .clock = 1,
							     .model = "fuzz"};
	record.u.schema.layers = layers;
	bytes = r3ring_record_encode(&record, out, 128 * sizeof(uint64_t), NULL);
	if (bytes < 0)
		exit(1);
	return (size_t)bytes;
}

static uint64_t pages_bytes(void)
{
	struct r3ring_error err;
	struct pages pages;
	uint64_t bytes;

	if (pages_create(&pages, SESSION_INPUT_LAYERS, SESSION_INPUT_LANE_BYTES,
			 SESSION_INPUT_LANE_BYTES, &err) < 0)
		exit(1);
	bytes = pages.bytes;
	pages_release(&pages);
	return bytes;
}

static void say_producer(struct conversation *talk, uint8_t connection, const uint8_t kinds[4],
			 uint8_t fds, uint32_t reconnect)
{
	struct r3ring_hello_producer_message hello = {
		.head.type = R3RING_MSG_HELLO_PRODUCER,
		.channel = channel_name(),
		.buffer_kind = R3RING_BUFFER_HOST,
		.has_pidfd = fds > 2,
		.reconnect = reconnect,
		.pages_bytes = pages_bytes(),
		.buffer_bytes = SESSION_INPUT_BUFFER_BYTES,
		.last_generation = reconnect,
	};
	uint64_t schema[128];
	uint8_t message[2048];

	hello.schema_len = (uint32_t)make_schema(schema);
	memcpy(message, &hello, sizeof(hello));
	memcpy(message + sizeof(hello), schema, hello.schema_len);
	say(talk, connection, kinds, fds, message, sizeof(hello) + hello.schema_len);
}

static void say_reader(struct conversation *talk, uint8_t connection, uint8_t kind, size_t bytes)
{
	const struct r3ring_hello_reader_message hello = {
		.head.type = R3RING_MSG_HELLO_READER,
		.channel = channel_name(),
		.lossless = 1,
		.has_pidfd = bytes == sizeof(hello),
	};
	const uint8_t kinds[4] = {kind};

	say(talk, connection, kinds, bytes == sizeof(hello), &hello, bytes);
}

static void say_short(struct conversation *talk, uint8_t connection, uint16_t type, uint8_t fds)
{
	struct r3ring_list_message message = {.head.type = type};

	say(talk, connection, right_kinds, fds, &message,
	    type == R3RING_MSG_LIST ? sizeof(message) : sizeof(message.head));
}

/* ---- conversations -------------------------------------------------------- */

static void finish(const struct conversation *talk, const char *dir, const char *name)
{
	seed_write(dir, name, &(struct seed_part){talk->bytes, talk->len}, 1);
}

static void everybody(const char *dir)
{
	struct conversation talk = {.len = 0};

	say_producer(&talk, 0, right_kinds, 3, 0);
	say_reader(&talk, 1, SESSION_FD_PIDFD, sizeof(struct r3ring_hello_reader_message));
	say_reader(&talk, 2, 0, R3RING_HELLO_READER_MINOR0);
	say_short(&talk, 3, R3RING_MSG_LIST, 0);
	say_short(&talk, 3, R3RING_MSG_GET_STATUS, 0);
	say_reader(&talk, 1, SESSION_FD_PIDFD, sizeof(struct r3ring_hello_reader_message));
	say_short(&talk, 0, R3RING_MSG_BYE, 0);
	finish(&talk, dir, "everybody");
}

static void one_after_the_other(const char *dir)
{
	struct conversation talk = {.len = 0};

	say_producer(&talk, 0, right_kinds, 3 | SESSION_INPUT_HANG_UP, 0);
	say_producer(&talk, 1, right_kinds, 3, 1);
	say_producer(&talk, 2, right_kinds, 2, 0);
	say_reader(&talk, 3, SESSION_FD_DEAD_PIDFD, sizeof(struct r3ring_hello_reader_message));
	say_short(&talk, 1, R3RING_MSG_BYE, SESSION_INPUT_AT_ONCE);
	say_short(&talk, 1, R3RING_MSG_GET_STATUS, SESSION_INPUT_HANG_UP);
	finish(&talk, dir, "one-after-the-other");
}

static void wrong_descriptors(const char *dir, uint8_t kind)
{
	struct conversation talk = {.len = 0};
	uint8_t kinds[4];
	char name[32];

	for (unsigned int place = 0; place < 3; place++) {
		memcpy(kinds, right_kinds, sizeof(kinds));
		kinds[place] = kind;
		say_producer(&talk, (uint8_t)place, kinds, 3, 0);
	}
	say_reader(&talk, 3, kind, sizeof(struct r3ring_hello_reader_message));
	say_short(&talk, 3, R3RING_MSG_GET_STATUS, 4);
	say_short(&talk, 3, R3RING_MSG_GET_STATUS, 7);
	snprintf(name, sizeof(name), "descriptor.%u", kind);
	finish(&talk, dir, name);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	everybody(argv[1]);
	one_after_the_other(argv[1]);
	for (uint8_t kind = 0; kind < SESSION_FD_KINDS; kind++)
		wrong_descriptors(argv[1], kind);
	return 0;
}
