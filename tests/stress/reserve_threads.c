/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One book of reservations, eight threads: each makes, commits, updates and frees for an
 * owner of its own, and now and then is gone in the midst of it, whatever it holds; meanwhile
 * maps change, and another thread lists the book page by page and finds in it, once each, those
 * that are there all the time. While all hold still for a moment, and at the end, the book
 * says what the threads know that they hold; when all is freed, nothing is left.
 *
 * usage: reserve_threads [TURNS [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/reserve.h>

#define THREADS 8
#define HELD 16 /* by a thread, at most */
#define ROUNDS 20
#define LAYERS 12
#define EXPERTS 64
#define TOP_K 4
#define GPUS 8
#define REPLICAS 2
#define CAPACITY 40
#define LASTING 50u /* there all the time, of no tokens */

static const struct r3ring_demand_shape shape = {LAYERS, EXPERTS, TOP_K};
static struct r3ring_book *book;
static uint64_t turns = 20000; /* of a thread, over all rounds */
static uint64_t seed;

struct worker {
	pthread_t thread;
	uint32_t number;
	uint64_t random;
	uint64_t lives; /* owners that it has been */
	uint64_t held[HELD];
	uint32_t tokens[HELD]; /* of each */
	uint64_t granted, refused, deaths;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static void die(const char *what, int64_t code)
{
	printf("reserve_threads: %s: %" PRId64 " (seed %" PRIu64 ")\n", what, code, seed);
	exit(1);
}

static uint64_t owner(const struct worker *worker)
{
	return 1 + worker->number + THREADS * worker->lives;
}

static uint32_t predict(struct worker *worker, struct r3ring_demand *demand)
{
	uint32_t counts[LAYERS * EXPERTS], tokens = (uint32_t)next_random(&worker->random) % 4;

	for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
		counts[i] = (uint32_t)next_random(&worker->random) % 100;
	if (r3ring_demand_predict(demand, &(struct r3ring_evidence){.counts = counts}, tokens))
		die("prediction", tokens);
	return tokens;
}

static void make(struct worker *worker, uint32_t slot, struct r3ring_demand *demand)
{
	struct r3ring_reserve_answer answer;
	struct r3ring_reserve_request request = {.owner = owner(worker)};
	uint32_t tokens = predict(worker, demand);
	char key[64];
	int r;

	snprintf(key, sizeof(key), "%u/%" PRIu64 "/%u", worker->number, worker->lives, slot);
	request.key = key;
	r = r3ring_book_make(book, &request, demand, &answer);
	if (r == -EBUSY && answer.margin < 0) {
		worker->refused++;
		return;
	}
	if (r || answer.margin < 0 || answer.existed)
		die("a reservation was answered with", r);
	worker->granted++;
	worker->held[slot] = answer.reservation;
	worker->tokens[slot] = tokens;
}

static void change(struct worker *worker, uint32_t slot, struct r3ring_demand *demand)
{
	struct r3ring_reserve_answer answer;
	uint64_t id = worker->held[slot];

	switch (next_random(&worker->random) % 3) {
	case 0:
		if (r3ring_book_commit(book, id, 0, 0))
			die("a commit found nothing", (int64_t)id);
		break;
	case 1:
		worker->tokens[slot] = predict(worker, demand);
		if (r3ring_book_update(book, id, demand, &answer))
			die("an update found nothing", (int64_t)id);
		break;
	default:
		if (r3ring_book_free(book, id))
			die("a reservation was gone", (int64_t)id);
		worker->held[slot] = 0;
	}
}

static uint32_t holds(const struct worker *worker)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < HELD; i++)
		count += worker->held[i] != 0;
	return count;
}

/* Its owner dies; whoever watches owners says so. */
static void be_gone(struct worker *worker)
{
	uint32_t held = holds(worker), freed = r3ring_book_owner_gone(book, owner(worker));

	if (freed != held)
		die("an owner's death freed another number", (int64_t)freed - held);
	memset(worker->held, 0, sizeof(worker->held));
	worker->lives++;
	worker->deaths++;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct r3ring_demand *demand;

	if (r3ring_demand_create(&demand, &shape))
		die("no demand", 0);
	for (uint64_t turn = 0; turn < turns / ROUNDS; turn++) {
		uint32_t slot = (uint32_t)next_random(&worker->random) % HELD;

		if (next_random(&worker->random) % 200 == 0)
			be_gone(worker);
		else if (worker->held[slot])
			change(worker, slot, demand);
		else
			make(worker, slot, demand);
	}
	r3ring_demand_destroy(demand);
	return NULL;
}

/* Maps come while others reserve. */
static void *move_experts(void *arg)
{
	static uint64_t epoch;
	uint64_t *random = arg;
	uint16_t places[LAYERS * EXPERTS][REPLICAS];

	for (uint64_t turn = 0; turn < turns / ROUNDS / 10; turn++) {
		const struct r3ring_eplb_map map = {
			.epoch = ++epoch,
			.layers = LAYERS,
			.experts = EXPERTS,
			.replicas = REPLICAS,
			.physical = EXPERTS * REPLICAS,
			.gpus = GPUS,
			.map = places[0],
		};
		uint16_t shift = (uint16_t)(next_random(random) % EXPERTS);

		for (uint16_t i = 0; i < LAYERS * EXPERTS; i++) {
			places[i][0] = (uint16_t)((i + shift) % EXPERTS);
			places[i][1] = (uint16_t)(EXPERTS + i % EXPERTS);
		}
		if (r3ring_book_map(book, &map, NULL))
			die("a map was refused", (int64_t)epoch);
	}
	return NULL;
}

/* In the order of their making. */
static uint64_t lasting[LASTING];
static uint32_t lasts;

/* What runs may need more than there is, and then not even one of no tokens is granted. */
static void give_room(uint32_t tokens)
{
	if (r3ring_book_set_capacity(book, R3RING_UNKNOWN_U32, R3RING_UNKNOWN_U32, tokens))
		die("capacity was refused", tokens);
}

static void make_lasting(uint32_t count)
{
	struct r3ring_reserve_answer answer;
	struct r3ring_demand *none;
	char key[32];

	if (r3ring_demand_create(&none, &shape))
		die("no demand", 0);
	give_room(R3RING_DEMAND_TOKENS_MAX);
	for (uint32_t i = 0; i < count; i++, lasts++) {
		snprintf(key, sizeof(key), "lasting/%u", lasts);
		if (r3ring_book_make(book, &(struct r3ring_reserve_request){.key = key}, none,
				     &answer))
			die("one that lasts was refused", lasts);
		lasting[lasts] = answer.reservation;
	}
	give_room(CAPACITY);
	r3ring_demand_destroy(none);
}

static void list_once(void)
{
	struct r3ring_reservation_info page[7];
	uint64_t after = 0;
	uint32_t count, seen = 0;

	while ((count = r3ring_book_list(book, after, page, 7))) {
		for (uint32_t i = 0; i < count; i++) {
			if (page[i].reservation <= after)
				die("a list goes back", (int64_t)page[i].reservation);
			after = page[i].reservation;
			if (seen < lasts && after > lasting[seen])
				die("a list lacks one that is there", (int64_t)lasting[seen]);
			seen += seen < lasts && after == lasting[seen];
		}
	}
	if (seen != lasts)
		die("a list lacks those that are there", (int64_t)lasts - seen);
}

static void *list_all(void *arg)
{
	(void)arg;
	for (uint64_t turn = 0; turn < turns / ROUNDS / 10; turn++)
		list_once();
	return NULL;
}

/* What the threads hold is what the book holds, to the unit. */
static void audit(const struct worker *workers)
{
	struct r3ring_book_stats stats;
	uint64_t count = lasts, tokens = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		for (uint32_t slot = 0; slot < HELD; slot++) {
			count += workers[i].held[slot] != 0;
			tokens += workers[i].held[slot] ? workers[i].tokens[slot] : 0;
		}
	}
	r3ring_book_get_stats(book, &stats);
	if (stats.reservations != count)
		die("reservations more than are held", (int64_t)(stats.reservations - count));
	if (stats.units != tokens * R3RING_DEMAND_TOKEN * TOP_K * LAYERS)
		die("another number of units than is held", (int64_t)stats.units);
}

