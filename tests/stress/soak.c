/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once, for as long as is asked for: an engine at full rate; readers
 * of all kinds, and dumps, that come, go, are stopped and killed; a daemon that is
 * killed and started again now and then. One lossless reader, the auditor, is there
 * from the first step to the last. At the end every step is accounted for, and the
 * daemon has grown by nothing.
 *
 *	soak [SECONDS [SEED]]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/channel_status.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/engine.h"
#include "tests/support/process_size.h"
#include "tests/support/reader_worker.h"
#include "tests/support/settle.h"
#include "tests/support/soak_reader.h"

#define BASE "soak"
#define ROWS 8u
#define GUESTS 4u
#define TURN_MS 50u
#define FLOOD_EVERY 16u     /* turns: one without a pause between steps, most are dropped */
#define LIFE_LEAST_MS 5000u /* of a daemon */
#define LIFE_MOST_MS 60000u
#define LIVES 12u /* about, where these two allow it */
#define REPORT_MS 60000u
#define WARM_MS 2000u
#define GUEST_STALL_MS 200  /* the auditor is waited for as long as the daemon allows */
#define GROWTH_KIB 8192     /* of the daemon's own memory over one life */
#define DESCRIPTORS_MORE 40 /* than without channels: of one, its peers and readers */
#define DESCRIPTORS_LEFT 8  /* when the readers are gone and the channel has ended */
#define REST_MS 10000

static const char *const daemon_args[] = {"--ring-size", "8M", "--stall-limit", "5000", NULL};

enum guest_kind {
	GUEST_NONE,
	GUEST_READER,
	GUEST_DUMP,
};

struct guest {
	enum guest_kind kind;
	bool stopped;
	struct soak_reader reader;
	struct command dump;
};

