/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of seeded random streams, cell by cell, beside a reference that keeps for each position
 * the pass that counts, and adds up from these anew, slowly, whenever it is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/signature_fixture.h"

#define SEEDS 64u
#define ROUNDS 150u
#define REQUESTS 3u   /* that live at a time */
#define POSITIONS 24u /* of a request, at most */
#define KEY_TOKENS 2u
#define BLOCKS (POSITIONS / KEY_TOKENS)
#define KEYS ((ROUNDS + 1) * BLOCKS)
#define ALL_LOST ((1u << FEED_LAYERS) - 1)

/* What became of a position. */
struct pass {
	uint64_t step; /* 0: nothing of it is known, and whoever runs it is the first */
	uint32_t row;
	uint32_t lost; /* layers, a bit each */
	bool cached;
};

struct request {
	uint64_t handle; /* 0: none */
	char id[16];
	uint16_t attempt;
	uint32_t prompt, fed, known; /* tokens: of the first attempt; now; at most so far */
	uint64_t key[BLOCKS];
	struct pass pass[POSITIONS]; /* that count, */
	struct pass kv[POSITIONS];   /* and that the attempt goes on from */
};

static uint64_t state, step, handles;
static struct request request[REQUESTS];
static struct pass cache[KEYS][KEY_TOKENS]; /* by key */

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static uint16_t expert(const struct feed *feed, uint64_t at, uint32_t row, uint32_t layer,
		       uint32_t k)
{
	const uint32_t first = (uint32_t)(at * 2654435761u + row * 40503u + layer * 977u) >> 7;

	(void)feed;
	return (uint16_t)((first + k * (1 + layer)) % SIGNATURE_EXPERTS);
}

/* ---- the reference ----------------------------------------------------------------- */

static void note(struct request *one, uint32_t position, const struct pass *pass)
{
	if (!one->pass[position].step)
		one->pass[position] = *pass;
	if (one->known <= position)
		one->known = position + 1;
	one->kv[position] = *pass;
}

/* The blocks that a span fills. */
static void note_keys(const struct request *one, const struct r3ring_span *span)
{
	const uint32_t first = span->position / KEY_TOKENS;

	for (uint32_t i = first; i < first + span->keys; i++)
		memcpy(cache[one->key[i]], &one->kv[i * KEY_TOKENS], sizeof(cache[0]));
}

static void add_pass(struct signature_expected *expected, const struct pass *pass,
		     enum r3ring_signature_phase phase)
{
	expected->rows[phase] += !pass->lost;
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		for (uint32_t k = 0; k < FEED_TOP_K && !(pass->lost >> layer & 1); k++)
			expected->counts[phase][layer * SIGNATURE_EXPERTS +
						expert(NULL, pass->step, pass->row, layer, k)]++;
}

static void check(const struct request *one, uint32_t seed)
{
	struct signature_expected expected = {0};
	const struct r3ring_signature_info *info;
	uint64_t missing = 0, part = 0, inherited = 0;

	for (uint32_t i = 0; i < one->known; i++) {
		const struct pass *pass = &one->pass[i];

		missing += !pass->step || pass->lost;
		part += pass->step && pass->lost && pass->lost != ALL_LOST;
		inherited += pass->step && !pass->lost && pass->cached;
		if (pass->step)
			add_pass(&expected, pass,
				 i < one->prompt ? R3RING_SIGNATURE_PREFILL
						 : R3RING_SIGNATURE_DECODE);
	}
	signature_expect(one->id, &expected);
	info = signature_get(one->id);
	cr_expect_eq(info->rows_missing, missing, "seed %u, %s: %lu missing, not %lu", seed,
		     one->id, info->rows_missing, missing);
	cr_expect_eq(info->rows_in_part, part, "seed %u, %s: %lu in part, not %lu", seed, one->id,
		     info->rows_in_part, part);
	cr_expect_eq(info->rows_inherited, inherited, "seed %u, %s: %lu inherited, not %lu", seed,
		     one->id, info->rows_inherited, inherited);
}

/* ---- requests ------------------------------------------------------------------------ */

