/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that keeps an account. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <r3ring/atomic.h>

#include "tests/support/double_account.h"
#include "tests/support/engine.h"
#include "tests/support/soak_reader.h"

#define WAIT_MS 50
#define ATTACH_TRIES 200 /* a daemon that was just started may not know the channel yet */
#define ATTACH_NAP_NS 50000000

struct start {
	struct soak_job job;
	struct soak_page *page;
};

static void nap(long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	nanosleep(&time, NULL); /* stands for work */
}

/* ---- the account ---------------------------------------------------------- */

static uint64_t wrong_ids(const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	const uint16_t *ids = record->u.layer.ids;
	uint64_t wrong = 0;

	for (uint32_t row = 0; row < head->rows; row++)
		for (uint32_t k = 0; k < head->top_k; k++)
			wrong += ids[row * head->top_k + k] !=
				 engine_id(head->step, head->layer_index, head->row + row, k);
	return wrong;
}

static void note_end(struct soak_account *account, const struct r3ring_record *record)
{
	account->steps_ended++;
	account->newest_end = record->u.step_end.head.step;
	for (uint32_t i = 0; i < record->u.step_end.head.missing; i++)
		account->missing_units += record->u.step_end.missing[i].expected;
}

/* Returns the record's units. */
static uint64_t note(struct soak_account *account, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_LAYER:
		account->wrong_ids += wrong_ids(record);
		return record->u.layer.head.valid_rows;
	case R3RING_STEP_END:
		note_end(account, record);
		return 0;
	case R3RING_LOST:
		account->lost_steps[record->u.lost.cause] += record->u.lost.steps;
		account->lost_rows += record->u.lost.rows;
		return 0;
	default:
		return 0;
	}
}

static void check_sums(struct soak_account *account)
{
	const struct r3ring_cursor_stats *stats = &account->stats;

	account->wrong_accounts += stats->got + stats->lost + stats->skipped !=
				   stats->cursor - stats->start;
}

/* What was delivered, lost and skipped must be what the writer says was published. */
static void check_units(struct soak_account *account, const struct r3ring_view *view,
			uint64_t units)
{
	const struct r3ring_cursor_stats *stats = &account->stats;

	account->newest_units = view->units;
	if (stats->got == 1)
		account->units_before =
			view->units - units - stats->lost_units - stats->skipped_units;
	account->units += units;
	account->wrong_accounts +=
		account->units_before + account->units + stats->lost_units + stats->skipped_units !=
		view->units;
}

static void take_stats(struct soak_account *account, const struct r3ring_reader *reader)
{
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(reader, &stats);
	account->stats = stats.now;
	account->generations = stats.generations;
	account->demoted |= stats.demoted;
	account->corrupt = stats.corrupt;
	check_sums(account);
}

static void take(struct soak_account *account, struct r3ring_reader *reader,
		 const struct r3ring_view *view)
{
	struct soak_account noted = *account;
	struct r3ring_record record;
	uint64_t units = 0;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) == 0)
		units = note(&noted, &record);
	else
		noted.wrong_ids++;
	if (r3ring_reader_check(reader) == 0) {
		*account = noted;
		take_stats(account, reader);
		check_units(account, view, units);
	} else {
		take_stats(account, reader);
	}
}

/* ---- the process ---------------------------------------------------------- */

static struct r3ring_reader *attach(const struct soak_job *job)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = job->dir,
		.channel = job->channel,
		.mode = job->mode,
		.stall_ms = job->stall_ms,
	};
	struct r3ring_reader *reader;
	struct r3ring_error err;

	for (int tries = 0; tries < ATTACH_TRIES; tries++) {
		if (r3ring_reader_open(&reader, &options, &err) == 0)
			return reader;
		nap(ATTACH_NAP_NS);
	}
	fprintf(stderr, "reader: %s\n", err.text);
	return NULL;
}

static int body(struct worker_page *worker, const void *ctx)
{
	const struct start *start = ctx;
	struct r3ring_reader *reader = attach(&start->job);
	struct soak_account account = {0};
	struct r3ring_view view;

	if (!reader)
		return 1;
	r3ring_store_release_u64(&worker->progress, 1);
	while (!r3ring_load_acquire_u64(&worker->stop)) {
		int rc = r3ring_reader_next(reader, &view);

		if (rc == 1)
			take(&account, reader, &view);
		else
			take_stats(&account, reader);
		double_account_publish(&start->page->version, start->page->accounts, &account,
				       sizeof(account));
		if (rc == 1 && start->job.dawdle_us)
			nap(start->job.dawdle_us * 1000L);
		else if (rc == 0 || rc == -EPIPE)
			r3ring_reader_wait(reader, WAIT_MS);
	}
	r3ring_reader_close(reader);
	return 0;
}

bool soak_reader_start(struct soak_reader *reader, const struct soak_job *job)
{
	struct start start = {.job = *job};

	start.page = mmap(NULL, sizeof(*start.page), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (start.page == MAP_FAILED)
		return false;
	reader->page = start.page;
	worker_start(&reader->worker, body, &start);
	return worker_reaches(&reader->worker, 1);
}

struct soak_account soak_reader_account(const struct soak_reader *reader)
{
	struct soak_account account;

	double_account_read(&reader->page->version, reader->page->accounts, &account,
			    sizeof(account));
	return account;
}

bool soak_account_holds(const struct soak_account *account, const char *who)
{
	bool holds = !account->wrong_ids && !account->wrong_accounts && !account->corrupt &&
		     account->generations <= 1;

	if (!holds)
		printf("%s: %" PRIu64 " wrong ids, %" PRIu64 " wrong sums, %" PRIu64
		       " corrupt records, %" PRIu64 " generations\n",
		       who, account->wrong_ids, account->wrong_accounts, account->corrupt,
		       account->generations);
	return holds;
}

static void release(struct soak_reader *reader)
{
	munmap(reader->worker.page, sizeof(*reader->worker.page));
	munmap(reader->page, sizeof(*reader->page));
	*reader = (struct soak_reader){0};
}

int soak_reader_finish(struct soak_reader *reader)
{
	int code;

	kill(reader->worker.pid, SIGCONT);
	/* Pairs with the acquire in body(). */
	r3ring_store_release_u64(&reader->worker.page->stop, 1);
	code = worker_wait(&reader->worker);
	release(reader);
	return code;
}

void soak_reader_kill(struct soak_reader *reader)
{
	worker_kill(&reader->worker);
	release(reader);
}
