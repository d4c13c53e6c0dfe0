/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of everybody: an engine, its daemon and readers run, and one of them is
 * killed again and again, at a point behind a store that others see (in a build
 * with TESTPOINTS=1) or at any moment. Whatever was killed: no id is wrong, nothing
 * is told twice, and of every step that the engine announced there is one end.
 *
 *	KILLS=n SEED=s kills
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/ledger.h"
#include "tests/support/test_points.h"
#include "tests/support/worker.h"

#define DEFAULT_KILLS 100
#define KILLS_A_ROUND 12
#define ENGINE_KILLS_A_ROUND 3 /* up to two generations each; a ledger holds eight */
#define READERS 2
#define ROWS_MOST 12u
#define POINT_MS 250 /* a point that is not passed until then is given up */
#define MOMENT_MS 30

#ifdef R3RING_TEST_POINTS
static const bool has_points = true;
#else
static const bool has_points;
#endif

static const char *const daemon_args[] = {"--ring-size", "64M", NULL};

/* "": the count-th point of any name. */
static const char *const daemon_labels[] = {
	"",
	"ring intent",
	"ring payload",
	"ring fields",
	"ring seq",
	"ring tail position",
	"ring tail",
	"ring counts",
	"ring marker",
	"ring reserved",
	"ring checked",
	"ring wake",
	"ring keyframe",
	"drain gap told",
	"drain rows noted",
	"drain step noted",
	"drain extent released",
	"drain step told",
	"drain copied",
	"drain said seq",
	"drain said entry",
	"drain side told",
	"drain entry told",
	"drain resumed",
	"lane consumed",
	"channel listed",
	"channel made",
	"channel opened",
	"channel welcomed",
	"channel unlinked",
	"gate admitted",
};
static const char *const engine_labels[] = {
	"",
	"lane number",
	"lane position",
	"pages begun rows",
	"pages begun",
	"engine announced",
	"engine armed",
	"engine ended",
};
static const char *const reader_labels[] = {"", "reader cursor told", "reader waits",
					    "reader woke"};

/* What each passes once, when it begins. */
static const char *const daemon_start_labels[] = {"ring adopted", "orphan adopted"};
static const char *const engine_start_labels[] = {"engine connected", "engine welcomed"};
static const char *const reader_start_labels[] = {"reader asked", "reader attached"};

struct labels {
	const char *const *names;
	unsigned int count;
};

#define LABELS(names)                                                                              \
	{                                                                                          \
		names, sizeof(names) / sizeof((names)[0])                                          \
	}

static const struct labels daemon_points = LABELS(daemon_labels);
static const struct labels engine_points = LABELS(engine_labels);
static const struct labels reader_points = LABELS(reader_labels);

static const struct labels daemon_start = LABELS(daemon_start_labels);
static const struct labels engine_start = LABELS(engine_start_labels);
static const struct labels reader_start = LABELS(reader_start_labels);

/* A process that is killed, and the page that says where. */
struct victim {
	struct worker worker;
	struct test_points *points;
};

/* What one engine announced, as it says itself. */
struct life {
	uint64_t generation;
	uint64_t steps;
};

static struct test_daemon daemon_a;
static struct test_points *daemon_page;
static char daemon_page_path[64];
static struct victim engine_a, readers[READERS];
static struct ledger ledger_a;
static char instance[R3RING_INSTANCE_MAX + 1], channel[R3RING_INSTANCE_MAX + 3];
static struct life lives[LEDGER_GENERATIONS];
static unsigned int life_count;
static uint64_t seed, faults;
static uint64_t kills_of_daemon, kills_of_engine, kills_of_reader, kills_at_points;
static uint64_t steps_complete, steps_partial, steps_lost;

/* ---- chance ------------------------------------------------------------- */

/* Source: Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8(14), 2003. */
static uint64_t chance(uint64_t bound)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % bound;
}

static void fail(const char *what)
{
	fprintf(stderr, "kills: %s\n", what);
	faults++;
}

/* ---- the processes ------------------------------------------------------ */