static void begin(struct request *one)
{
	*one = (struct request){.handle = ++handles, .prompt = 1 + draw(POSITIONS / 2)};
	snprintf(one->id, sizeof(one->id), "r%lu", one->handle);
	for (uint32_t i = 0; i < BLOCKS; i++)
		one->key[i] = one->handle * BLOCKS + i;
	feed_begin(&signature_feed, one->handle, one->id, one->prompt, 0);
}

/* Its tokens are kept, and all of them fed again. */
static void preempt(struct request *one)
{
	feed_end(&signature_feed, one->handle, R3RING_END_PREEMPTED, one->attempt, one->fed);
	one->handle = ++handles;
	one->attempt++;
	feed_begin(&signature_feed, one->handle, one->id, one->fed, one->attempt);
	one->fed = 0;
}

static void finish(struct request *one, uint32_t seed)
{
	/* The last one was sampled, and not fed. */
	feed_end(&signature_feed, one->handle, R3RING_END_FINISHED, one->attempt, one->fed + 1);
	check(one, seed);
	one->handle = 0;
}

/* ---- steps ----------------------------------------------------------------------------- */

struct stepping {
	struct r3ring_span span[2 * REQUESTS];
	struct request *of[2 * REQUESTS];
	uint64_t key[2 * REQUESTS * BLOCKS];
	uint32_t spans, keys, rows;
};

static void add_span(struct stepping *to, struct request *one, uint8_t kind, uint32_t position,
		     uint32_t rows)
{
	const uint32_t keys = (position + rows) / KEY_TOKENS - position / KEY_TOKENS;
	struct r3ring_span *span = &to->span[to->spans];

	*span = keyed_span(one->handle, kind, position, to->rows, rows, keys);
	span->attempt = one->attempt;
	to->of[to->spans++] = one;
	if (kind == R3RING_SPAN_COMPUTED)
		to->rows += rows;
}

static void name_blocks(struct stepping *to, const struct request *of, uint32_t position,
			uint32_t keys)
{
	for (uint32_t i = 0; i < keys; i++)
		to->key[to->keys++] = of->key[position / KEY_TOKENS + i];
}

/* The first tokens of another's prompt are those of this one. */
static void find_prefix(struct stepping *to, struct request *one)
{
	const struct request *other = &request[draw(REQUESTS)];
	uint32_t tokens = (1 + draw(3)) * KEY_TOKENS;

	if (one->attempt || one->fed || one == other || !other->handle || tokens >= one->prompt ||
	    tokens > other->known)
		return;
	add_span(to, one, R3RING_SPAN_CACHED, 0, tokens);
	name_blocks(to, other, 0, tokens / KEY_TOKENS);
	memcpy(one->key, other->key, tokens / KEY_TOKENS * sizeof(*one->key));
	one->fed = tokens;
}

static void compute(struct stepping *to, struct request *one)
{
	const uint32_t end = one->attempt && one->fed < one->known ? one->known : one->prompt;
	const uint32_t left = one->fed < end ? end - one->fed : 1;
	const uint32_t rows = 1 + draw(left < 5 ? left : 5);

	if (one->fed + rows > POSITIONS)
		return;
	add_span(to, one, R3RING_SPAN_COMPUTED, one->fed, rows);
	name_blocks(to, one, one->fed, to->span[to->spans - 1].keys);
}

static void take_computed(struct request *one, const struct r3ring_span *span, uint32_t lost)
{
	const uint32_t rows = span->flags & R3RING_SPAN_DRAFT ? span->accepted : span->rows;

	for (uint32_t i = 0; i < rows; i++)
		note(one, span->position + i,
		     &(struct pass){.step = step, .row = span->row + i, .lost = lost});
	one->fed += rows;
	note_keys(one, span);
}

static void take_cached(struct request *one, const struct r3ring_span *span)
{
	for (uint32_t i = 0; i < span->rows; i++) {
		struct pass pass = cache[one->key[i / KEY_TOKENS]][i % KEY_TOKENS];

		pass.cached = true;
		note(one, i, &pass);
	}
}

