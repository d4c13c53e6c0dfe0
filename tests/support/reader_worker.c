/* SPDX-License-Identifier: Apache-2.0 */
/* A reader in a process of its own. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <r3ring/atomic.h>

#include "tests/support/reader_worker.h"
#include "tests/support/stand_still.h"

#define DEADLINE_MS 20000

struct start {
	const struct reader_job *job;
	struct reader_page *page;
};

/* The one of this process. */
static struct worker_page *own_worker;
static struct reader_page *own_page;
static uint32_t own_dawdle_us, own_busy_us;
static uint64_t next_seq;

static void dawdle(uint32_t us)
{
	const struct timespec pause = {.tv_nsec = us * 1000L};

	if (us)
		nanosleep(&pause, NULL); /* stands for work */
}

static uint64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void work(uint32_t us)
{
	uint64_t end = us ? processor_ns() + us * 1000ull : 0;

	while (us && processor_ns() < end)
		;
}

static void note(const struct listener *listener)
{
	const struct r3ring_cursor_stats *now = &listener->stats.now;

	if (now->cursor == next_seq)
		return;
	if (next_seq && now->got + now->lost + now->skipped != now->cursor - now->start)
		own_page->seq_breaks++;
	next_seq = now->cursor;
	own_page->seen = *listener;
	/* Pairs with the acquire in accounts(). */
	r3ring_store_release_u64(&own_page->accounted, listener_accounted(listener));
	dawdle(own_dawdle_us);
	work(own_busy_us);
}

static bool told_to_stop(const struct listener *listener, uint64_t argument)
{
	(void)argument;
	note(listener);
	r3ring_fetch_add_u64(&own_page->turns, 1);
	return r3ring_load_acquire_u64(&own_worker->stop);
}

/* A turn of one that never sleeps. */
static void spin(struct listener *listener)
{
	struct r3ring_view view;

	while (!told_to_stop(listener, 0)) {
		while (r3ring_reader_next(listener->reader, &view) == 1)
			r3ring_reader_check(listener->reader);
		r3ring_reader_get_stats(listener->reader, &listener->stats);
	}
}

static int body(struct worker_page *page, const void *ctx)
{
	const struct start *start = ctx;
	struct listener listener;

	own_worker = page;
	own_page = start->page;
	own_dawdle_us = start->job->dawdle_us;
	own_busy_us = start->job->busy_us;
	listener_open_as(&listener, &start->job->options);
	listener.polls = start->job->polls;
	/* Pairs with the acquire in worker_reaches(). */
	r3ring_store_release_u64(&page->progress, 1);
	if (start->job->spins) {
		spin(&listener);
	} else {
		while (!told_to_stop(&listener, 0))
			listener_read_until(&listener, told_to_stop, 0);
	}
	r3ring_reader_get_stats(listener.reader, &listener.stats);
	own_page->seen = listener;
	listener_close(&listener);
	return 0;
}

void reader_worker_start(struct reader_worker *reader, const struct reader_job *job)
{
	struct start start = {.job = job};

	start.page = mmap(NULL, sizeof(*start.page), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (start.page == MAP_FAILED) {
		perror("reader's page");
		exit(1);
	}
	reader->page = start.page;
	worker_start(&reader->worker, body, &start);
	if (worker_reaches(&reader->worker, 1))
		return;
	fprintf(stderr, "reader did not attach\n");
	exit(1);
}

bool reader_worker_wait(bool (*done)(const void *ctx), const void *ctx, int ms)
{
	struct timespec now;
	long long end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000ll + now.tv_nsec / 1000000 + ms;
	while (!done(ctx)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec * 1000ll + now.tv_nsec / 1000000 > end)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

struct awaited {
	const struct reader_page *page;
	uint64_t steps;
};

static bool accounts(const void *ctx)
{
	const struct awaited *awaited = ctx;

	/* Pairs with the release in note(). */
	return r3ring_load_acquire_u64(&awaited->page->accounted) >= awaited->steps;
}

bool reader_worker_accounts(const struct reader_worker *reader, uint64_t steps)
{
	const struct awaited awaited = {reader->page, steps};

	return reader_worker_wait(accounts, &awaited, DEADLINE_MS);
}

void reader_worker_pause(const struct reader_worker *reader)
{
	stand_still(reader->worker.pid);
}

void reader_worker_go_on(const struct reader_worker *reader)
{
	kill(reader->worker.pid, SIGCONT);
}

void reader_worker_finish(struct reader_worker *reader)
{
	/* Pairs with the acquire in told_to_stop(). */
	r3ring_store_release_u64(&reader->worker.page->stop, 1);
	if (worker_wait(&reader->worker) != 0)
		reader->page->seq_breaks++;
}

void reader_worker_kill(struct reader_worker *reader)
{
	worker_kill(&reader->worker);
}
