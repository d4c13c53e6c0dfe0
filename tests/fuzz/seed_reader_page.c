/* SPDX-License-Identifier: Apache-2.0 */
/* Writes seeds for fuzz_reader_page into the directory given: a reader that tells the
 * truth, and one for each lie. */
#include <stddef.h>
#include <string.h>

#include <r3ring/reader_page.h>

#include "tests/fuzz/seed_file.h"
#include "tests/support/gate_script.h"

#define ROUNDS 24u
#define WAITED_NS 1000u

struct script {
	uint8_t bytes[4096];
	size_t len;
};

static void add(struct script *script, uint64_t value, size_t bytes)
{
	memcpy(script->bytes + script->len, &value, bytes);
	script->len += bytes;
}

static void add_spoil(struct script *script, size_t offset, uint64_t value)
{
	add(script, GATE_SPOIL, 1);
	add(script, offset, 2);
	add(script, value, 8);
}

/* One record, what the liar says to it, what the honest one does. */
static void add_round(struct script *script, unsigned int round, size_t offset, uint64_t value)
{
	add(script, GATE_PUT, 1);
	add(script, round * 97 % 400, 2);
	add(script, WAITED_NS, 4);
	add_spoil(script, offset, value);
	add(script, GATE_READ, 1);
	add(script, round % 2 ? GATE_WAKE : GATE_LIST, 1);
}

static void add_extras(struct script *script)
{
	add(script, GATE_RESERVE, 1);
	add(script, 3, 1);
	add(script, 200, 2);
	add(script, GATE_ROOM, 1);
	add(script, 4, 2);
	add(script, 1024, 4);
	add(script, GATE_BEYOND, 1);
	add(script, 1, 1);
	add(script, GATE_REGISTER, 1);
	add(script, 1, 1);
	add(script, 1024, 8);
	add(script, WAITED_NS, 4);
}

int main(int argc, char **argv)
{
	static const struct lie {
		const char *name;
		size_t offset;
		uint64_t from, by; /* the value, and what every round adds */
	} lies[] = {
		{"truth", offsetof(struct r3ring_reader_page, cursor), 1, 1},
		{"backward", offsetof(struct r3ring_reader_page, cursor), 100, UINT64_MAX},
		{"beyond", offsetof(struct r3ring_reader_page, cursor), UINT64_MAX, 0},
		{"still", offsetof(struct r3ring_reader_page, cursor), 0, 0},
		{"waiting", offsetof(struct r3ring_reader_page, waiting), 1, 0},
		{"armed", offsetof(struct r3ring_reader_page, armed), 1, 1},
		{"state", offsetof(struct r3ring_reader_page, state), 2, 0},
		{"limit", offsetof(struct r3ring_reader_page, limit_bytes), UINT64_MAX, 0},
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct script script = {.len = 0};
		uint64_t value = lies[i].from;

		for (unsigned int round = 0; round < ROUNDS; round++, value += lies[i].by)
			add_round(&script, round, lies[i].offset, value);
		add_extras(&script);
		for (unsigned int round = 0; round < ROUNDS; round++, value += lies[i].by)
			add_round(&script, round, lies[i].offset, value);
		seed_write(argv[1], lies[i].name, &(struct seed_part){script.bytes, script.len}, 1);
	}
	return 0;
}
