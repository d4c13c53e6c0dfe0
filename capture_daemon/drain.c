/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's drain thread: entries in the order of their submission. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain.h"
#include "capture_daemon/log.h"
#include "capture_daemon/remains.h"

#define PAGES_BYTES_MAX (512ull << 20)
#define PARTS_MAX 1024u /* in flight; the ring's own bound may be lower */
#define SLEEP_NS NS_PER_SECOND
#define HEARTBEAT_NS (NS_PER_SECOND / 2) /* readers worry after three seconds */

/* ---- state shared with the control plane -------------------------------- */

enum drain_producer drain_producer_state(const struct drain *drain)
{
	/* Pairs with the release in drain_producer_gone(). */
	return (enum drain_producer)r3ring_load_acquire_u32(&drain->producer);
}

static bool drain_stopping(const struct drain *drain)
{
	/* Pairs with the release in drain_stop(). */
	return r3ring_load_acquire_u32(&drain->stopping);
}

bool drain_expired(const struct drain *drain)
{
	return drain_stopping(drain) && clock_now_ns() >= drain->stop_deadline_ns;
}

void drain_producer_gone(struct drain *drain, enum drain_producer how)
{
	if (!drain->running)
		return;
	/* Pairs with the acquire in drain_producer_state(). */
	r3ring_store_release_u32(&drain->producer, how);
	pages_wake(&drain->pages);
}

bool drain_closing(const struct drain *drain)
{
	/* Pairs with the release of the producer that closes: all is submitted. */
	return drain->pages.base && r3ring_load_acquire_u32(&drain->pages.words->closing) == 1;
}

void drain_stop(struct drain *drain, uint64_t deadline_ns)
{
	if (!drain->running)
		return;
	drain->stop_deadline_ns = deadline_ns;
	/* Pairs with the acquire in drain_stopping(). */
	r3ring_store_release_u32(&drain->stopping, 1);
	pages_wake(&drain->pages);
}

void drain_check(const struct drain *drain, int result, const char *what)
{
	if (result < 0)
		log_error("channel %s: %s was not published: %s", drain->label, what,
			  strerror(-result));
}

void drain_update_report(struct drain *drain)
{
	struct publisher *publisher = &drain->publisher;

	pthread_mutex_lock(&drain->report_lock);
	drain->report.totals = publisher->totals;
	drain->report.bytes = drain->report_bytes;
	drain->report.tail_seq = r3ring_writer_next_seq(publisher->writer) - 1;
	drain->report.bound_since_ns = publisher->schema.bound_since_ns;
	pthread_mutex_unlock(&drain->report_lock);
}

void drain_get_report(struct drain *drain, struct drain_report *report)
{
	pthread_mutex_lock(&drain->report_lock);
	*report = drain->report;
	pthread_mutex_unlock(&drain->report_lock);
}

bool drain_layer_bound(struct drain *drain, uint32_t index)
{
	bool bound;

	pthread_mutex_lock(&drain->report_lock);
	bound = drain->publisher.layers[index].bound;
	pthread_mutex_unlock(&drain->report_lock);
	return bound;
}

/* ---- entries ------------------------------------------------------------ */

/* Copied before it is decoded: the producer may go on writing there. */
static int payload_copy(struct drain *drain, const uint8_t *payload, uint32_t bytes)
{
	if (bytes > drain->payload_bytes) {
		uint8_t *larger = realloc(drain->payload, bytes);

		if (!larger)
			return -ENOMEM;
		drain->payload = larger;
		drain->payload_bytes = bytes;
	}
	memcpy(drain->payload, payload, bytes);
	return 0;
}

/*
 * Before anything of a side entry is published: should this daemon die before the
 * entry is given back, the next one knows where its records begin, and tells the
 * rest. Of the entry that was at work in another's death the beginning is told.
 */
static void note_saying(struct drain *drain, uint64_t entry)
{
	struct pages_words *words = drain->pages.words;

	if (entry == drain->said_entry) {
		drain->publisher.said = drain->said_records;
		drain->said_entry = 0;
		return;
	}
	r3ring_store_relaxed_u64(&words->said_seq, r3ring_writer_next_seq(drain->publisher.writer));
	R3RING_TEST_POINT("drain said seq");
	/* Release, for the order of the stores in which a kill leaves them; the next
	 * daemon starts when this one is gone. */
	r3ring_store_release_u64(&words->said_entry, entry);
	R3RING_TEST_POINT("drain said entry");
}

static int handle_side(struct drain *drain, const struct lane_entry *entry,
		       struct r3ring_error *err)
{
	int r;

	note_saying(drain, entry->number);
	r = drain_record(drain, drain->payload, entry->payload_bytes, entry->record_type, err);
	R3RING_TEST_POINT("drain side told");
	drain->publisher.said = 0;
	return r;
}

