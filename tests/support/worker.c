/* SPDX-License-Identifier: Apache-2.0 */
/* A process that a test can watch. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/worker.h"

#define DEADLINE_MS 60000
#define LOOK_MS 2
#define COMPUTE_NS 300000

static int end_of(struct worker *worker)
{
	int status;

	waitpid(worker->pid, &status, 0);
	worker->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void worker_start(struct worker *worker, int (*body)(struct worker_page *page, const void *ctx),
		  const void *ctx)
{
	worker->page = mmap(NULL, sizeof(*worker->page), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	worker->pid = worker->page == MAP_FAILED ? -1 : fork();
	if (worker->pid < 0) {
		perror("worker");
		exit(1);
	}
	if (worker->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(body(worker->page, ctx));
}

/* Whether it ends within the time. */
static bool ends(const struct worker *worker, int timeout_ms)
{
	struct pollfd end = {
		.fd = (int)syscall(SYS_pidfd_open, worker->pid, 0),
		.events = POLLIN,
	};
	bool ended = poll(&end, 1, timeout_ms) > 0;

	close(end.fd);
	return ended;
}

int worker_wait(struct worker *worker)
{
	if (!ends(worker, DEADLINE_MS))
		kill(worker->pid, SIGKILL);
	return end_of(worker);
}

void worker_kill(struct worker *worker)
{
	kill(worker->pid, SIGKILL);
	end_of(worker);
}

bool worker_reaches(const struct worker *worker, uint64_t value)
{
	for (int looks = 0; looks < DEADLINE_MS / LOOK_MS; looks++) {
		if (r3ring_load_acquire_u64(&worker->page->progress) >= value)
			return true;
		if (ends(worker, LOOK_MS))
			break;
	}
	return r3ring_load_acquire_u64(&worker->page->progress) >= value;
}

void worker_compute(void)
{
	const struct timespec pause = {.tv_nsec = COMPUTE_NS};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* stands for work */
}