static bool stopped(const struct worker_page *page)
{
	return r3ring_load_relaxed_u64(&page->stop) != 0;
}

static void note_progress(struct worker_page *page, struct engine *engine)
{
	r3ring_producer_get_stats(engine->producer, &page->stats);
	if (page->stats.generation)
		page->counts[0] = page->stats.generation;
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, page->stats.steps);
}

static int run_engine(struct worker_page *page, const void *ctx)
{
	const struct victim *self = ctx;
	const struct r3ring_request request = {.size = sizeof(request), .id = "kills"};
	struct engine engine = {0};
	int64_t handle = 0;

	test_points_use(self->points);
	while (engine_open(&engine, daemon_a.dir, instance, ROWS_MOST, &page->err) < 0) {
		if (stopped(page))
			return 0;
		worker_compute();
	}
	engine.doorbell_layers = 2;
	for (uint64_t i = 0; !stopped(page); i++) {
		if (i % 2 == 0)
			handle = r3ring_request_begin(engine.producer, &request);
		engine_step(&engine, handle, 1 + (uint32_t)(i % ROWS_MOST));
		if (i % 2)
			r3ring_request_end(engine.producer, handle, R3RING_END_FINISHED, 0, 8);
		note_progress(page, &engine);
		worker_compute();
	}
	engine_close(&engine);
	return 0;
}

static bool has_ended(const struct ledger *ledger, uint64_t page)
{
	const struct worker_page *mine = (const void *)(uintptr_t)page;

	return ledger_has_closed(ledger, R3RING_CLOSED_SHUTDOWN) || stopped(mine);
}

static uint64_t count_wrong(const struct ledger *ledger)
{
	uint64_t wrong = ledger->wrong + ledger->gaps;

	for (unsigned int i = 0; i < ledger->count; i++)
		wrong += ledger_double(&ledger->generations[i]) + ledger->generations[i].disordered;
	return wrong;
}

static int run_reader(struct worker_page *page, const void *ctx)
{
	const struct victim *self = ctx;
	struct ledger ledger = {0};
	bool done = false;

	test_points_use(self->points);
	while (ledger_try_open(&ledger, daemon_a.dir, channel, &page->err) < 0) {
		if (stopped(page))
			return 0;
		worker_compute();
	}
	r3ring_store_release_u64(&page->progress, 1);
	while (!done)
		done = ledger_read_until(&ledger, has_ended, (uint64_t)(uintptr_t)page);
	return count_wrong(&ledger) ? 1 : 0;
}

static bool name_page(void *ctx)
{
	(void)ctx;
	return setenv(TEST_POINTS_VARIABLE, daemon_page_path, 1) == 0;
}

/* ---- striking ----------------------------------------------------------- */

static int struck = -1; /* pidfd */
static uint64_t give_up_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_dead(void)
{
	struct pollfd end = {.fd = struck, .events = POLLIN};

	return poll(&end, 1, 0) > 0;
}

static bool is_struck(const struct ledger *ledger, uint64_t argument)
{
	(void)ledger;
	(void)argument;
	return is_dead() || now_ns() >= give_up_ns;
}

/* Reads on until the process has died, at most for so long. */
static void await_death(pid_t pid, uint64_t ms)
{
	struck = (int)syscall(SYS_pidfd_open, pid, 0);
	give_up_ns = now_ns() + ms * 1000000;
	if (!ledger_read_until(&ledger_a, is_struck, 0))
		fail("the ledger does not go on");
	kills_at_points += is_dead();
	close(struck);
}

static const char *any_of(const struct labels *labels)
{
	return labels->names[chance(labels->count)];
}

/* Until the process has died at a point, or its time has come. The caller kills it then,
 * should it still live. */
static void strike(pid_t pid, struct test_points *points, const struct labels *labels)
{
	bool at_point = has_points && chance(3) != 0;
	const char *label = any_of(labels);

	if (at_point)
		test_points_arm(points, label, 1 + (uint32_t)chance(label[0] ? 8 : 400));
	await_death(pid, at_point ? POINT_MS : chance(MOMENT_MS));
	test_points_disarm(points);
}

/* ---- who is killed ------------------------------------------------------ */

