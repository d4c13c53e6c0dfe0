/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer and several readers, each a process, on rings so small that
 * readers are lapped all the time. Every payload word is a function of the
 * record's sequence and its place, every record's units one of its sequence: a
 * torn record that passed its check, or an account that is off by one, is found.
 *
 *	ring_race [SECONDS [SEED]]
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#define RECORD_MAX 8192u
#define FIRST_SEQ ((1ull << 32) - 1000)
#define IN_FLIGHT_MAX 4u
#define BOUNDARY_INTERVAL 16u
#define DAWDLE_TURNS 400u
#define LOOKS_BEFORE_SLEEP 200u

/* Sizes of the ring of this run. In the narrow one a lap is so short that even
 * the copying of a descriptor is overtaken. */
struct shape {
	const char *name;
	uint32_t depth;
	uint32_t arena_bytes;
};

static const struct shape shapes[] = {{"wide", 128, 8 * RECORD_MAX}, {"narrow", 16, 4096}};
static const struct shape *shape = shapes;

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* How a reader behaves. */
enum kind { FAST, SLOW, COPYING, LATEST, SLOW_LATEST, SKIPPING, KINDS };

static const char *const kind_names[KINDS] = {"fast",   "slow",        "copying",
					      "latest", "slow latest", "skipping"};

struct result {
	struct r3ring_cursor_stats stats;
	uint64_t got_units;
	uint64_t refused; /* views that failed their check */
	char failure[200];
};

struct shared {
	uint64_t last_seq; /* the writer's, once it has finished */
	struct result results[KINDS];
};

/* ---- what every record holds --------------------------------------------- */

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

static uint64_t units_of(uint64_t seq)
{
	return 1 + seq % 7;
}

/* Units of all records from FIRST_SEQ up to @seq. */
static uint64_t total_up_to(uint64_t seq)
{
	uint64_t count = seq - FIRST_SEQ + 1, total = count / 7 * (7 + 21);

	for (uint64_t i = 0; i < count % 7; i++)
		total += units_of(FIRST_SEQ + i);
	return total;
}

static void fill(uint8_t *data, uint32_t len, uint64_t seq)
{
	uint64_t word = mix(seq);

	for (uint32_t at = 0; at < len; at += 8, word += 0x9e3779b97f4a7c15ull)
		memcpy(data + at, &word, len - at < 8 ? len - at : 8);
}

static bool holds(const uint8_t *data, uint32_t len, uint64_t seq)
{
	uint64_t word = mix(seq);

	for (uint32_t at = 0; at < len; at += 8, word += 0x9e3779b97f4a7c15ull)
		if (memcmp(data + at, &word, len - at < 8 ? len - at : 8))
			return false;
	return true;
}

/* Half of them short, half of all sizes. */
static uint32_t length_of(uint64_t seq)
{
	uint64_t random = mix(seq ^ 0x5bd1e995);

	return (uint32_t)(random & 1 ? random >> 8 & 127
				     : (random >> 8) % (shape->arena_bytes / 8 + 1));
}

static struct r3ring_record_spec spec_of(uint64_t seq)
{
	return (struct r3ring_record_spec){
		.step = ~seq,
		.units = units_of(seq),
		.len = length_of(seq),
		.type = (uint16_t)(seq * 31),
		.flags = seq % BOUNDARY_INTERVAL ? 0 : R3RING_DESC_BOUNDARY,
	};
}

/* ---- writing -------------------------------------------------------------- */

static int put_one(struct r3ring_writer *writer)
{
	uint8_t payload[RECORD_MAX];
	uint64_t seq = r3ring_writer_next_seq(writer);
	struct r3ring_record_spec spec = spec_of(seq);

	fill(payload, spec.len, seq);
	return r3ring_writer_put(writer, &spec, payload);
}

