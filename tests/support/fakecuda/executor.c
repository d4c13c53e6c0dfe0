/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: one thread that does what is enqueued, a little at a time, in an
 * order that is legal and otherwise up to chance. Work of one lane is done in order;
 * of several lanes, and of the blocks of a kernel, anything may come first.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/fakecuda/runtime.h"

#define TURNS_OF_A_MOOD 64u
#define LOOK_AGAIN_NS 200000 /* for another process's event */
#define CHUNKS_MAX 8u

enum mood {
	MOOD_ANY,    /* each lane as likely */
	MOOD_ONE,    /* one lane as long as it can */
	MOOD_STARVE, /* one lane only when no other can */
	MOOD_COUNT
};

struct lane lanes[LANES_MAX];

static pthread_t executor;
static bool is_running, is_paused;
static enum mood mood;
static unsigned int turns, favourite;

/* ---- lanes and stamps --------------------------------------------------- */

void stamp_join(struct stamp *stamp, const struct stamp *other)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		if (stamp->at[i] < other->at[i])
			stamp->at[i] = other->at[i];
	}
}

bool stamp_is_done(const struct stamp *stamp)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		if (lanes[i].done < stamp->at[i])
			return false;
	}
	return true;
}

cudaError_t stamp_wait(const struct stamp *stamp)
{
	while (!stamp_is_done(stamp) && !sticky_get())
		pthread_cond_wait(&fake_changed, &fake_lock);
	return sticky_get();
}

cudaError_t lanes_wait(void)
{
	struct stamp all;
	cudaError_t error;

	for (unsigned int i = 0; i < LANES_MAX; i++)
		all.at[i] = lanes[i].issued;
	error = stamp_wait(&all);
	stamp_join(&host_stamp, &all);
	return error;
}

unsigned int lane_take(void)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		if (!lanes[i].taken && !lanes[i].head) {
			lanes[i].taken = true;
			return i;
		}
	}
	abort();
}

struct work *work_new(enum work_kind kind, const struct place *place)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		abort();
	work->kind = kind;
	work->place = *place;
	return work;
}

void work_free(struct work *work)
{
	if (work->kind == WORK_KERNEL)
		kernel_work_free(work->u.kernel);
	free(work);
}

static void *executor_main(void *unused);

static void executor_start(void)
{
	sigset_t all, before;

	if (is_running)
		return;
	is_running = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&executor, NULL, executor_main, NULL))
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setname_np(executor, "fakecuda");
	pthread_detach(executor);
}

void lane_enqueue(unsigned int number, struct work *work, const struct stamp *after)
{
	struct lane *lane = &lanes[number];

	work->lane = number;
	work->number = ++lane->issued;
	work->after = *after;
	work->next = NULL;
	if (lane->head)
		lane->tail->next = work;
	else
		lane->head = work;
	lane->tail = work;
	executor_start();
	pthread_cond_broadcast(&fake_changed);
}