/* Whether the present daemon has welcomed the present engine. */
static bool engine_is_welcome(void)
{
	char text[64];

	snprintf(text, sizeof(text), ", producer %d", engine_a.worker.pid);
	return test_daemon_said(&daemon_a, text);
}

/* One that dies while it takes over what the dead one left. */
static void strike_next_daemon(void)
{
	test_points_arm(daemon_page, any_of(&daemon_start), 1);
	if (test_daemon_run(&daemon_a, daemon_args) != -SIGKILL)
		fail("the next daemon passed no point");
	test_points_disarm(daemon_page);
	kills_of_daemon++;
	kills_at_points++;
}

static void strike_daemon(void)
{
	strike(daemon_a.pid, daemon_page, &daemon_points);
	test_daemon_kill(&daemon_a);
	if (has_points && chance(4) == 0)
		strike_next_daemon();
	test_daemon_restart(&daemon_a, daemon_args);
	/* Sometimes the next one is killed before all is in order again. */
	if (chance(4) && !engine_is_welcome())
		fail("the engine did not come back");
	kills_of_daemon++;
}

static bool has_generation_of_engine(const struct ledger *ledger, uint64_t argument)
{
	uint64_t generation = r3ring_load_relaxed_u64(&engine_a.worker.page->counts[0]);

	(void)argument;
	return generation && ledger_newest(ledger)->number >= generation;
}

static void note_life(void)
{
	if (!engine_a.worker.page->counts[0])
		return;
	lives[life_count++] =
		(struct life){engine_a.worker.page->counts[0], engine_a.worker.page->progress};
}

static void start_engine(void)
{
	worker_start(&engine_a.worker, run_engine, &engine_a);
}

static void end_engine(void)
{
	worker_kill(&engine_a.worker);
	note_life();
}

static void strike_engine(void)
{
	if (!engine_is_welcome() || !ledger_read_until(&ledger_a, has_generation_of_engine, 0))
		fail("the engine is not to be seen");
	strike(engine_a.worker.pid, engine_a.points, &engine_points);
	end_engine();
	if (has_points && chance(3) == 0) {
		test_points_arm(engine_a.points, any_of(&engine_start), 1);
		start_engine();
		await_death(engine_a.worker.pid, POINT_MS);
		test_points_disarm(engine_a.points);
		end_engine();
		kills_of_engine++;
	}
	start_engine();
	kills_of_engine++;
}

static void start_reader(struct victim *reader)
{
	worker_start(&reader->worker, run_reader, reader);
}

static void strike_reader(void)
{
	struct victim *reader = &readers[chance(READERS)];

	strike(reader->worker.pid, reader->points, &reader_points);
	worker_kill(&reader->worker);
	if (has_points && chance(2) == 0) {
		test_points_arm(reader->points, any_of(&reader_start), 1);
		start_reader(reader);
		await_death(reader->worker.pid, POINT_MS);
		test_points_disarm(reader->points);
		worker_kill(&reader->worker);
		kills_of_reader++;
	}
	start_reader(reader);
	kills_of_reader++;
}

/* ---- accounts ----------------------------------------------------------- */

/* Steps that its engine announced, and the daemon that closed it knew of. */
static uint64_t announced_in(const struct ledger_generation *generation)
{
	if (generation->closed == R3RING_CLOSED_CRASHED)
		return generation->newest_step;
	for (unsigned int i = 0; i < life_count; i++) {
		if (lives[i].generation == generation->number &&
		    lives[i].steps > generation->newest_step)
			return lives[i].steps;
	}
	return generation->newest_step;
}

static void check_round(void)
{
	for (unsigned int i = 0; i < ledger_a.count; i++) {
		const struct ledger_generation *generation = &ledger_a.generations[i];

		if (ledger_double(generation) || generation->disordered ||
		    ledger_untold(generation, announced_in(generation)))
			fail("a step or a request was not told once");
		steps_complete += generation->complete;
		steps_partial += generation->partial;
		for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
			steps_lost += generation->lost_steps[cause];
	}
	if (ledger_a.wrong || ledger_a.gaps)
		fail("a record was wrong, doubled or missing");
}

