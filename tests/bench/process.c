/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, processors and child processes for the benchmark's rows. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t bench_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double bench_percentile(double *values, size_t count, double percent)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[(size_t)((double)(count - 1) * percent / 100.0 + 0.5)];
}

/* The @index-th processor in @allowed, which has more than @index. */
static size_t nth_cpu(const cpu_set_t *allowed, unsigned int index)
{
	size_t cpu = 0;

	for (;; cpu++)
		if (CPU_ISSET(cpu, allowed) && !index--)
			return cpu;
}

/* What this process was allowed before it was first pinned. */
static int allowed_cpus(cpu_set_t *set)
{
	static cpu_set_t allowed;
	static int known;

	if (!known && sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	known = 1;
	*set = allowed;
	return 0;
}

unsigned int bench_cpus(void)
{
	cpu_set_t allowed;

	return allowed_cpus(&allowed) ? 1 : (unsigned int)CPU_COUNT(&allowed);
}

int bench_unpin(void)
{
	cpu_set_t allowed;
	int rc = allowed_cpus(&allowed);

	if (rc)
		return rc;
	return sched_setaffinity(0, sizeof(allowed), &allowed) ? -errno : 0;
}

int bench_pin(unsigned int index)
{
	cpu_set_t allowed, one;
	int rc = allowed_cpus(&allowed);

	if (rc)
		return rc;
	CPU_ZERO(&one);
	CPU_SET(nth_cpu(&allowed, index % (unsigned int)CPU_COUNT(&allowed)), &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

void *bench_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void bench_unshare(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

pid_t bench_spawn(int (*body)(void *arg), void *arg, unsigned int cpu)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	int rc;

	if (pid)
		return pid < 0 ? -errno : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	rc = bench_pin(cpu);
	if (!rc)
		rc = body(arg);
	_exit(-rc & 0xff);
}

int bench_join(pid_t pid)
{
	int status;

	if (pid < 0)
		return pid;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}
