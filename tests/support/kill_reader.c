/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that is there to be killed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <r3ring/atomic.h>

#include "tests/support/double_account.h"
#include "tests/support/kill_reader.h"

#define HASTY_MS 40

/* Of this process. */
struct own {
	const struct kill_reader *reader;
	struct worker_page *page;
	struct ledger ledger;
	struct kill_account account;
	uint64_t lost; /* of the newest generation, as last looked at */
	uint64_t unkept;
	uint64_t generations;
	bool was_demoted;
};

static struct own own;

const char *kill_kind_name(enum kill_kind kind)
{
	static const char *const names[KILL_KINDS] = {
		[KILL_LOSSY] = "lossy",
		[KILL_LATEST] = "latest",
		[KILL_UNREGISTERED] = "unregistered",
		[KILL_LOSSLESS] = "lossless",
		[KILL_HASTY] = "hasty",
	};

	return names[kind];
}

static bool is_lossless(enum kill_kind kind)
{
	return kind == KILL_LOSSLESS || kind == KILL_HASTY;
}

/* ---- the account -------------------------------------------------------- */

/* A generation that was left behind, or has ended: what it published is known. */
static void note_published(const struct ledger_generation *generation)
{
	struct kill_page *page = own.reader->page;
	uint64_t count = r3ring_load_relaxed_u64(&page->published_count);

	if (!generation->closed ||
	    (count && page->published[count - 1].generation == generation->number))
		return;
	page->published[count] = (struct kill_published){generation->number, generation->units};
	/* Pairs with the acquire of who compares. */
	r3ring_store_release_u64(&page->published_count, count + 1);
}

static void note_unexplained(const struct r3ring_cursor_stats *now, uint64_t records)
{
	own.account.unexplained += records;
	own.account.unexplained_from = now->gap_from;
	own.account.unexplained_to = now->gap_to;
}

/* A lossless reader loses what was not kept for it, or behind a demotion. */
static void note_losses(void)
{
	const struct r3ring_reader_stats *stats = &own.ledger.stats;
	uint64_t more, unkept = stats->unkept - own.unkept;

	if (stats->generations != own.generations) {
		own.generations = stats->generations;
		own.lost = 0;
		own.was_demoted = false;
	}
	more = stats->now.lost - own.lost;
	own.lost = stats->now.lost;
	own.unkept = stats->unkept;
	own.account.lost += more;
	own.account.unkept += unkept;
	own.account.demotions += stats->demoted && !own.was_demoted;
	own.was_demoted = stats->demoted;
	if (is_lossless(own.reader->kind) && !stats->demoted && more != unkept)
		note_unexplained(&stats->now, more - unkept);
}

static void publish_account(void)
{
	const struct ledger *ledger = &own.ledger;
	const struct ledger_generation *newest = ledger_newest(ledger);
	struct kill_page *page = own.reader->page;

	note_losses();
	own.account.records = ledger->stats.now.got;
	own.account.wrong = ledger->wrong;
	own.account.twice = ledger->twice;
	own.account.wrong_sums = ledger->sums.wrong;
	own.account.generation = newest->number;
	own.account.newest_step = newest->newest_step;
	own.account.closed = newest->closed;
	own.account.disordered = 0;
	for (unsigned int i = 0; i < ledger->count; i++)
		own.account.disordered += ledger->generations[i].disordered;
	double_account_publish(&page->version, page->accounts, &own.account, sizeof(own.account));
	if (ledger->count)
		note_published(newest);
}

/* ---- the process -------------------------------------------------------- */

static bool stopped(void)
{
	/* Pairs with the release in kill_reader_finish(). */
	return r3ring_load_acquire_u64(&own.page->stop) != 0;
}

static bool has_ended(const struct ledger *ledger, uint64_t argument)
{
	const struct ledger_generation *newest = ledger_newest(ledger);

	(void)argument;
	publish_account();
	return stopped() && newest->closed && newest->number >= own.reader->page->final_generation;
}

static bool attach(void)
{
	const struct kill_reader *reader = own.reader;
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = reader->dir,
		.channel = reader->channel,
		.mode = is_lossless(reader->kind)     ? R3RING_LOSSLESS
			: reader->kind == KILL_LATEST ? R3RING_LATEST
						      : R3RING_LOSSY,
		.unregistered = reader->kind == KILL_UNREGISTERED,
		.stall_ms = reader->kind == KILL_HASTY ? HASTY_MS : 0,
	};

	while (ledger_try_open(&own.ledger, &options, &own.page->err) < 0) {
		if (stopped())
			return false;
		worker_compute();
	}
	own.ledger.rows_of = reader->rows_of;
	return true;
}

static int body(struct worker_page *page, const void *ctx)
{
	own = (struct own){.reader = ctx, .page = page};
	test_points_use(own.reader->points);
	if (!attach())
		return 0;
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	while (!ledger_read_until(&own.ledger, has_ended, 0))
		;
	return own.reader->at_end ? own.reader->at_end(&own.ledger, own.reader->ctx) : 0;
}

/* ---- the test ----------------------------------------------------------- */

void kill_reader_start(struct kill_reader *reader)
{
	if (!reader->page) {
		reader->page = mmap(NULL, sizeof(*reader->page), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (reader->page == MAP_FAILED) {
			perror("a reader's page");
			exit(1);
		}
	}
	memset(reader->page, 0, sizeof(*reader->page));
	reader->stood_still = false;
	worker_start(&reader->worker, body, reader);
}

struct kill_account kill_reader_account(const struct kill_reader *reader)
{
	struct kill_account account;

	double_account_read(&reader->page->version, reader->page->accounts, &account,
			    sizeof(account));
	return account;
}

bool kill_reader_sound(const struct kill_reader *reader, const char *when)
{
	const struct kill_account account = kill_reader_account(reader);

	if (!account.wrong && !account.twice && !account.wrong_sums && !account.disordered &&
	    !account.unexplained)
		return true;
	fprintf(stderr,
		"kills: %s reader, %s: %" PRIu64 " wrong, %" PRIu64 " doubled, %" PRIu64
		" sums wrong, %" PRIu64 " requests disordered, %" PRIu64
		" records lost unexplained of %" PRIu64 ", the newest of them %" PRIu64
		" to %" PRIu64 "; generation %" PRIu64 ", step %" PRIu64 "\n",
		kill_kind_name(reader->kind), when, account.wrong, account.twice,
		account.wrong_sums, account.disordered, account.unexplained, account.lost,
		account.unexplained_from, account.unexplained_to, account.generation,
		account.newest_step);
	return false;
}

int kill_reader_finish(struct kill_reader *reader, uint64_t generation)
{
	reader->page->final_generation = generation;
	/* Pairs with the acquire in stopped(). */
	r3ring_store_release_u64(&reader->worker.page->stop, 1);
	return worker_wait(&reader->worker);
}
