/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of everybody: an engine, its daemon and readers of every kind run, and one of
 * them is killed again and again, at a point behind a store that others see (in a build
 * with TESTPOINTS=1) or at any moment; readers are stopped so that lossless ones hold
 * the channel up, and are demoted, or steps are dropped for them, and the daemon is
 * killed in the middle of that, and while it ends. Whatever was killed: no id is wrong,
 * nothing is told twice, every reader's account adds up after every strike, a lossless
 * one lost nothing but by demotion or by coming back too late, and was told by which, and
 * of every step that the engine announced there is one end, by its true cause.
 *
 *	KILLS=n SEED=s kills
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/channel_status.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/kill_audit.h"
#include "tests/support/kill_engine.h"
#include "tests/support/kill_reader.h"
#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"
#include "tests/support/strike.h"
#include "tests/support/worker.h"

#define DEFAULT_KILLS 100
#define KILLS_A_ROUND 12
#define ENGINE_KILLS_A_ROUND 3 /* generations, as ends of the daemon are: a ledger's are bounded */
#define ENDS_A_ROUND 3
#define STALL_MS 1500 /* a channel that is not held up until then is let alone */
#define SETTLE_MS 20000
#define SHM_BYTES (128u << 20) /* rings of two generations while a third is begun, and more */

/* What a channel does about a lossless reader that stands still, in rings that are
 * lapped sooner or later. */
static const char *const daemons[][7] = {
	{"--ring-size", "8M", "--stall-limit", "1000"},
	{"--ring-size", "4M", "--stall-limit", "1000"},
	{"--ring-size", "8M", "--stall-limit", "300", "--lossless-policy", "drop"},
	{"--ring-size", "4M", "--stall-limit", "300", "--lossless-policy", "drop"},
};

static struct test_daemon daemon_a;
static const char *const *daemon_args;
static struct test_points *daemon_page;
static char daemon_page_path[TEST_POINTS_PATH];
static struct kill_reader readers[KILL_KINDS], auditor;
static struct kill_audit *audit;
static char instance[R3RING_INSTANCE_MAX + 1], channel[R3RING_INSTANCE_MAX + 3];
static struct kill_engine engine_a = {.dir = daemon_a.dir, .instance = instance};
static uint64_t faults;
static uint64_t kills_of_daemon, kills_of_engine, kills_of_reader, kills_at_points, stalls;
static uint64_t demotions, unkept, unkept_of_stopped;

static void fail(const char *what)
{
	fprintf(stderr, "kills: %s\n", what);
	faults++;
}

/* ---- the engine --------------------------------------------------------- */

static void end_engine(void)
{
	worker_kill(&engine_a.worker);
	kill_engine_note_life(&engine_a, audit, false, 0);
}

/* Whether the present daemon has welcomed the present engine. */
static bool engine_is_welcome(void)
{
	char text[64];

	snprintf(text, sizeof(text), ", producer %d", engine_a.worker.pid);
	return test_daemon_said(&daemon_a, text);
}

static bool is_seen(const void *ctx)
{
	uint64_t generation = kill_engine_generation(&engine_a);

	(void)ctx;
	return generation && kill_reader_account(&auditor).generation >= generation;
}

static void await_engine(void)
{
	if (!engine_is_welcome() || !reader_worker_wait(is_seen, NULL, SETTLE_MS))
		fail("the engine is not to be seen");
}

/* ---- who is killed ------------------------------------------------------ */

/* For who looks for a fault. */
static void show_log(void)
{
	struct pollfd log = {.fd = daemon_a.log_fd, .events = POLLIN};
	char text[4096];
	ssize_t got;

	if (!getenv("TRACE"))
		return;
	fprintf(stderr, "%s", daemon_a.log);
	while (log.fd >= 0 && poll(&log, 1, 0) > 0 && (got = read(log.fd, text, sizeof(text))) > 0)
		fprintf(stderr, "%.*s", (int)got, text);
}

/* One that dies while it takes over what the dead one left. */
static void strike_next_daemon(void)
{
	strike_once(daemon_page, &daemon_start);
	if (test_daemon_run(&daemon_a, daemon_args) != -SIGKILL)
		fail("the next daemon passed no point");
	show_log();
	test_points_disarm(daemon_page);
	kills_of_daemon++;
	kills_at_points++;
}

static void follow_daemon(void)
{
	show_log();
	test_daemon_kill(&daemon_a);
	/* Several in a row: none of them may take anything from readers. */
	while (strike_has_points() && strike_chance(4) == 0)
		strike_next_daemon();
	test_daemon_restart(&daemon_a, daemon_args);
	/* Sometimes the next one is killed before all is in order again. */
	if (strike_chance(4) && !engine_is_welcome())
		fail("the engine did not come back");
	kills_of_daemon++;
}

static void strike_daemon(void)
{
	kills_at_points += strike(daemon_a.pid, daemon_page, &daemon_points);
	follow_daemon();
}