/* What came of the step is noted; @lost: layers of it. What is cached may have been run by it. */
static void take_place(const struct stepping *it, uint32_t lost)
{
	for (uint32_t i = 0; i < it->spans; i++)
		if (it->span[i].kind == R3RING_SPAN_COMPUTED)
			take_computed(it->of[i], &it->span[i], lost);
	for (uint32_t i = 0; i < it->spans; i++)
		if (it->span[i].kind == R3RING_SPAN_CACHED)
			take_cached(it->of[i], &it->span[i]);
}

static void feed_it(const struct stepping *it)
{
	feed_step(&signature_feed, step, it->rows, it->span, it->spans, it->key, it->keys);
}

static void run_whole(const struct stepping *it)
{
	feed_it(it);
	feed_layers(&signature_feed, step, it->rows, 0, FEED_LAYERS);
	feed_step_end(&signature_feed, step, -1, 0);
	take_place(it, 0);
}

static void run_without_a_layer(const struct stepping *it)
{
	const uint32_t layer = draw(FEED_LAYERS);

	feed_it(it);
	feed_layers(&signature_feed, step, it->rows, 0, FEED_LAYERS);
	feed_step_end(&signature_feed, step, (int32_t)layer, R3RING_CAUSE_OVERLAP);
	take_place(it, 1u << layer);
}

static void drop(const struct stepping *it)
{
	signature_feed.flags = R3RING_STEP_DROPPED;
	feed_it(it);
	signature_feed.flags = 0;
	feed_lost(&signature_feed, step, step, R3RING_CAUSE_BUFFER_FULL, 0);
	take_place(it, ALL_LOST);
}

/* A draft that is told of at once, or behind its step. */
static void draft(struct request *one)
{
	const uint32_t rows = 1 + draw(4);
	struct stepping it = {0};
	const bool late = draw(2);
	uint32_t accepted = draw(rows + 1);

	if (one->fed < one->prompt || one->fed < one->known || one->fed + rows > POSITIONS)
		return;
	step++;
	add_span(&it, one, R3RING_SPAN_COMPUTED, one->fed, rows);
	it.span[0].keys = 0;
	it.span[0].flags = R3RING_SPAN_DRAFT;
	it.span[0].accepted = late ? R3RING_UNKNOWN_U32 : accepted;
	feed_it(&it);
	feed_layers(&signature_feed, step, rows, 0, FEED_LAYERS);
	feed_step_end(&signature_feed, step, -1, 0);
	it.span[0].accepted = accepted;
	if (late)
		feed_spans(&signature_feed, step, it.span, 1);
	take_place(&it, 0);
}

static void run_some(void)
{
	void (*const how[])(const struct stepping *it) = {run_whole, run_whole, run_whole,
							  run_without_a_layer, drop};
	struct stepping it = {0};

	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (!request[i].handle || draw(3) == 0)
			continue;
		if (draw(2))
			find_prefix(&it, &request[i]);
		compute(&it, &request[i]);
	}
	if (!it.rows)
		return;
	step++;
	how[draw(sizeof(how) / sizeof(*how))](&it);
}

static void do_one(struct request *one, uint32_t seed)
{
	const uint32_t what = draw(10);

	if (!one->handle)
		begin(one);
	else if (what == 0 && one->fed >= one->known)
		preempt(one);
	else if (what == 1 && one->fed >= one->prompt && one->fed >= one->known)
		finish(one, seed);
	else if (what < 4)
		draft(one);
	else
		run_some();
}

/* ---- seeds ----------------------------------------------------------------------------- */

static void run_seed(uint32_t seed)
{
	memset(request, 0, sizeof(request));
	memset(cache, 0, sizeof(cache));
	state = seed;
	step = handles = 0;
	signature_open(NULL);
	signature_feed.id = expert;
	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	signature_feed.tokens_per_key = KEY_TOKENS;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		do_one(&request[draw(REQUESTS)], seed);
		for (uint32_t i = 0; i < REQUESTS; i++)
			if (request[i].handle && request[i].known)
				check(&request[i], seed);
	}
	signature_close();
}

Test(signature_random, each_cell_is_as_the_passes_that_count_make_it)
{
	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		run_seed(seed);
}