static int handle_entry(struct drain *drain, struct lane_reader *lane,
			const struct lane_entry *entry, const uint8_t *payload,
			struct r3ring_error *err)
{
	bool step = entry->type == LANE_STEP;
	int r;

	if (step != (lane == &drain->steps))
		return r3ring_error_set(err, -EBADMSG, "entry %" PRIu64 " is in the wrong lane",
					entry->number);
	r = payload_copy(drain, payload, entry->payload_bytes);
	if (r < 0)
		return r3ring_error_set(err, r, "no memory for an entry of %u bytes",
					entry->payload_bytes);
	if (step)
		r = drain_step(drain, drain->payload, entry->payload_bytes, err);
	else
		r = handle_side(drain, entry, err);
	if (r == 0) {
		R3RING_TEST_POINT("drain entry told");
		lane_consume(lane, entry);
	}
	return r < 0 ? r : 0;
}

/* ---- the thread --------------------------------------------------------- */

/* For pages_sleep(): whether there is still nothing to do. */
static bool drain_idle(void *ctx)
{
	struct drain *drain = ctx;
	struct pages_words *words = drain->pages.words;

	return (drain->step_waits ||
		r3ring_load_relaxed_u64(&words->step_head.position) == drain->steps.position) &&
	       r3ring_load_relaxed_u64(&words->side_head.position) == drain->side.position &&
	       !drain_stopping(drain) && drain_producer_state(drain) == DRAIN_PRODUCER_ALIVE &&
	       !gate_has_new(drain->publisher.stall.gate);
}

static void drain_admit_readers(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	gate_admit(drain->publisher.stall.gate, &front);
}

void drain_nudge(struct drain *drain)
{
	if (drain->running)
		pages_wake(&drain->pages);
	else
		drain_admit_readers(drain);
}

/* While the writer waits for a reader. */
static bool drain_carry_on(void *ctx)
{
	struct drain *drain = ctx;

	drain_heartbeat(drain);
	return !drain_expired(drain);
}

/* Of the ring of a dead daemon nothing is overwritten until its lossless readers are
 * back, or the stall limit is over. */
static void hold(struct drain *drain)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	drain->held = gate_hold(drain->publisher.stall.gate, &front);
	drain->hold_until_ns = clock_now_ns() + drain->policy.limit_ns;
}

static void let_go(struct drain *drain, uint64_t now)
{
	if (drain->held < 0 || now < drain->hold_until_ns)
		return;
	gate_let_go(drain->publisher.stall.gate, drain->held);
	drain->held = -1;
}

void drain_heartbeat(struct drain *drain)
{
	uint64_t now = clock_now_ns();

	let_go(drain, now);
	if (now - drain->heartbeat_ns < HEARTBEAT_NS)
		return;
	drain->heartbeat_ns = now;
	r3ring_writer_heartbeat(drain->publisher.writer, now);
	r3ring_store_relaxed_u64(&drain->pages.words->heartbeat_ns, now);
}

static void drain_pause(struct drain *drain)
{
	drain_say_untold(drain, false);
	if (keyframe_due(&drain->publisher))
		drain_check(drain, publish_keyframe(&drain->publisher), "KEYFRAME");
	r3ring_writer_wake(drain->publisher.writer);
	pages_sleep(&drain->pages, drain_idle, drain, SLEEP_NS);
}

/* Takes entries until the producer is gone or the daemon ends. */
static int drain_run(struct drain *drain, struct r3ring_error *err)
{
	while (!drain_expired(drain)) {
		enum drain_producer producer = drain_producer_state(drain);
		bool stopping = drain_stopping(drain);
		struct lane_reader *lane = NULL;
		struct lane_entry entry;
		int error = 0;
		bool complete = producer != DRAIN_PRODUCER_ALIVE;
		const uint8_t *payload =
			lane_next(&drain->steps, &drain->side, complete, &lane, &entry, &error);

		drain_heartbeat(drain);
		drain_admit_readers(drain);
		if (error)
			return r3ring_error_set(err, error, "the submission queue is corrupt");
		if (!payload && (complete || stopping))
			return 0;
		if (!payload) {
			drain->step_waits = lane == &drain->steps;
			drain_pause(drain);
			continue;
		}
		error = handle_entry(drain, lane, &entry, payload, err);
		if (error < 0)
			return error;
	}
	return 0;
}

static void drain_fail(struct drain *drain, const struct r3ring_error *err)
{
	log_error("channel %s: producer cut off: %s", drain->label, err->text);
	pthread_mutex_lock(&drain->report_lock);
	drain->report.failed = true;
	memcpy(drain->report.failure, err->text, sizeof(drain->report.failure));
	pthread_mutex_unlock(&drain->report_lock);
}