static void expect_nothing(void)
{
	uint64_t gpu[LAYERS * GPUS], expert[LAYERS * EXPERTS];
	struct r3ring_book_stats stats;

	r3ring_book_load(book, gpu, expert);
	r3ring_book_get_stats(book, &stats);
	for (uint32_t i = 0; i < LAYERS * GPUS; i++) {
		if (gpu[i])
			die("units stay behind on a GPU", (int64_t)gpu[i]);
	}
	for (uint32_t i = 0; i < LAYERS * EXPERTS; i++) {
		if (expert[i])
			die("units stay behind on an expert", (int64_t)expert[i]);
	}
	if (stats.units || stats.reservations || stats.committed || stats.bytes)
		die("something stays behind", (int64_t)stats.units);
}

static void run_round(struct worker *workers, uint64_t *random)
{
	pthread_t mover, lister;

	for (uint32_t i = 0; i < THREADS; i++) {
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("no thread", i);
	}
	if (pthread_create(&mover, NULL, move_experts, random) ||
	    pthread_create(&lister, NULL, list_all, NULL))
		die("no thread", THREADS);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_join(mover, NULL);
	pthread_join(lister, NULL);
}

int main(int argc, char **argv)
{
	const struct r3ring_book_options options = {
		.size = sizeof(options), .shape = shape, .gpus = GPUS, .capacity = CAPACITY};
	struct worker workers[THREADS] = {0};
	uint64_t random, granted = 0, refused = 0, deaths = 0;

	turns = argc > 1 ? strtoull(argv[1], NULL, 0) : turns;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	random = seed;
	printf("reserve_threads: seed %" PRIu64 "\n", seed);
	if (r3ring_book_create(&book, &options, NULL))
		die("no book", 0);
	for (uint32_t i = 0; i < THREADS; i++)
		workers[i] = (struct worker){.number = i, .random = seed + i};
	for (int round = 0; round < ROUNDS; round++) {
		/* Between those that the threads made. */
		make_lasting(round < 2 ? LASTING / 2 : 0);
		run_round(workers, &random);
		audit(workers);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		be_gone(&workers[i]);
		granted += workers[i].granted;
		refused += workers[i].refused;
		deaths += workers[i].deaths;
	}
	for (uint32_t i = 0; i < lasts; i++) {
		if (r3ring_book_free(book, lasting[i]))
			die("one that lasts was gone", i);
	}
	expect_nothing();
	r3ring_book_destroy(book);
	if (!granted || !refused || deaths <= THREADS)
		die("nothing was refused, or nobody died", (int64_t)refused);
	printf("%" PRIu64 " granted, %" PRIu64 " refused, %" PRIu64 " owners gone, nothing left\n",
	       granted, refused, deaths);
	return 0;
}
