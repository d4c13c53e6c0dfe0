/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the host device: order, asynchrony, events. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <r3ring/host_stream.h>

static struct r3ring_host_stream *stream_create(void)
{
	struct r3ring_host_stream *stream = NULL;

	cr_assert_eq(r3ring_host_stream_create(&stream), 0);
	return stream;
}

static void enqueue(struct r3ring_host_stream *stream, r3ring_host_work_fn work, void *arg)
{
	cr_assert_eq(r3ring_host_stream_enqueue(stream, work, &arg, sizeof(arg)), 0);
}

/* A work's only argument is a pointer, copied into the queue. */
static void *pointer(void *args)
{
	void *arg;

	memcpy(&arg, args, sizeof(arg));
	return arg;
}

static void wait_for(void *args)
{
	while (sem_wait(pointer(args)) < 0)
		;
}

/* Waits for a semaphore, but not for ever. */
static void expect_posted(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	cr_assert_eq(sem_timedwait(sem, &until), 0, "nothing came within 20 s");
}

/* ---- order ------------------------------------------------------------ */

struct order {
	uint32_t next, errors;
};

struct numbered {
	struct order *order;
	uint32_t number;
};

static void check_order(void *args)
{
	struct numbered *work = args;

	work->order->errors += work->order->next != work->number;
	work->order->next++;
}

Test(stream, work_runs_in_the_order_it_was_enqueued)
{
	struct r3ring_host_stream *stream = stream_create();
	struct order order = {0};

	for (uint32_t i = 0; i < 5000; i++) { /* more than the queue holds */
		struct numbered work = {&order, i};

		cr_assert_eq(r3ring_host_stream_enqueue(stream, check_order, &work, sizeof(work)),
			     0);
	}
	r3ring_host_stream_synchronize(stream);
	cr_assert_eq(order.next, 5000);
	cr_assert_eq(order.errors, 0);
	r3ring_host_stream_destroy(stream);
}

static void add_one(void *args)
{
	r3ring_fetch_add_u32(pointer(args), 1);
}

Test(stream, enqueueing_does_not_wait_for_the_work)
{
	struct r3ring_host_stream *stream = stream_create();
	uint32_t count = 0;
	sem_t gate;

	sem_init(&gate, 0, 0);
	enqueue(stream, wait_for, &gate);
	for (uint32_t i = 0; i < 1000; i++)
		enqueue(stream, add_one, &count);
	cr_assert_eq(r3ring_load_acquire_u32(&count), 0);
	sem_post(&gate);
	r3ring_host_stream_synchronize(stream);
	cr_assert_eq(count, 1000);
	r3ring_host_stream_destroy(stream);
}

static void *enqueue_many(void *arg)
{
	void **with = arg;

	for (uint32_t i = 0; i < 2000; i++)
		r3ring_host_stream_enqueue(with[0], add_one, &with[1], sizeof(with[1]));
	return NULL;
}

Test(stream, two_threads_may_enqueue)
{
	struct r3ring_host_stream *stream = stream_create();
	uint32_t count = 0;
	void *with[2] = {stream, &count};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, enqueue_many, with), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	r3ring_host_stream_synchronize(stream);
	cr_assert_eq(count, 4000);
	r3ring_host_stream_destroy(stream);
}

Test(stream, destroy_first_runs_what_is_enqueued)
{
	struct r3ring_host_stream *stream = stream_create();
	uint32_t count = 0;
	sem_t gate;

	sem_init(&gate, 0, 0);
	enqueue(stream, wait_for, &gate);
	for (uint32_t i = 0; i < 100; i++)
		enqueue(stream, add_one, &count);
	sem_post(&gate);
	r3ring_host_stream_destroy(stream);
	cr_assert_eq(count, 100);
}

static void note_thread(void *args)
{
	*(pthread_t *)pointer(args) = pthread_self();
}