/* By the thread, since it may have to wait for a reader. */
static void say_restart(struct drain *drain)
{
	const struct r3ring_lost_record lost = {.cause = R3RING_CAUSE_DAEMON_RESTART};
	struct publisher *publisher = &drain->publisher;

	if (!drain->goes_on)
		return;
	drain_check(drain, publish_lost(publisher, &lost), "LOST");
	R3RING_TEST_POINT("drain resumed");
	if (drain->said.step.step)
		publisher->keyframe_owed = true;
	else
		drain_check(drain, publish_keyframe(publisher), "KEYFRAME");
	r3ring_writer_wake(publisher->writer);
}

static void *drain_main(void *arg)
{
	struct drain *drain = arg;
	struct r3ring_error err = {0};
	const uint64_t one = 1;
	enum drain_producer producer;

	prctl(PR_SET_NAME, "r3ring-drain");
	prctl(PR_SET_TIMERSLACK, 1ul);
	drain_heartbeat(drain);
	say_restart(drain);
	if (drain_run(drain, &err) < 0) {
		drain_fail(drain, &err);
		producer = DRAIN_PRODUCER_DIED;
	} else {
		producer = drain_producer_state(drain);
	}
	drain_say_untold(drain, true);
	if (producer != DRAIN_PRODUCER_ALIVE)
		drain_say_gone(drain, producer);
	r3ring_writer_wake(drain->publisher.writer);
	drain_update_report(drain);
	if (write(drain->done_fd, &one, sizeof(one)) < 0)
		log_error("channel %s: eventfd: %s", drain->label, strerror(errno));
	return NULL;
}

/* ---- beginning and end -------------------------------------------------- */

static int lanes_attach(struct drain *drain, struct r3ring_error *err)
{
	struct pages *pages = &drain->pages;
	struct pages_words *words = pages->words;
	int r = lane_reader_init(&drain->steps, pages->step_lane, pages->step_lane_bytes,
				 &words->step_head, &words->step_tail);

	if (r == 0)
		r = lane_reader_init(&drain->side, pages->side_lane, pages->side_lane_bytes,
				     &words->side_head, &words->side_tail);
	if (r < 0)
		return r3ring_error_set(err, r, "the submission queue is corrupt");
	if (drain->resumed) {
		drain->last_step = r3ring_load_relaxed_u64(&words->taken_step);
		drain->rows_seen = r3ring_load_relaxed_u64(&words->taken_rows);
		/* All that was taken had been told; what was told may not yet be taken. */
		if (drain->told_step < drain->last_step)
			drain->told_step = drain->last_step;
		drain->last_step = drain->told_step;
	}
	return 0;
}

static int buffer_attach(struct drain *drain, const struct drain_options *options,
			 struct r3ring_error *err)
{
	const struct r3ring_hello_producer_message *hello = options->hello;
	int r;

	drain->ops = device_for_buffer((enum r3ring_buffer_kind)hello->buffer_kind);
	if (!drain->ops)
		return r3ring_error_set(err, -ENODEV,
					"this r3ringd cannot import a buffer of kind %u",
					hello->buffer_kind);
	r = drain->ops->open(&drain->device, err);
	if (r < 0) {
		drain->ops = NULL;
		return r;
	}
	return drain->ops->buffer_import(drain->device, hello, options->buffer_fd, &drain->buffer,
					 err);
}

static int work_alloc(struct drain *drain)
{
	uint32_t layers = drain->geometry.layers;

	drain->layer_state = calloc(layers, sizeof(*drain->layer_state));
	drain->missing = calloc(layers, sizeof(*drain->missing));
	return drain->layer_state && drain->missing ? 0 : -ENOMEM;
}

void drain_init(struct drain *drain, const char *label)
{
	*drain = (struct drain){.label = label, .done_fd = -1, .held = -1};
	pthread_mutex_init(&drain->report_lock, NULL);
}

int drain_attach(struct drain *drain, const struct drain_options *options,
		 const struct r3ring_schema_record *schema, struct r3ring_error *err)
{
	int r;

	drain->resumed = options->hello->reconnect == 1;
	drain->told_step = options->told_step;
	drain->imported_bytes = options->imported_bytes;
	drain->policy = options->policy;
	drain->geometry = (struct extent_geometry){
		.layers = schema->layers,
		.top_k = schema->top_k,
		.experts = schema->experts,
		.rows_per_record = schema->rows_per_record,
		.captures_rows = schema->captures_rows,
	};
	r = pages_attach(&drain->pages, options->pages_fd, PAGES_BYTES_MAX, err);
	if (r < 0)
		return r;
	if (drain->pages.bytes != options->hello->pages_bytes)
		return r3ring_error_set(err, -EBADMSG,
					"hello says %" PRIu64 " bytes of pages, there are %zu",
					options->hello->pages_bytes, drain->pages.bytes);
	if (drain->pages.layers != schema->layers)
		return r3ring_error_set(err, -EBADMSG, "pages for %u layers, schema with %u",
					drain->pages.layers, schema->layers);
	r = lanes_attach(drain, err);
	if (r == 0)
		r = buffer_attach(drain, options, err);
	if (r == 0 && work_alloc(drain) < 0)
		r = r3ring_error_set(err, -ENOMEM, "no memory for %u layers", schema->layers);
	return r;
}

