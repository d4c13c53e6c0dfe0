/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleep and wake, handed over a great many times: the writer publishes one record,
 * wakes, and goes on when the reader, another process, has taken it; the reader
 * sleeps between any two. Pauses of random length move each side's steps over all
 * of the other's. A wake-up that were lost would sleep until its timeout.
 *
 * usage: sleep_wake [HANDOVERS [SEED]]
 *
 * Without arguments it ends after ten seconds, however many there were.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/reader_page.h>
#include <r3ring/ring.h>

#include "consumer/internal.h"
#include "ring/gate.h"

#define TIMEOUT_NS 20000000000ull
#define LOST_NS 3000000000ull /* a sleep so long was not woken */
#define PAUSE_MOST 2000u
#define PATIENCE_NS 10000000000ull
#define DEFAULT_NS 10000000000ull

struct shared {
	struct r3ring_reader_page page;
	uint64_t taken; /* newest sequence that the reader has */
	uint64_t sleeps;
	uint64_t longest_ns;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static void pause_randomly(uint64_t *state)
{
	for (uint64_t i = next_random(state) % PAUSE_MOST; i; i--)
		r3ring_cpu_relax();
}

/* ---- the reader ----------------------------------------------------------- */

static void take(struct shared *shared, struct r3ring_cursor *cursor, uint64_t seq)
{
	struct r3ring_view view;

	while (r3ring_cursor_next(cursor, &view) != 1) {
		uint64_t begin = clock_now_ns(), slept;

		reader_sleep(&shared->page, cursor, TIMEOUT_NS);
		slept = clock_now_ns() - begin;
		shared->sleeps++;
		if (slept > shared->longest_ns)
			shared->longest_ns = slept;
	}
	if (r3ring_cursor_check(cursor) || view.seq != seq)
		_exit(2);
	/* Pairs with the acquire in hand_over(). */
	r3ring_store_release_u64(&shared->taken, seq);
}

static void read_all(struct shared *shared, int fd, uint64_t handovers, uint64_t seed)
{
	struct r3ring_segment *segment;
	struct r3ring_cursor *cursor;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r3ring_segment_open_fd(&segment, fd, NULL) ||
	    r3ring_cursor_open(&cursor, segment, R3RING_LOSSY, R3RING_FROM_SEQ, 1))
		_exit(3);
	for (uint64_t seq = 1; seq <= handovers; seq++) {
		take(shared, cursor, seq);
		if (next_random(&seed) % 2)
			pause_randomly(&seed);
	}
	_exit(0);
}

/* ---- the writer ------------------------------------------------------------ */

static bool hand_over(struct shared *shared, struct r3ring_writer *writer, uint64_t *seed)
{
	const struct r3ring_record_spec spec = {.len = 8, .type = 1};
	uint64_t seq = r3ring_writer_next_seq(writer), end;

	if (next_random(seed) % 2)
		pause_randomly(seed);
	if (r3ring_writer_put(writer, &spec, &seq))
		return false;
	r3ring_writer_wake(writer);
	end = clock_now_ns() + PATIENCE_NS;
	/* Pairs with the release in take(). */
	while (r3ring_load_acquire_u64(&shared->taken) < seq) {
		r3ring_cpu_relax();
		if (clock_now_ns() > end)
			return false;
	}
	return true;
}

static int judge(const struct shared *shared, const struct gate *gate, uint64_t done, bool stands)
{
	const char *failure = NULL;

	if (stands)
		failure = "the reader stands still";
	else if (shared->longest_ns > LOST_NS)
		failure = "a wake-up was lost";
	else if (gate_wakes(gate) < done / 100)
		failure = "hardly anybody slept: nothing was tried";
	printf("%" PRIu64 " handovers, %" PRIu64 " sleeps, %" PRIu64
	       " wakes, longest sleep %" PRIu64 " us: %s\n",
	       done, shared->sleeps, gate_wakes(gate), shared->longest_ns / 1000,
	       failure ? failure : "ok");
	return failure != NULL;
}

static int run(struct r3ring_segment *segment, struct shared *shared, uint64_t handovers,
	       uint64_t limit_ns, uint64_t seed)
{
	uint64_t begin = clock_now_ns();
	const struct gate_terms terms = {0};
	struct gate *gate = gate_create(segment, false);
	struct r3ring_writer *writer;
	uint64_t done = 0;
	bool stands = false;
	int fd = r3ring_segment_reader_fd(segment), failed;
	pid_t pid;

	if (!gate || fd < 0 || r3ring_writer_open(&writer, segment))
		return 1;
	writer_set_gate(writer, gate);
	gate_add(gate, &shared->page, &terms);
	pid = fork();
	if (pid == 0)
		read_all(shared, fd, handovers, seed + 1);
	while (done < handovers && clock_now_ns() - begin < limit_ns && !stands) {
		stands = !hand_over(shared, writer, &seed);
		done += !stands;
	}
	if (done < handovers)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	failed = judge(shared, gate, done, stands);
	r3ring_writer_close(writer);
	gate_destroy(gate);
	close(fd);
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t handovers = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : clock_now_ns();
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[64];
	struct r3ring_segment_options options = {
		.size = sizeof(options), .name = name, .arena_bytes = 65536, .depth = 64};
	struct r3ring_segment *segment;
	struct r3ring_error err;
	int failed;

	if (shared == MAP_FAILED || argc > 3 || !handovers) {
		fputs("usage: sleep_wake [HANDOVERS [SEED]]\n", stderr);
		return 2;
	}
	printf("sleep_wake: seed %" PRIu64 "\n", seed);
	fflush(stdout);
	snprintf(name, sizeof(name), "/r3ring-sleep.%d", getpid());
	if (r3ring_segment_create(&segment, &options, &err)) {
		fprintf(stderr, "sleep_wake: %s\n", err.text);
		return 1;
	}
	r3ring_segment_unlink(segment);
	failed = run(segment, shared, handovers, argc > 1 ? UINT64_MAX : DEFAULT_NS, seed);
	r3ring_segment_close(segment);
	return failed;
}