Test(stream, the_inline_stream_runs_at_once_in_the_calling_thread)
{
	pthread_t ran_in = 0, self = pthread_self();

	enqueue(NULL, note_thread, &ran_in);
	cr_assert(pthread_equal(ran_in, self));
	r3ring_host_stream_synchronize(NULL);
	r3ring_host_stream_destroy(NULL);
}

static void copy_out(void *args)
{
	uint8_t *out = pointer(args);

	memcpy(out, (uint8_t *)args + sizeof(out), 100);
}

Test(stream, arguments_are_copied_when_work_is_enqueued)
{
	struct r3ring_host_stream *stream = stream_create();
	uint8_t args[sizeof(void *) + 100], out[100];
	uint8_t *to = out;
	sem_t gate;

	sem_init(&gate, 0, 0);
	enqueue(stream, wait_for, &gate);
	memcpy(args, &to, sizeof(to));
	memset(args + sizeof(to), 7, 100);
	cr_assert_eq(r3ring_host_stream_enqueue(stream, copy_out, args, sizeof(args)), 0);
	memset(args, 9, sizeof(args));
	sem_post(&gate);
	r3ring_host_stream_synchronize(stream);
	for (size_t i = 0; i < 100; i++)
		cr_assert_eq(out[i], 7);
	r3ring_host_stream_destroy(stream);
}

Test(stream, too_many_arguments_are_refused)
{
	uint8_t args[R3RING_HOST_WORK_ARGS_MAX + 1] = {0};

	cr_assert_eq(r3ring_host_stream_enqueue(NULL, add_one, args, sizeof(args)), -EMSGSIZE);
}

/* ---- the worker ------------------------------------------------------- */

struct worker_facts {
	sigset_t blocked;
	pid_t tid;
};

static void note_facts(void *args)
{
	struct worker_facts *facts = pointer(args);

	pthread_sigmask(SIG_SETMASK, NULL, &facts->blocked);
	facts->tid = gettid();
}

Test(stream, its_thread_blocks_all_signals_and_the_callers_stay_as_they_were)
{
	struct r3ring_host_stream *stream = stream_create();
	struct worker_facts facts = {0};
	sigset_t mine;

	enqueue(stream, note_facts, &facts);
	r3ring_host_stream_synchronize(stream);
	for (int number = 1; number < 32; number++)
		if (number != SIGKILL && number != SIGSTOP)
			cr_assert_eq(sigismember(&facts.blocked, number), 1, "signal %d", number);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	cr_assert_eq(sigismember(&mine, SIGTERM), 0);
	r3ring_host_stream_destroy(stream);
}

static char thread_state(pid_t tid)
{
	char path[64], name[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%*d (%63[^)]) %c", name, &state), 2);
	fclose(file);
	return state;
}

Test(stream, an_idle_stream_sleeps)
{
	struct r3ring_host_stream *stream = stream_create();
	struct worker_facts facts = {0};
	int looks = 0;

	enqueue(stream, note_facts, &facts);
	r3ring_host_stream_synchronize(stream);
	while (thread_state(facts.tid) != 'S') {
		cr_assert_lt(looks++, 100000, "the worker never fell asleep");
		sched_yield();
	}
	r3ring_host_stream_destroy(stream);
}

/* ---- events ----------------------------------------------------------- */

struct flagged {
	uint32_t *flag;
	uint32_t value;
	uint32_t *errors;
	sem_t *seen;
};

static void set_flag_late(void *args)
{
	struct flagged *work = args;

	for (int i = 0; i < 20; i++)
		sched_yield();
	r3ring_store_release_u32(work->flag, work->value);
}

static void check_flag(void *args)
{
	struct flagged *work = args;

	if (r3ring_load_acquire_u32(work->flag) < work->value)
		r3ring_fetch_add_u32(work->errors, 1);
	if (work->seen)
		sem_post(work->seen);
}