int drain_serve_idle(struct drain *drain, struct stall_policy policy)
{
	int r;

	drain->policy = policy;
	r = publisher_serve(&drain->publisher, &drain->policy, drain_carry_on, drain);
	if (r == 0)
		stall_end(&drain->publisher.stall);
	return r;
}

static int thread_start(struct drain *drain, struct r3ring_error *err)
{
	int r;

	drain->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (drain->done_fd < 0)
		return r3ring_error_set(err, -errno, "eventfd: %s", strerror(errno));
	r = pthread_create(&drain->thread, NULL, drain_main, drain);
	if (r)
		return r3ring_error_set(err, -r, "drain thread: %s", strerror(r));
	drain->running = true;
	return 0;
}

/* Copies go into the ring from here on, by the thread. */
static int work_start(struct drain *drain, struct r3ring_error *err)
{
	drain->parts_max = PARTS_MAX;
	drain->parts = calloc(drain->parts_max, sizeof(*drain->parts));
	if (!drain->parts)
		return r3ring_error_set(err, -ENOMEM, "no memory for %u records", drain->parts_max);
	drain_update_report(drain);
	return thread_start(drain, err);
}

static int arena_register(struct drain *drain, const struct r3ring_segment *segment,
			  struct r3ring_error *err)
{
	size_t bytes;
	void *arena = r3ring_segment_arena(segment, &bytes);

	return drain->ops->arena_register(drain->device, arena, bytes, err);
}

int drain_start(struct drain *drain, struct r3ring_segment *segment,
		const struct r3ring_record *schema, struct live *carried, struct r3ring_error *err)
{
	int r = arena_register(drain, segment, err);

	if (r < 0)
		return r;
	/* What is noted there is of another ring. */
	r3ring_store_release_u64(&drain->pages.words->said_entry, 0);
	r = publisher_open(&drain->publisher, segment, schema);
	if (r == 0)
		r = publisher_serve(&drain->publisher, &drain->policy, drain_carry_on, drain);
	if (r == 0)
		r = publish_schema(&drain->publisher, R3RING_DESC_BOUNDARY);
	if (r == 0 && carried)
		r = publish_carried(&drain->publisher, carried);
	if (r < 0)
		return r3ring_error_set(err, r, "the ring refuses the schema: %s", strerror(-r));
	return work_start(drain, err);
}

/* What was said of the side entry that comes next. */
static void find_said_entry(struct drain *drain)
{
	struct pages_words *words = drain->pages.words;
	uint64_t entry = r3ring_load_relaxed_u64(&words->said_entry);

	if (!entry)
		return;
	drain->said_records = remains_count_said(drain->publisher.segment,
						 r3ring_load_relaxed_u64(&words->said_seq));
	drain->said_entry = entry;
}

int drain_resume(struct drain *drain, struct r3ring_error *err)
{
	struct publisher *publisher = &drain->publisher;
	int r = arena_register(drain, publisher->segment, err);

	if (r < 0)
		return r;
	stall_resume(&publisher->stall, &drain->policy, drain_carry_on, drain);
	hold(drain);
	find_said_entry(drain);
	drain->goes_on = true;
	return work_start(drain, err);
}

static void device_release(struct drain *drain)
{
	size_t bytes;

	if (!drain->ops)
		return;
	if (drain->publisher.segment)
		drain->ops->arena_unregister(
			drain->device, r3ring_segment_arena(drain->publisher.segment, &bytes));
	if (drain->buffer.base)
		drain->ops->buffer_unimport(drain->device, &drain->buffer);
	drain->ops->close(drain->device);
	drain->ops = NULL;
}

void drain_join(struct drain *drain)
{
	if (drain->running)
		pthread_join(drain->thread, NULL);
	drain->running = false;
	stall_end(&drain->publisher.stall);
	device_release(drain);
	pages_release(&drain->pages);
}

void drain_close(struct drain *drain)
{
	drain_join(drain);
	publisher_close(&drain->publisher);
	free(drain->payload);
	free(drain->layer_state);
	free(drain->missing);
	free(drain->parts);
	free(drain->said.layer_parts);
	if (drain->done_fd >= 0)
		close(drain->done_fd);
	pthread_mutex_destroy(&drain->report_lock);
	*drain = (struct drain){.done_fd = -1};
}