/* Up to @count in flight, fewer where half of the arena does not hold them. */
static int put_several(struct r3ring_writer *writer, unsigned int count)
{
	struct r3ring_slot slots[IN_FLIGHT_MAX];
	unsigned int reserved = 0;
	int rc = 0;

	while (!rc && reserved < count) {
		struct r3ring_record_spec spec = spec_of(r3ring_writer_next_seq(writer));

		rc = r3ring_writer_reserve(writer, &spec, &slots[reserved]);
		reserved += !rc;
	}
	if (rc && (rc != -ENOBUFS || !reserved))
		return rc;
	for (unsigned int i = reserved; i--;)
		fill(slots[i].data, slots[i].len, slots[i].seq);
	for (unsigned int i = 0; i < reserved; i++) {
		rc = r3ring_writer_commit(writer, &slots[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int write_all(struct r3ring_segment *segment, struct shared *shared, uint64_t seed,
		     uint64_t milliseconds)
{
	uint64_t end = now_ns() + milliseconds * 1000000u;
	struct r3ring_writer *writer;
	int rc = r3ring_writer_open(&writer, segment);

	while (!rc && now_ns() < end) {
		for (int i = 0; !rc && i < 50; i++) {
			seed = mix(seed + 1);
			rc = seed % 3 ? put_one(writer)
				      : put_several(writer, 1 + seed / 3 % IN_FLIGHT_MAX);
		}
		if (!rc)
			r3ring_writer_wake(writer);
	}
	if (rc)
		return rc;
	/* Pairs with the acquire in judge(). */
	r3ring_store_release_u64(&shared->last_seq, r3ring_writer_next_seq(writer) - 1);
	r3ring_writer_finish(writer);
	r3ring_writer_close(writer);
	return 0;
}

/* ---- reading -------------------------------------------------------------- */

static bool complain(struct result *result, const char *what, uint64_t seq)
{
	snprintf(result->failure, sizeof(result->failure), "%s at sequence %" PRIu64, what, seq);
	return false;
}

static bool view_is_true(const struct r3ring_view *view, struct result *result)
{
	struct r3ring_record_spec spec = spec_of(view->seq);

	if (view->len != spec.len || view->step != spec.step || view->type != spec.type ||
	    (view->flags & ~R3RING_DESC_INLINE) != spec.flags)
		return complain(result, "wrong description", view->seq);
	if (view->units != total_up_to(view->seq))
		return complain(result, "wrong running total", view->seq);
	return true;
}

static void dawdle(uint64_t seq)
{
	for (uint64_t i = mix(seq) % DAWDLE_TURNS; i; i--)
		r3ring_cpu_relax();
}

/* Uses the record in place, twice when slow, and believes it when check says so. */
static bool take_in_place(struct r3ring_cursor *cursor, const struct r3ring_view *view, bool slow,
			  struct result *result)
{
	bool intact = holds(view->data, view->len, view->seq);

	if (slow) {
		dawdle(view->seq);
		intact = intact && holds(view->data, view->len, view->seq);
	}
	if (r3ring_cursor_check(cursor)) {
		result->refused++;
		return true;
	}
	result->got_units += units_of(view->seq);
	return intact ? view_is_true(view, result)
		      : complain(result, "torn record passed its check", view->seq);
}

/* One record by the reader's kind. Returns as r3ring_cursor_next(), or -EILSEQ
 * when result->failure says what is wrong. */
static int read_one(struct r3ring_cursor *cursor, enum kind kind, struct result *result)
{
	static uint8_t buffer[RECORD_MAX];
	struct r3ring_view view;
	bool fine;
	int rc;

	if (kind == COPYING) {
		rc = r3ring_cursor_read(cursor, &view, buffer, sizeof(buffer));
		if (rc != 1)
			return rc;
		result->got_units += units_of(view.seq);
		fine = holds(buffer, view.len, view.seq)
			       ? view_is_true(&view, result)
			       : complain(result, "torn copy passed its check", view.seq);
		return fine ? 1 : -EILSEQ;
	}
	if (kind == SKIPPING && mix(result->got_units) % 50 == 0)
		r3ring_cursor_skip(cursor);
	rc = r3ring_cursor_next(cursor, &view);
	if (rc != 1)
		return rc;
	return take_in_place(cursor, &view, kind == SLOW || kind == SLOW_LATEST, result) ? 1
											 : -EILSEQ;
}

static bool account_holds(const struct r3ring_cursor *cursor, struct result *result)
{
	struct r3ring_cursor_stats *stats = &result->stats;

	r3ring_cursor_get_stats(cursor, stats);
	if (stats->got + stats->lost + stats->skipped != stats->cursor - stats->start)
		return complain(result, "records unaccounted for", stats->cursor);
	if (stats->cursor > stats->start &&
	    result->got_units + stats->lost_units + stats->skipped_units !=
		    total_up_to(stats->cursor - 1) - total_up_to(stats->start - 1))
		return complain(result, "units unaccounted for", stats->cursor);
	return true;
}

static void read_all(const struct r3ring_segment *segment, enum kind kind, struct result *result)
{
	bool latest = kind == LATEST || kind == SLOW_LATEST;
	unsigned int looks = 0;
	struct r3ring_cursor *cursor;
	int rc = r3ring_cursor_open(&cursor, segment, latest ? R3RING_LATEST : R3RING_LOSSY,
				    R3RING_FROM_OLDEST, 0);

	while (rc == 0 || rc == 1 || rc == -EOVERFLOW) {
		rc = read_one(cursor, kind, result);
		if (rc == -EILSEQ || !account_holds(cursor, result))
			return;
		looks = rc ? 0 : looks + 1;
		if (looks > LOOKS_BEFORE_SLEEP)
			r3ring_cursor_wait(cursor, 1000000000u);
	}
	if (rc != -EPIPE)
		complain(result, strerror(-rc), result->stats.cursor);
}

/* ---- all together ----------------------------------------------------------- */

static pid_t spawn_reader(int fd, enum kind kind, struct shared *shared)
{
	pid_t parent = getpid(), pid = fork();
	struct r3ring_segment *segment;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (r3ring_segment_open_fd(&segment, fd, NULL))
		complain(&shared->results[kind], "segment does not open", 0);
	else
		read_all(segment, kind, &shared->results[kind]);
	_exit(0);
}

static int judge(const struct shared *shared, enum kind kind)
{
	const struct result *result = &shared->results[kind];
	const struct r3ring_cursor_stats *stats = &result->stats;
	/* Pairs with the release in write_all(). */
	uint64_t last = r3ring_load_acquire_u64(&shared->last_seq);
	const char *failure = result->failure;

	if (!*failure && stats->cursor != last + 1)
		failure = "did not reach the end";
	if (!*failure && !stats->got)
		failure = "got nothing";
	if (!*failure && kind != FAST && !stats->lost)
		failure = "was never lapped: nothing was tried";
	printf("%-12s got %9" PRIu64 "  lost %9" PRIu64 "  skipped %9" PRIu64 "  refused %6" PRIu64
	       "  %s\n",
	       kind_names[kind], stats->got, stats->lost, stats->skipped, result->refused,
	       *failure ? failure : "ok");
	return *failure ? 1 : 0;
}

static struct r3ring_segment *make_segment(int *reader_fd)
{
	char name[64];
	struct r3ring_segment_options options = {.size = sizeof(options),
						 .name = name,
						 .arena_bytes = shape->arena_bytes,
						 .depth = shape->depth,
						 .first_seq = FIRST_SEQ};
	struct r3ring_segment *segment;
	struct r3ring_error err;

	snprintf(name, sizeof(name), "/r3ring-race.%d", getpid());
	if (r3ring_segment_create(&segment, &options, &err)) {
		fprintf(stderr, "ring_race: %s\n", err.text);
		return NULL;
	}
	r3ring_segment_unlink(segment);
	*reader_fd = r3ring_segment_reader_fd(segment);
	return segment;
}

static int run(struct shared *shared, uint64_t milliseconds, uint64_t seed)
{
	int reader_fd, status, failed = 0, rc;
	struct r3ring_segment *segment = make_segment(&reader_fd);
	pid_t pids[KINDS];

	if (!segment)
		return 1;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		pids[kind] = spawn_reader(reader_fd, (enum kind)kind, shared);
	rc = write_all(segment, shared, seed, milliseconds);
	if (rc) {
		fprintf(stderr, "ring_race: writing: %s\n", strerror(-rc));
		failed = 1;
	}
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		if (failed)
			kill(pids[kind], SIGKILL);
		if (pids[kind] < 0 || waitpid(pids[kind], &status, 0) < 0 || status) {
			fprintf(stderr, "ring_race: reader '%s' died\n", kind_names[kind]);
			failed = 1;
		}
	}
	for (unsigned int kind = 0; kind < KINDS; kind++)
		failed |= judge(shared, (enum kind)kind);
	close(reader_fd);
	r3ring_segment_close(segment);
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : now_ns();
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int failed = 0;

	if (shared == MAP_FAILED || argc > 3 || !seconds || seconds > 3600) {
		fputs("usage: ring_race [SECONDS [SEED]]\n", stderr);
		return 2;
	}
	printf("ring_race: %" PRIu64 " s, seed %" PRIu64 "\n", seconds, seed);
	for (size_t i = 0; i < SHAPES; i++) {
		shape = &shapes[i];
		printf("%s ring:\n", shape->name);
		fflush(stdout);
		memset(shared, 0, sizeof(*shared));
		failed |= run(shared, seconds * 1000 / SHAPES, seed);
	}
	return failed;
}