Test(stream, work_behind_a_wait_runs_after_the_work_before_the_record)
{
	struct r3ring_host_stream *first = stream_create(), *second = stream_create();
	uint32_t flag = 0, errors = 0;
	struct r3ring_host_event *event;

	cr_assert_eq(r3ring_host_event_create(&event), 0);
	for (uint32_t round = 1; round <= 300; round++) {
		struct flagged work = {&flag, round, &errors, NULL};

		r3ring_host_stream_enqueue(first, set_flag_late, &work, sizeof(work));
		cr_assert_eq(r3ring_host_event_record(event, first), 0);
		cr_assert_eq(r3ring_host_event_wait(event, second), 0);
		r3ring_host_stream_enqueue(second, check_flag, &work, sizeof(work));
	}
	r3ring_host_stream_synchronize(second);
	cr_assert_eq(errors, 0);
	r3ring_host_event_destroy(event);
	r3ring_host_stream_destroy(first);
	r3ring_host_stream_destroy(second);
}

Test(stream, a_later_record_does_not_fulfil_an_earlier_wait)
{
	struct r3ring_host_stream *first = stream_create(), *second = stream_create();
	struct r3ring_host_stream *idle = stream_create();
	uint32_t flag = 0, errors = 0;
	struct r3ring_host_event *event;
	sem_t gate, seen;
	struct flagged work = {&flag, 1, &errors, &seen};

	sem_init(&gate, 0, 0);
	sem_init(&seen, 0, 0);
	cr_assert_eq(r3ring_host_event_create(&event), 0);
	enqueue(first, wait_for, &gate);
	r3ring_host_stream_enqueue(first, set_flag_late, &work, sizeof(work));
	r3ring_host_event_record(event, first);
	r3ring_host_event_wait(event, second);
	r3ring_host_stream_enqueue(second, check_flag, &work, sizeof(work));
	r3ring_host_event_record(event, idle);
	r3ring_host_event_wait(event, NULL); /* the idle stream's record is done */
	cr_assert_eq(sem_trywait(&seen), -1);
	sem_post(&gate);
	expect_posted(&seen);
	cr_assert_eq(errors, 0);
	r3ring_host_event_destroy(event);
	r3ring_host_stream_destroy(first);
	r3ring_host_stream_destroy(second);
	r3ring_host_stream_destroy(idle);
}

Test(stream, an_event_that_was_never_recorded_is_done)
{
	struct r3ring_host_stream *stream = stream_create();
	struct r3ring_host_event *event;

	cr_assert_eq(r3ring_host_event_create(&event), 0);
	cr_assert_eq(r3ring_host_event_wait(event, stream), 0);
	cr_assert_eq(r3ring_host_event_wait(event, NULL), 0);
	r3ring_host_stream_synchronize(stream);
	r3ring_host_event_destroy(event);
	r3ring_host_stream_destroy(stream);
}

Test(stream, an_event_may_outlive_the_stream_it_was_recorded_on)
{
	struct r3ring_host_stream *gone = stream_create(), *stream = stream_create();
	struct r3ring_host_event *event;
	uint32_t count = 0;

	cr_assert_eq(r3ring_host_event_create(&event), 0);
	enqueue(gone, add_one, &count);
	r3ring_host_event_record(event, gone);
	r3ring_host_stream_destroy(gone);
	r3ring_host_event_wait(event, stream);
	r3ring_host_stream_synchronize(stream);
	cr_assert_eq(count, 1);
	r3ring_host_event_destroy(event);
	r3ring_host_stream_destroy(stream);
}

Test(stream, an_event_may_be_destroyed_while_it_is_waited_for)
{
	struct r3ring_host_stream *first = stream_create(), *second = stream_create();
	struct r3ring_host_event *event;
	uint32_t count = 0;
	sem_t gate;

	sem_init(&gate, 0, 0);
	cr_assert_eq(r3ring_host_event_create(&event), 0);
	enqueue(first, wait_for, &gate);
	r3ring_host_event_record(event, first);
	r3ring_host_event_wait(event, second);
	r3ring_host_event_destroy(event);
	enqueue(second, add_one, &count);
	sem_post(&gate);
	r3ring_host_stream_synchronize(second);
	cr_assert_eq(count, 1);
	r3ring_host_stream_destroy(first);
	r3ring_host_stream_destroy(second);
}
