/* SPDX-License-Identifier: Apache-2.0 */
/* The table that the processes of a fake machine share. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fakecuda/machine_table.h"

static struct machine *the_machine;
static int machine_fd = -1; /* with the locks that say who lives */
static uint32_t own_number;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what)
{
	fprintf(stderr, "fakecuda: %s: %s\n", what, strerror(errno));
	abort();
}

/* ---- opening ------------------------------------------------------------ */

static void make(struct machine *made)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&made->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	made->made = 1;
}

/* NULL: a machine that is this process's alone. */
static struct machine *map(const char *dir)
{
	struct machine *mapped;
	char path[4096];
	int fd = -1;

	if (dir) {
		snprintf(path, sizeof(path), "%s/machine", dir);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || flock(fd, LOCK_EX) < 0 || ftruncate(fd, sizeof(*mapped)) < 0)
			die(path);
	}
	mapped = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE,
		      fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		die("mmap");
	if (!mapped->made)
		make(mapped);
	if (fd >= 0) {
		flock(fd, LOCK_UN); /* the mapping would keep it */
		machine_fd = fd;
	}
	return mapped;
}

void machine_lock(struct machine *m)
{
	if (pthread_mutex_lock(&m->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&m->lock);
}

void machine_unlock(struct machine *m)
{
	pthread_mutex_unlock(&m->lock);
}

/* A byte of the file for each process. The lock goes with its end, and also when it
 * executes another program, with which all that it had on a GPU goes too. */
static struct flock life_of(uint32_t number)
{
	return (struct flock){.l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)sizeof(struct machine) + number,
			      .l_len = 1};
}

static void show_life(void)
{
	struct flock life = life_of(own_number);

	if (machine_fd >= 0 && fcntl(machine_fd, F_OFD_SETLK, &life) < 0)
		die("fcntl");
}

bool machine_is_dead(uint32_t number)
{
	struct flock life = life_of(number);

	return machine_fd >= 0 && number != own_number &&
	       fcntl(machine_fd, F_OFD_GETLK, &life) == 0 && life.l_type == F_UNLCK;
}

static void forget_dead(struct machine *m)
{
	for (unsigned int i = 0; i < PROCESSES_MAX; i++) {
		if (m->processes[i].pid && machine_is_dead(m->processes[i].number))
			m->processes[i] = (struct machine_process){0};
	}
}

struct machine *machine(void)
{
	pthread_mutex_lock(&open_lock);
	if (!the_machine) {
		the_machine = map(getenv("FAKECUDA_DIR"));
		machine_lock(the_machine);
		own_number = ++the_machine->process_number;
		show_life();
		machine_unlock(the_machine);
	}
	pthread_mutex_unlock(&open_lock);
	return the_machine;
}

uint32_t machine_process_number(void)
{
	machine();
	return own_number;
}

/* ---- what the environment says ------------------------------------------ */

unsigned int machine_gpus(void)
{
	const char *text = getenv("FAKECUDA_GPUS");
	unsigned long gpus = text ? strtoul(text, NULL, 10) : 1;

	return gpus > MACHINE_GPUS_MAX ? MACHINE_GPUS_MAX : (unsigned int)gpus;
}

int machine_driver_version(void)
{
	const char *text = getenv("FAKECUDA_DRIVER");

	if (!text)
		return 13000;
	return strcmp(text, "none") == 0 ? 0 : (int)strtol(text, NULL, 10);
}

bool machine_refuses(const char *what)
{
	const char *text = getenv("FAKECUDA_REFUSE");

	return text && strstr(text, what);
}

/* ---- bytes -------------------------------------------------------------- */

static struct machine_process *own_process(struct machine *m)
{
	struct machine_process *spare = NULL;

	for (unsigned int i = 0; i < PROCESSES_MAX; i++) {
		if (m->processes[i].pid && m->processes[i].number == own_number)
			return &m->processes[i];
		if (!m->processes[i].pid && !spare)
			spare = &m->processes[i];
	}
	if (!spare) {
		errno = ENOSPC;
		die("too many processes");
	}
	*spare = (struct machine_process){.pid = getpid(), .number = own_number};
	return spare;
}

static uint64_t free_bytes(const struct machine *m, unsigned int gpu)
{
	uint64_t taken = 0;

	for (unsigned int i = 0; i < PROCESSES_MAX; i++)
		taken += m->processes[i].pid ? m->processes[i].bytes[gpu] : 0;
	return MACHINE_GPU_BYTES - taken;
}

bool machine_take_bytes(unsigned int gpu, uint64_t bytes)
{
	struct machine *m = machine();
	bool fits;

	machine_lock(m);
	forget_dead(m);
	fits = bytes <= free_bytes(m, gpu);
	if (fits)
		own_process(m)->bytes[gpu] += bytes;
	machine_unlock(m);
	return fits;
}

void machine_give_bytes(unsigned int gpu, uint64_t bytes)
{
	struct machine *m = machine();

	machine_lock(m);
	own_process(m)->bytes[gpu] -= bytes;
	machine_unlock(m);
}

uint64_t machine_free_bytes(unsigned int gpu)
{
	struct machine *m = machine();
	uint64_t bytes;

	machine_lock(m);
	forget_dead(m);
	bytes = free_bytes(m, gpu);
	machine_unlock(m);
	return bytes;
}

/* ---- interprocess events ------------------------------------------------ */

uint32_t machine_event_take(void)
{
	struct machine *m = machine();
	uint32_t slot = 0;

	machine_lock(m);
	for (uint32_t i = 0; i < EVENTS_MAX && !slot; i++) {
		if (!m->events[i].taken) {
			m->events[i] = (struct machine_event){.taken = 1};
			slot = i + 1;
		}
	}
	machine_unlock(m);
	return slot;
}

void machine_event_give(uint32_t slot)
{
	struct machine *m = machine();

	machine_lock(m);
	m->events[slot - 1].taken = 0;
	machine_unlock(m);
}

struct machine_event *machine_event(uint32_t slot)
{
	return slot && slot <= EVENTS_MAX ? &machine()->events[slot - 1] : NULL;
}

/* ---- counts ------------------------------------------------------------- */

void machine_count_kernel(void)
{
	struct machine *m = machine();

	machine_lock(m);
	m->work.kernels++;
	machine_unlock(m);
}

void machine_count_copy(uint64_t bytes)
{
	struct machine *m = machine();

	machine_lock(m);
	m->work.copies++;
	m->work.copied_bytes += bytes;
	machine_unlock(m);
}

void machine_count_event(bool is_record)
{
	struct machine *m = machine();

	machine_lock(m);
	m->work.event_records += is_record;
	m->work.event_waits += !is_record;
	machine_unlock(m);
}

void machine_count_stream_wait(void)
{
	struct machine *m = machine();

	machine_lock(m);
	m->work.stream_waits++;
	machine_unlock(m);
}

struct fakecuda_work fakecuda_work(void)
{
	struct machine *m = machine();
	struct fakecuda_work work;

	machine_lock(m);
	work = m->work;
	machine_unlock(m);
	return work;
}
