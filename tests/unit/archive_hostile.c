/* SPDX-License-Identifier: Apache-2.0 */
/* Archives whose hashes are right and whose content is not: somebody made them so. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/archive_story.h"
#include "tests/support/archive_tally.h"

#define FIRST_BLOCK 128u
#define FIRST_ENTRY 256u

static struct archive_builder builder;
static struct story story;
static struct builder_bytes whole;

/* One block of READY, CHANNEL, GENERATION, SCHEMA, and a GAP; not compressed. */
static void tell(void)
{
	builder_open(&builder, 0);
	builder_segment(&builder);
	builder_ready(&builder);
	story_begin(&story, &builder, 0, "small/0");
	builder_gap(&builder, 0, 2, 5, ARCHIVE_GAP_OVERRUN);
	builder_segment_end(&builder, true);
	whole = builder_read(builder_path(&builder, "00000001.r3seg"));
}

/* Offset of the entry of that index in the file. */
static size_t entry_at(unsigned int index)
{
	size_t at = FIRST_ENTRY;

	while (index--) {
		struct archive_entry entry;

		memcpy(&entry, whole.at + at, sizeof(entry));
		at += sizeof(entry) + (entry.bytes + 7u) / 8 * 8;
	}
	return at;
}

/* The file with some bytes changed and its hashes made right. */
static struct archive_tally with(size_t at, const void *bytes, size_t len)
{
	uint8_t *changed = malloc(whole.len);

	memcpy(changed, whole.at, whole.len);
	memcpy(changed + at, bytes, len);
	builder_reseal(changed, whole.len);
	builder_write(builder_path(&builder, "00000001.r3seg"), changed, whole.len);
	free(changed);
	return archive_tally(builder.dir);
}

static void expect_refused(size_t at, uint64_t value, size_t len, const char *why)
{
	struct archive_tally tally = with(at, &value, len);

	cr_expect(tally.opened || tally.damaged, "%zu: %s", at, why);
	cr_expect(strstr(tally.text, why), "%zu, %s: %s", at, why, tally.text);
	cr_expect_eq(tally.records, 0, "%zu: %s", at, why);
}

#define HEAD(member) offsetof(struct archive_segment_head, member)
#define BLOCK(member) (FIRST_BLOCK + offsetof(struct archive_block_head, member))
#define ENTRY(index, member) (entry_at(index) + offsetof(struct archive_entry, member))
#define PAYLOAD(index, type, member)                                                               \
	(entry_at(index) + sizeof(struct archive_entry) + offsetof(struct type, member))

Test(archive_hostile, heads_of_segments_are_looked_at_behind_their_hash)
{
	tell();
	cr_assert_eq(archive_tally(builder.dir).damaged, 0);
	expect_refused(HEAD(magic), 'X', 1, "does not begin as a segment does");
	expect_refused(HEAD(bytes), 100, 4, "what no r3ring writes");
	expect_refused(HEAD(bytes), 1u << 20, 4, "what no r3ring writes");
	expect_refused(HEAD(flags), 2, 4, "what no r3ring writes");
	expect_refused(HEAD(number), 7, 8, "it was renamed");
	expect_refused(HEAD(first_block), 7, 8, "cannot begin with block 7");
	builder_close(&builder);
}

Test(archive_hostile, heads_of_blocks_are_looked_at_behind_their_hash)
{
	tell();
	expect_refused(BLOCK(magic), 'X', 1, "does not have its hash");
	expect_refused(BLOCK(flags), 8, 4, "what no r3ring writes");
	expect_refused(BLOCK(flags), ARCHIVE_BLOCK_MORE, 4, "what no r3ring writes");
	expect_refused(BLOCK(number), 2, 8, "another one is in its place");
	expect_refused(BLOCK(raw), 1u << 31, 4, "what no r3ring writes");
	expect_refused(BLOCK(raw), 8, 4, "what no r3ring writes");
	expect_refused(BLOCK(flags), ARCHIVE_BLOCK_ZSTD, 4, "cannot be decompressed");
	expect_refused(BLOCK(entries), 4, 4, "more bytes than its entries");
	expect_refused(BLOCK(entries), 6, 4, "fewer entries");
	expect_refused(BLOCK(entries), UINT32_MAX, 4, "what no r3ring writes");
	expect_refused(BLOCK(own), 0, 4, "says that it has 0 records, but it has 1");
	expect_refused(BLOCK(own), 9, 4, "what no r3ring writes");
	expect_refused(BLOCK(state), 1, 8, "what no r3ring writes");
	expect_refused(BLOCK(reserved1), 1, 8, "what no r3ring writes");
	expect_refused(BLOCK(records), 2, 8, "says that there are 2 records");
	builder_close(&builder);
}

Test(archive_hostile, entries_are_looked_at_before_the_first_is_given)
{
	static const char never[] = "no r3ring of this format writes";

	tell();
	expect_refused(ENTRY(4, kind), 9, 2, never);
	expect_refused(ENTRY(4, kind), 0, 2, never);
	expect_refused(ENTRY(4, kind), ARCHIVE_UNFOLLOWED, 2, never);
	expect_refused(ENTRY(0, kind), ARCHIVE_UNFOLLOWED, 2, never);
	expect_refused(ENTRY(4, bytes), UINT32_MAX, 4, "reaches beyond it");
	expect_refused(ENTRY(4, reserved), 1, 4, never);
	expect_refused(ENTRY(4, type), 1, 2, never);
	expect_refused(ENTRY(4, flags), 1, 2, never);
	expect_refused(ENTRY(4, flags), ARCHIVE_ENTRY_REPEATED, 2, never);
	expect_refused(ENTRY(3, type), 0, 2, never);
	expect_refused(ENTRY(3, seq), 0, 8, never);
	expect_refused(ENTRY(2, bytes), 24, 4, never);
	expect_refused(ENTRY(1, bytes) + sizeof(struct archive_entry), 1, 1, never);
	expect_refused(PAYLOAD(4, archive_gap, cause), 77, 4, never);
	expect_refused(PAYLOAD(4, archive_gap, lost), 3, 8, never);
	expect_refused(PAYLOAD(4, archive_gap, from_seq), 0, 8, never);
	expect_refused(PAYLOAD(4, archive_gap, reserved), 1, 4, never);
	expect_refused(entry_at(1) + sizeof(struct archive_entry) + 3, 0, 1, never);
	expect_refused(entry_at(2) - 1, 1, 1, never);
	builder_close(&builder);
}

Test(archive_hostile, entries_of_what_was_not_declared_are_refused)
{
	struct archive_tally tally;
	const uint16_t channel = 9, repeated = ARCHIVE_ENTRY_REPEATED;

	tell();
	expect_refused(ENTRY(3, channel), 9, 2, "a channel that was not declared");
	expect_refused(ENTRY(2, channel), 9, 2, "a channel that was not declared");
	expect_refused(ENTRY(1, flags), repeated, 2, "said again behind READY");
	tally = with(ENTRY(1, channel), &channel, sizeof(channel));
	cr_expect(strstr(tally.text, "a channel that was not declared"), "%s", tally.text);
	cr_expect_eq(tally.items, 1);
	builder_close(&builder);
}