/* It is told to end, and killed while it does; or just ends. */
static void strike_ending_daemon(void)
{
	strike_once(daemon_page, &daemon_end);
	kill(daemon_a.pid, SIGTERM);
	kills_at_points += strike_await(daemon_a.pid, strike_chance(2) ? 3000 : strike_chance(30));
	test_points_disarm(daemon_page);
	follow_daemon();
}

static void strike_engine(void)
{
	await_engine();
	kills_at_points += strike(engine_a.worker.pid, engine_a.points, &engine_points);
	end_engine();
	if (strike_has_points() && strike_chance(3) == 0) {
		strike_once(engine_a.points, &engine_start);
		kill_engine_start(&engine_a);
		kills_at_points += strike_await(engine_a.worker.pid, 250);
		test_points_disarm(engine_a.points);
		end_engine();
		kills_of_engine++;
	}
	kill_engine_start(&engine_a);
	kills_of_engine++;
}

static void sum_up(const struct kill_reader *reader)
{
	const struct kill_account account = kill_reader_account(reader);

	demotions += account.demotions;
	unkept += account.unkept;
	unkept_of_stopped += reader->stood_still ? account.unkept : 0;
}

static void bury_reader(struct kill_reader *reader)
{
	worker_kill(&reader->worker);
	sum_up(reader);
	if (!kill_reader_sound(reader, "killed"))
		faults++;
	if (!kill_audit_agrees(&auditor, reader))
		faults++;
	kills_of_reader++;
}

static void replace_reader(struct kill_reader *reader)
{
	bury_reader(reader);
	if (strike_has_points() && strike_chance(2) == 0) {
		strike_once(reader->points, &reader_start);
		kill_reader_start(reader);
		kills_at_points += strike_await(reader->worker.pid, 250);
		test_points_disarm(reader->points);
		bury_reader(reader);
	}
	kill_reader_start(reader);
}

static void strike_reader(void)
{
	struct kill_reader *reader = &readers[strike_chance(KILL_KINDS)];

	kills_at_points += strike(reader->worker.pid, reader->points, &reader_points);
	replace_reader(reader);
}

/* ---- readers that stand still ------------------------------------------- */

static bool is_held_up(const void *ctx)
{
	const int64_t *before = ctx;

	return channel_figure(daemon_a.dir, channel, "waits_for_readers") > *before;
}

static void stop_reader(struct kill_reader *reader)
{
	stand_still(reader->worker.pid);
	reader->stood_still = true;
}

/*
 * A reader stands still while the engine floods the ring, so that it is lapped, or, a
 * lossless one, holds the channel up until it is demoted or steps are dropped. In the
 * middle of that somebody is struck, or nobody.
 */
static void strike_in_stall(void)
{
	struct kill_reader *reader = &readers[strike_chance(KILL_KINDS)];
	int64_t waits = channel_figure(daemon_a.dir, channel, "waits_for_readers");
	uint64_t whom = strike_chance(4);

	await_engine();
	stop_reader(reader);
	kill_engine_flood(&engine_a, true);
	reader_worker_wait(is_held_up, &waits, STALL_MS);
	stalls++;
	if (whom < 2) {
		kills_at_points += strike(daemon_a.pid, daemon_page, &daemon_stall);
		follow_daemon();
	} else if (whom == 2) {
		replace_reader(reader);
	}
	kill_engine_flood(&engine_a, false);
	kill(reader->worker.pid, SIGCONT);
}

/* ---- a round ------------------------------------------------------------ */

static bool name_page(void *ctx)
{
	(void)ctx;
	return setenv(TEST_POINTS_VARIABLE, daemon_page_path, 1) == 0;
}

static void start_readers(void)
{
	const struct kill_reader any = {
		.dir = daemon_a.dir, .channel = channel, .rows_of = kill_engine_rows};

	auditor = (struct kill_reader){.page = auditor.page,
				       .kind = KILL_LOSSLESS,
				       .dir = any.dir,
				       .channel = any.channel,
				       .rows_of = kill_engine_rows,
				       .at_end = kill_audit_check,
				       .ctx = audit};
	kill_reader_start(&auditor);
	if (!worker_reaches(&auditor.worker, 1))
		fail("the auditor does not attach");
	for (int i = 0; i < KILL_KINDS; i++) {
		struct kill_reader reader = any;

		reader.page = readers[i].page;
		reader.points = readers[i].points;
		reader.kind = (enum kill_kind)i;
		readers[i] = reader;
		kill_reader_start(&readers[i]);
	}
}

static void begin_round(void)
{
	memset(&daemon_a, 0, sizeof(daemon_a));
	daemon_a.prepare = name_page;
	daemon_args = daemons[strike_chance(sizeof(daemons) / sizeof(daemons[0]))];
	test_daemon_start(&daemon_a, daemon_args);
	snprintf(instance, sizeof(instance), "%s", engine_instance(daemon_a.dir, "kills"));
	snprintf(channel, sizeof(channel), "%s", engine_channel(daemon_a.dir, "kills"));
	audit->count = 0;
	kill_engine_start(&engine_a);
	if (!worker_reaches(&engine_a.worker, 1))
		fail("the engine does not begin");
	start_readers();
}

