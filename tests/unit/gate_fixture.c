/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>

#include <r3ring/atomic.h>

#include "tests/unit/gate_fixture.h"

struct gated gated;

void gated_open(void)
{
	ring_fixture_open(&gated.ring, GATED_DEPTH, GATED_ARENA);
	gated.gate = gate_create(gated.ring.segment, false);
	cr_assert_not_null(gated.gate);
	writer_set_gate(gated.ring.writer, gated.gate);
}

void gated_close(void)
{
	ring_fixture_close(&gated.ring);
	gate_destroy(gated.gate);
}

int gated_add(unsigned int page, bool lossless, uint64_t limit)
{
	const struct gate_terms terms = {
		.lossless = lossless, .limit_bytes = limit, .stall_ns = 100 * GATED_MS_NS};
	struct gate_front front = writer_front(gated.ring.writer);
	int number = gate_add(gated.gate, &gated.page[page], &terms);

	gate_admit(gated.gate, &front);
	return number;
}

int gated_put(uint32_t len)
{
	static const uint8_t payload[GATED_ARENA / 8];
	const struct r3ring_record_spec spec = {.len = len, .units = 1, .type = 3};

	return r3ring_writer_put(gated.ring.writer, &spec, payload);
}

unsigned int gated_put_until_shut(uint32_t len, unsigned int most)
{
	unsigned int count = 0;
	int rc = 0;

	while (count < most && (rc = gated_put(len)) == 0)
		count++;
	cr_expect(rc == 0 || rc == -EAGAIN, "%d", rc);
	return count;
}

unsigned int gated_demote(uint64_t waited_ns)
{
	struct gate_front front = writer_front(gated.ring.writer);

	return gate_demote(gated.gate, &front, waited_ns, false);
}

void gated_read_up_to(unsigned int page, uint64_t cursor)
{
	/* Pairs with the acquire in the gate. */
	r3ring_store_release_u64(&gated.page[page].cursor, cursor);
}