void fakecuda_pause(bool paused)
{
	pthread_mutex_lock(&fake_lock);
	is_paused = paused;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

/* ---- copies ------------------------------------------------------------- */

/* Host memory by its host address, device memory by its own. */
static uint8_t *copy_end(struct work *work, const void *address, size_t bytes, bool write)
{
	struct region *region = region_of_host(address);

	if (!region && !region_of_device(address))
		return (uint8_t *)(uintptr_t)address; /* pageable: that was found before */
	if (!region)
		return work_use(work, address, bytes, write, false);
	work->ranges[work->range_count++] =
		(struct range){.region = region,
			       .from = (uint64_t)((const uint8_t *)address - region->memory),
			       .to = (uint64_t)((const uint8_t *)address - region->memory) + bytes,
			       .write = write};
	return (uint8_t *)(uintptr_t)address;
}

static void accesses_begin(struct work *work)
{
	char other[64];

	for (unsigned int i = 0; i < work->range_count; i++) {
		const struct range *range = &work->ranges[i];
		struct machine_access access = {.identity = range->region->identity,
						.from = range->from,
						.to = range->to,
						.write = range->write};
		pid_t pid;

		if (range->region->kind == REGION_PINNED ||
		    range->region->kind == REGION_REGISTERED)
			continue;
		memcpy(access.what, "a copy", 7);
		pid = machine_access_begin(&access, &work->accesses[i], other);
		if (pid)
			findings_add(&work->place,
				     "copies memory that %s of process %d uses at the same time",
				     other, pid);
	}
}

static bool copy_start(struct work *work)
{
	struct copy_work *copy = &work->u.copy;

	copy->target = copy_end(work, copy->to, copy->bytes, true);
	copy->source = copy_end(work, copy->from, copy->bytes, false);
	if (!copy->target || !copy->source)
		return false;
	copy->chunks = copy->bytes < 4096 ? 1 + executor_chance(2)
					  : 1 + executor_chance(CHUNKS_MAX);
	copy->step = executor_chance(copy->chunks);
	accesses_begin(work);
	return true;
}

/* In any order of the chunks that begins at @step and goes round. */
static bool copy_some(struct work *work)
{
	struct copy_work *copy = &work->u.copy;
	size_t at = (copy->chunk + copy->step) % copy->chunks;
	size_t from = copy->bytes * at / copy->chunks;
	size_t to = copy->bytes * (at + 1) / copy->chunks;

	memcpy(copy->target + from, copy->source + from, to - from);
	if (++copy->chunk < copy->chunks)
		return false;
	machine_count_copy(copy->bytes);
	return true;
}

/* ---- doing work --------------------------------------------------------- */

static bool event_has_come(const struct event_work *event)
{
	/* Pairs with the release of the process that recorded it. */
	return r3ring_load_acquire_u64(&machine_event(event->slot)->completed) >= event->number;
}

static bool hangs(void)
{
	cudaError_t unused;

	return failure_due("hang", &unused);
}

/* With the lock. False when it cannot be done. */
static bool work_start(struct work *work)
{
	cudaError_t error;

	work->started = true;
	if (failure_due("execute", &error)) {
		sticky_set(error);
		return false;
	}
	if (work->kind == WORK_KERNEL && !kernel_work_start(work))
		return false;
	if (work->kind == WORK_COPY && !copy_start(work))
		return false;
	order_check(work);
	return true;
}

/* Without the lock; true when it is done. */
static bool work_some(struct work *work)
{
	switch (work->kind) {
	case WORK_KERNEL:
		return kernel_work_some(work);
	case WORK_COPY:
		return copy_some(work);
	case WORK_HOST:
		work->u.host.fn(work->u.host.data);
		return true;
	case WORK_EVENT_RECORD:
		machine_count_event(true);
		/* Pairs with the acquire of a process that waits for it. */
		r3ring_store_release_u64(&machine_event(work->u.event.slot)->completed,
					 work->u.event.number);
		return true;
	case WORK_EVENT_WAIT:
		break;
	}
	return true;
}

static void work_done(struct work *work)
{
	struct lane *lane = &lanes[work->lane];

	for (unsigned int i = 0; i < work->range_count; i++)
		machine_access_end(work->accesses[i]);
	lane->head = work->next;
	lane->done = work->number;
	work_free(work);
	pthread_cond_broadcast(&fake_changed);
}

/* ---- choosing ----------------------------------------------------------- */

static bool can_run(const struct work *work)
{
	if (work->started)
		return true;
	if (!stamp_is_done(&work->after))
		return false;
	return work->kind != WORK_EVENT_WAIT || event_has_come(&work->u.event);
}

static void change_mood(struct work *const *can, unsigned int count)
{
	if (turns++ % TURNS_OF_A_MOOD)
		return;
	mood = (enum mood)executor_chance(MOOD_COUNT);
	favourite = can[executor_chance(count)]->lane;
}

/* NULL: nothing can run. @waits: something waits for another process. */
static struct work *choose(bool *waits)
{
	struct work *can[LANES_MAX];
	unsigned int count = 0;

	*waits = false;
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		struct work *head = lanes[i].head;

		if (!head)
			continue;
		if (can_run(head))
			can[count++] = head;
		else
			*waits = *waits || head->kind == WORK_EVENT_WAIT;
	}
	if (!count)
		return NULL;
	change_mood(can, count);
	for (unsigned int i = 0; i < count && count > 1; i++) {
		if (can[i]->lane != favourite)
			continue;
		if (mood == MOOD_ONE)
			return can[i];
		if (mood == MOOD_STARVE)
			can[i] = can[--count];
	}
	return can[executor_chance(count)];
}

/* A GPU that has failed does nothing any more. */
static void drop_all(void)
{
	for (unsigned int i = 0; i < LANES_MAX; i++) {
		while (lanes[i].head)
			work_done(lanes[i].head);
	}
}

static void wait_for_work(bool waits)
{
	struct timespec until;

	if (!waits) {
		pthread_cond_wait(&fake_changed, &fake_lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_AGAIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&fake_changed, &fake_lock, &until);
}

static void *executor_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&fake_lock);
	for (;;) {
		struct work *work;
		bool waits = false, done;

		if (sticky_get())
			drop_all();
		work = is_paused ? NULL : choose(&waits);
		if (!work) {
			wait_for_work(waits);
			continue;
		}
		if (!work->started && hangs()) {
			is_paused = true;
			continue;
		}
		if (!work->started && !work_start(work)) {
			work_done(work);
			continue;
		}
		pthread_mutex_unlock(&fake_lock);
		done = work_some(work);
		pthread_mutex_lock(&fake_lock);
		if (done)
			work_done(work);
	}
	return NULL;
}