static void finish_readers(uint64_t generation)
{
	if (kill_reader_finish(&auditor, generation) != 0)
		fail("the account of all steps is wrong");
	if (!kill_reader_sound(&auditor, "auditing"))
		faults++;
	for (int i = 0; i < KILL_KINDS; i++) {
		if (kill_reader_finish(&readers[i], generation) != 0) {
			fprintf(stderr, "kills: %s reader: ", kill_kind_name(readers[i].kind));
			fail("does not come to the end");
		}
		sum_up(&readers[i]);
		if (!kill_reader_sound(&readers[i], "at the end") ||
		    !kill_audit_agrees(&auditor, &readers[i]))
			faults++;
	}
}

/* One that has not found the last generation will not find it once it is gone. */
static bool all_are_there(const void *ctx)
{
	const uint64_t *generation = ctx;

	for (int i = 0; i < KILL_KINDS; i++) {
		if (kill_reader_account(&readers[i]).generation < *generation)
			return false;
	}
	return kill_reader_account(&auditor).generation >= *generation;
}

static void end_round(void)
{
	uint64_t generation;

	await_engine();
	r3ring_store_relaxed_u64(&engine_a.worker.page->stop, 1);
	if (worker_wait(&engine_a.worker) != 0)
		fail("the engine did not end");
	/* It may have come to another one as it ended. */
	generation = (uint64_t)channel_figure(daemon_a.dir, channel, "generation");
	kill_engine_note_life(&engine_a, audit, true, generation);
	if (!reader_worker_wait(all_are_there, &generation, SETTLE_MS))
		fail("a reader does not find the last generation");
	if (test_daemon_stop(&daemon_a) != 0)
		fail("the daemon did not end in good order");
	show_log();
	finish_readers(generation);
	if (test_shm_names(instance) != 0)
		fail("segments are left behind");
	test_daemon_close(&daemon_a);
}

/* After every strike. */
static void look_at_readers(void)
{
	if (!kill_reader_sound(&auditor, "auditing"))
		faults++;
	for (int i = 0; i < KILL_KINDS; i++) {
		if (!kill_reader_sound(&readers[i], "reading"))
			faults++;
	}
}

static uint64_t run_round(uint64_t kills)
{
	unsigned int engines = 0, ends = 0;

	begin_round();
	for (uint64_t i = 0; i < kills && !faults; i++) {
		uint64_t who = strike_chance(20);

		if (who < 7) {
			strike_daemon();
		} else if (who < 9 && ends < ENDS_A_ROUND) {
			ends++;
			strike_ending_daemon();
		} else if (who < 13 && engines < ENGINE_KILLS_A_ROUND) {
			engines++;
			strike_engine();
		} else if (who < 16) {
			strike_in_stall();
		} else {
			strike_reader();
		}
		look_at_readers();
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

static void make_pages(void)
{
	daemon_page = test_points_make(daemon_page_path);
	engine_a.points = test_points_make(NULL);
	for (int i = 0; i < KILL_KINDS; i++)
		readers[i].points = test_points_make(NULL);
	audit = kill_audit_make();
}

/* It looks for races between threads; these are between processes. */
#ifdef __SANITIZE_THREAD__
static const bool under_tsan = true;
#else
static const bool under_tsan;
#endif

static void report(void)
{
	printf("kills: daemon %" PRIu64 ", engine %" PRIu64 ", reader %" PRIu64 "; %" PRIu64
	       " at a point; %" PRIu64 " stalls, %" PRIu64 " demotions, %" PRIu64
	       " records unkept, %" PRIu64 " of them for readers that had stood still\n",
	       kills_of_daemon, kills_of_engine, kills_of_reader, kills_at_points, stalls,
	       demotions, unkept, unkept_of_stopped);
	printf("kills: steps %" PRIu64 " complete, %" PRIu64 " partial; lost by cause:",
	       audit->complete, audit->partial);
	for (int cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (audit->lost[cause])
			printf(" %s %" PRIu64, r3ring_cause_name((enum r3ring_cause)cause),
			       audit->lost[cause]);
	}
	printf("; rounds not judged by step: %" PRIu64 "\n", audit->missed);
}

int main(void)
{
	uint64_t kills = number_of("KILLS", DEFAULT_KILLS);
	uint64_t first_seed = number_of("SEED", (uint64_t)time(NULL) << 16 | (uint64_t)getpid());

	if (under_tsan) {
		puts("ThreadSanitizer sees nothing of what processes do to each other");
		return 77;
	}
	/* Rings of two generations, while a third is begun. */
	if (!test_shm_takes(SHM_BYTES)) {
		printf("/dev/shm has less than %u MiB free\n", SHM_BYTES >> 20);
		return 77;
	}
	strike_seed(first_seed);
	printf("kills: seed %" PRIu64 "\n", first_seed);
	fflush(stdout);
	make_pages();
	for (uint64_t done = 0; done < kills && !faults;)
		done += run_round(kills - done < KILLS_A_ROUND ? kills - done : KILLS_A_ROUND);
	report();
	return faults ? 1 : 0;
}
