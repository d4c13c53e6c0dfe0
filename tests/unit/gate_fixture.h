/* SPDX-License-Identifier: Apache-2.0 */
/* A small ring whose writer has a gate, and pages of readers that it looks at. */
#ifndef TESTS_UNIT_GATE_FIXTURE_H
#define TESTS_UNIT_GATE_FIXTURE_H

#include "ring/gate.h"
#include "tests/unit/ring_fixture.h"

#define GATED_DEPTH 64u
#define GATED_ARENA 65536u
#define GATED_RECORD 1024u
#define GATED_MS_NS 1000000ull

struct gated {
	struct ring_fixture ring;
	struct gate *gate;
	struct r3ring_reader_page page[GATE_MEMBERS_MAX + 1];
};

extern struct gated gated;

/* For .init and .fini. */
void gated_open(void);
void gated_close(void);

/* Adds a reader, which the writer admits; returns its number, or an errno. */
int gated_add(unsigned int page, bool lossless, uint64_t limit);

int gated_put(uint32_t len);
/* Puts until the gate is shut; returns how many. */
unsigned int gated_put_until_shut(uint32_t len, unsigned int most);

/* The writer has waited for so long; returns how many readers that demoted. */
unsigned int gated_demote(uint64_t waited_ns);
void gated_read_up_to(unsigned int page, uint64_t cursor);

#endif