/* ---- a round ------------------------------------------------------------ */

static void begin_round(void)
{
	memset(&daemon_a, 0, sizeof(daemon_a));
	daemon_a.prepare = name_page;
	test_daemon_start(&daemon_a, daemon_args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "kills"));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, "kills"));
	life_count = 0;
	start_engine();
	if (!worker_reaches(&engine_a.worker, 1))
		fail("the engine does not begin");
	ledger_open(&ledger_a, daemon_a.dir, channel);
	for (int i = 0; i < READERS; i++)
		start_reader(&readers[i]);
}

static void end_round(void)
{
	if (!engine_is_welcome() || !ledger_read_until(&ledger_a, has_generation_of_engine, 0))
		fail("the engine did not come back at last");
	r3ring_store_relaxed_u64(&engine_a.worker.page->stop, 1);
	if (worker_wait(&engine_a.worker) != 0)
		fail("the engine did not end");
	note_life();
	if (test_daemon_stop(&daemon_a) != 0)
		fail("the daemon did not end in good order");
	if (!ledger_read_until(&ledger_a, ledger_has_closed, R3RING_CLOSED_SHUTDOWN))
		fail("the ring was not closed");
	for (int i = 0; i < READERS; i++) {
		r3ring_store_relaxed_u64(&readers[i].worker.page->stop, 1);
		if (worker_wait(&readers[i].worker) != 0)
			fail("a reader found something wrong");
	}
	check_round();
	ledger_close(&ledger_a);
	if (test_shm_names(instance) != 0)
		fail("segments are left behind");
	test_daemon_close(&daemon_a);
}

static uint64_t run_round(uint64_t kills)
{
	unsigned int engines = 0;

	begin_round();
	for (uint64_t i = 0; i < kills && !faults; i++) {
		uint64_t who = chance(10);

		if (who < 5) {
			strike_daemon();
		} else if (who < 8 && engines < ENGINE_KILLS_A_ROUND) {
			engines++;
			strike_engine();
		} else {
			strike_reader();
		}
	}
	end_round();
	return kills;
}

/* ---- all ---------------------------------------------------------------- */

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static struct test_points *make_page(const char *whose, char *path, size_t bytes)
{
	struct test_points *points;

	snprintf(path, bytes, "/tmp/r3ring-kills.%d.%s", getpid(), whose);
	points = test_points_map(path);
	return points;
}

static void make_pages(void)
{
	char path[64];

	daemon_page = make_page("daemon", daemon_page_path, sizeof(daemon_page_path));
	engine_a.points = make_page("engine", path, sizeof(path));
	unlink(path);
	for (int i = 0; i < READERS; i++) {
		readers[i].points = make_page("reader", path, sizeof(path));
		unlink(path);
	}
}

/* It looks for races between threads; these are between processes. */
#ifdef __SANITIZE_THREAD__
static const bool under_tsan = true;
#else
static const bool under_tsan;
#endif

int main(void)
{
	uint64_t kills = number_of("KILLS", DEFAULT_KILLS);
	uint64_t first_seed = number_of("SEED", now_ns() | 1);

	if (under_tsan) {
		puts("ThreadSanitizer sees nothing of what processes do to each other");
		return 77;
	}
	seed = first_seed;
	printf("kills: seed %" PRIu64 "\n", first_seed);
	fflush(stdout);
	make_pages();
	for (uint64_t done = 0; done < kills && !faults;)
		done += run_round(kills - done < KILLS_A_ROUND ? kills - done : KILLS_A_ROUND);
	unlink(daemon_page_path);
	printf("kills: daemon %" PRIu64 ", engine %" PRIu64 ", reader %" PRIu64 "; %" PRIu64
	       " at a point\n",
	       kills_of_daemon, kills_of_engine, kills_of_reader, kills_at_points);
	printf("kills: steps %" PRIu64 " complete, %" PRIu64 " partial, %" PRIu64 " lost\n",
	       steps_complete, steps_partial, steps_lost);
	return faults ? 1 : 0;
}