struct soak {
	struct test_daemon daemon;
	struct engine engine;
	char channel[80];
	struct soak_reader auditor;
	struct guest guests[GUESTS];
	uint64_t seed;
	uint64_t life_ms; /* of a daemon, up to twice as much */
	uint64_t begun_ms, daemon_begun_ms, restart_ms, report_ms;
	uint64_t accounts, kills, stops, dumps, restarts;
	int bare_descriptors;
	long warm_kib; /* 0: not yet taken in this life of the daemon */
	long most_kib;
	int most_descriptors;
	int failures;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static uint64_t next_random(struct soak *soak, uint64_t limit)
{
	soak->seed = soak->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (soak->seed >> 33) % limit;
}

static void expect(struct soak *soak, bool holds, const char *what)
{
	if (holds)
		return;
	printf("not so: %s\n", what);
	soak->failures++;
}

/* ---- guests --------------------------------------------------------------- */

static void start_reader(struct soak *soak, struct guest *guest)
{
	const struct soak_job job = {
		.dir = soak->daemon.dir,
		.channel = soak->channel,
		.mode = (enum r3ring_cursor_mode)next_random(soak, R3RING_LOSSLESS + 1),
		.dawdle_us = next_random(soak, 3) ? 0 : 500,
		.stall_ms = GUEST_STALL_MS,
	};

	expect(soak, soak_reader_start(&guest->reader, &job), "a reader attaches");
	guest->kind = GUEST_READER;
}

static void start_dump(struct soak *soak, struct guest *guest)
{
	const char *const args[] = {"dump", soak->channel, "--count", "--follow", NULL};

	command_start(&guest->dump, soak->daemon.dir, args);
	guest->kind = GUEST_DUMP;
	soak->dumps++;
}

static void leave(struct soak *soak, struct guest *guest)
{
	struct soak_account account = soak_reader_account(&guest->reader);

	expect(soak, soak_account_holds(&account, "a reader that leaves"), "its account adds up");
	expect(soak, soak_reader_finish(&guest->reader) == 0, "a reader ends in good order");
	soak->accounts++;
	*guest = (struct guest){0};
}

/* What it had told by then must hold all the same. */
static void die(struct soak *soak, struct guest *guest)
{
	struct soak_account account = soak_reader_account(&guest->reader);

	expect(soak, soak_account_holds(&account, "a reader that is killed"),
	       "its account adds up");
	soak_reader_kill(&guest->reader);
	soak->kills++;
	*guest = (struct guest){0};
}

static void end_dump(struct soak *soak, struct guest *guest)
{
	expect(soak, !command_ended(&guest->dump), "a dump that follows goes on");
	if (!guest->dump.pid)
		printf("it ended with %d: %s\n", guest->dump.code, guest->dump.err);
	command_free(&guest->dump);
	*guest = (struct guest){0};
}

static void stop_or_go_on(struct soak *soak, struct guest *guest)
{
	kill(guest->reader.worker.pid, guest->stopped ? SIGCONT : SIGSTOP);
	guest->stopped = !guest->stopped;
	soak->stops += guest->stopped;
}

static void change_guest(struct soak *soak, struct guest *guest)
{
	uint64_t choice = next_random(soak, 6);

	if (guest->kind == GUEST_NONE && choice == 0)
		start_dump(soak, guest);
	else if (guest->kind == GUEST_NONE)
		start_reader(soak, guest);
	else if (guest->kind == GUEST_DUMP && choice == 0)
		end_dump(soak, guest);
	else if (guest->kind == GUEST_READER && choice == 0)
		leave(soak, guest);
	else if (guest->kind == GUEST_READER && choice == 1)
		die(soak, guest);
	else if (guest->kind == GUEST_READER && (choice == 2 || guest->stopped))
		stop_or_go_on(soak, guest);
}

static void see_guests_off(struct soak *soak)
{
	for (unsigned int i = 0; i < GUESTS; i++) {
		if (soak->guests[i].kind == GUEST_READER)
			leave(soak, &soak->guests[i]);
		else if (soak->guests[i].kind == GUEST_DUMP)
			end_dump(soak, &soak->guests[i]);
	}
}

/* ---- the daemon ------------------------------------------------------------ */

static void begin_life(struct soak *soak)
{
	soak->daemon_begun_ms = now_ms();
	soak->restart_ms = soak->daemon_begun_ms + soak->life_ms + next_random(soak, soak->life_ms);
	soak->warm_kib = 0;
}

struct attaching {
	const struct soak *soak;
	pid_t pid;
};

static bool has_attached(const void *ctx)
{
	const struct attaching *attaching = ctx;
	const struct soak *soak = attaching->soak;
	json_t *object = channel_status(soak->daemon.dir, soak->channel);
	const json_t *reader;
	bool there = false;
	size_t i;

	json_array_foreach (json_object_get(object, "readers"), i, reader)
		there |= json_integer_value(json_object_get(reader, "pid")) == attaching->pid;
	json_decref(object);
	return there;
}

/* A dump that finds no daemon when it begins does not wait for one. */
static void await_dumps(struct soak *soak)
{
	for (unsigned int i = 0; i < GUESTS; i++) {
		const struct attaching dump = {soak, soak->guests[i].dump.pid};

		if (soak->guests[i].kind == GUEST_DUMP)
			expect(soak, reader_worker_wait(has_attached, &dump, REST_MS),
			       "a dump attaches");
	}
}

static void restart_daemon(struct soak *soak)
{
	await_dumps(soak);
	test_daemon_kill(&soak->daemon);
	test_daemon_restart(&soak->daemon, daemon_args);
	soak->restarts++;
	begin_life(soak);
}

/* Neither grows over a life. */
static void watch_daemon(struct soak *soak)
{
	long kib = process_own_kib(soak->daemon.pid);
	int descriptors = process_descriptors(soak->daemon.pid);

	expect(soak, waitpid(soak->daemon.pid, NULL, WNOHANG) == 0, "the daemon runs");
	if (!soak->warm_kib && now_ms() - soak->daemon_begun_ms >= WARM_MS)
		soak->warm_kib = kib;
	if (soak->warm_kib && kib - soak->warm_kib > soak->most_kib)
		soak->most_kib = kib - soak->warm_kib;
	if (descriptors > soak->most_descriptors)
		soak->most_descriptors = descriptors;
}

/* ---- the run ---------------------------------------------------------------- */

static void report(struct soak *soak)
{
	struct soak_account account = soak_reader_account(&soak->auditor);

	printf("%" PRIu64 " s: %" PRIu64 " steps read, %" PRIu64 " readers left, %" PRIu64
	       " killed, %" PRIu64 " stopped, %" PRIu64 " dumps, %" PRIu64
	       " restarts, daemon %ld KiB and %d descriptors\n",
	       (now_ms() - soak->begun_ms) / 1000, account.newest_end, soak->accounts, soak->kills,
	       soak->stops, soak->dumps, soak->restarts, process_own_kib(soak->daemon.pid),
	       process_descriptors(soak->daemon.pid));
	fflush(stdout);
	soak->report_ms = now_ms() + REPORT_MS;
}

static void take_turn(struct soak *soak)
{
	uint64_t end = now_ms() + TURN_MS;

	/* Readers first become known to a new daemon, which then waits for them. */
	bool settled = now_ms() - soak->daemon_begun_ms >= WARM_MS;
	bool flood = next_random(soak, FLOOD_EVERY) == 0 && settled;

	do {
		engine_step(&soak->engine, 0, ROWS);
		if (!flood)
			worker_compute();
	} while (now_ms() < end);
	watch_daemon(soak);
	change_guest(soak, &soak->guests[next_random(soak, GUESTS)]);
}

static void run_until(struct soak *soak, uint64_t end_ms)
{
	while (now_ms() < end_ms && !soak->failures) {
		take_turn(soak);
		if (now_ms() >= soak->restart_ms && now_ms() + soak->life_ms < end_ms)
			restart_daemon(soak);
		if (now_ms() >= soak->report_ms)
			report(soak);
	}
}

/* ---- the account ------------------------------------------------------------ */

struct awaited {
	const struct soak_reader *reader;
	uint64_t step;
};

static bool has_read(const void *ctx)
{
	const struct awaited *awaited = ctx;

	return soak_reader_account(awaited->reader).newest_end >= awaited->step;
}

static uint64_t lost_steps(const struct soak_account *account)
{
	uint64_t steps = 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		steps += account->lost_steps[cause];
	return steps;
}

static void show_account(const struct soak_account *account, uint64_t steps)
{
	printf("auditor: %" PRIu64 " records lost (%" PRIu64 " to %" PRIu64 "), demoted %u\n",
	       account->stats.lost, account->stats.gap_from, account->stats.gap_to,
	       account->demoted);
	printf("%" PRIu64 " steps: %" PRIu64 " came, %" PRIu64 " lost (", steps,
	       account->steps_ended, lost_steps(account));
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		if (account->lost_steps[cause])
			printf(" cause %u: %" PRIu64, cause, account->lost_steps[cause]);
	printf(" ), rows x layers: %" PRIu64 " came, %" PRIu64 " missing, %" PRIu64 " lost\n",
	       account->units, account->missing_units,
	       account->lost_rows * (uint64_t)ENGINE_LAYERS);
}

/* Produced is delivered and lost by cause, in steps and in rows x layers. */
static void audit(struct soak *soak)
{
	int64_t steps = engine_settle(&soak->engine, soak->daemon.dir, soak->channel, ROWS);
	const struct awaited awaited = {&soak->auditor, (uint64_t)steps};
	struct soak_account account;

	expect(soak, steps > 0, "the last step comes through");
	expect(soak, reader_worker_wait(has_read, &awaited, REST_MS), "the auditor reads it");
	account = soak_reader_account(&soak->auditor);
	show_account(&account, (uint64_t)steps);
	expect(soak, soak_account_holds(&account, "auditor"), "its account adds up");
	expect(soak, !account.stats.lost && !account.demoted, "the auditor loses nothing");
	expect(soak, account.steps_ended + lost_steps(&account) == (uint64_t)steps,
	       "each step came or was told lost");
	expect(soak,
	       account.units + account.missing_units + account.lost_rows * ENGINE_LAYERS ==
		       (uint64_t)steps * ROWS * ENGINE_LAYERS,
	       "each row came, at each layer, or was told lost");
	expect(soak, soak_reader_finish(&soak->auditor) == 0, "the auditor ends in good order");
}

static bool at_rest(const void *ctx)
{
	const struct soak *soak = ctx;

	return process_descriptors(soak->daemon.pid) <= soak->bare_descriptors + DESCRIPTORS_LEFT;
}

static void end(struct soak *soak)
{
	see_guests_off(soak);
	report(soak);
	audit(soak);
	engine_close(&soak->engine);
	expect(soak, reader_worker_wait(at_rest, soak, REST_MS), "no descriptor is left behind");
	printf("daemon: at most %ld KiB more than when warm, %d descriptors (%d bare)\n",
	       soak->most_kib, soak->most_descriptors, soak->bare_descriptors);
	expect(soak, !process_size_tells() || soak->most_kib <= GROWTH_KIB,
	       "the daemon's memory is flat");
	expect(soak, soak->most_descriptors <= soak->bare_descriptors + DESCRIPTORS_MORE,
	       "the daemon's descriptors are bounded");
	expect(soak, soak->accounts && soak->kills && soak->stops && soak->dumps && soak->restarts,
	       "all of it happened");
	expect(soak, test_daemon_stop(&soak->daemon) == 0, "the daemon ends in good order");
	expect(soak, test_shm_names(engine_instance(soak->daemon.dir, BASE)) == 0,
	       "no segment is left behind");
	test_daemon_close(&soak->daemon);
}

static void begin(struct soak *soak)
{
	const char *instance;
	struct r3ring_error err;
	struct soak_job job;

	test_daemon_start(&soak->daemon, daemon_args);
	begin_life(soak);
	soak->bare_descriptors = process_descriptors(soak->daemon.pid);
	instance = engine_instance(soak->daemon.dir, BASE);
	snprintf(soak->channel, sizeof(soak->channel), "%s/0", instance);
	if (engine_open(&soak->engine, soak->daemon.dir, instance, ROWS, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	job = (struct soak_job){soak->daemon.dir, soak->channel, R3RING_LOSSLESS, 0, 0};
	expect(soak, soak_reader_start(&soak->auditor, &job), "the auditor attaches");
	soak->begun_ms = now_ms();
	soak->report_ms = soak->begun_ms + REPORT_MS;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? (uint64_t)atoll(argv[1]) : 20;
	static struct soak soak;

	soak.seed = (uint64_t)(argc > 2 ? atoll(argv[2]) : getpid());
	printf("seed %" PRIu64 ", %" PRIu64 " s\n", soak.seed, seconds);
	fflush(stdout);
	soak.life_ms = seconds * 1000 / LIVES;
	if (soak.life_ms < LIFE_LEAST_MS)
		soak.life_ms = LIFE_LEAST_MS;
	if (soak.life_ms > LIFE_MOST_MS)
		soak.life_ms = LIFE_MOST_MS;
	begin(&soak);
	run_until(&soak, soak.begun_ms + seconds * 1000);
	end(&soak);
	return soak.failures != 0;
}
