/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's drain, made and ended: the producer's pages and buffer are taken over and
 * checked, the ring is begun or gone on with, the thread started and joined. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/drain.h"
#include "capture_daemon/remains.h"

#define PAGES_BYTES_MAX (512ull << 20)
#define PARTS_MAX 1024u /* in flight; the ring's own bound may be lower */

/* The pages say that all up to their newest step was told: also the gap of which the ring,
 * that has only a part of it, could not know. */
static void pass_gap(struct drain *drain)
{
	if (drain->said.gap_records)
		drain->gap_passed = drain->last_step - drain->told_step;
	drain->told_step = drain->last_step;
	drain->said.gap_records = 0;
}

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
		if (drain->told_step > drain->last_step)
			drain->told_ahead = drain->told_step;
		if (drain->told_step < drain->last_step)
			pass_gap(drain);
		drain->last_step = drain->told_step;
		drain_take_untold(drain);
	}
	return 0;
}

static int buffer_attach(struct drain *drain, const struct drain_options *options,
			 struct r3ring_error *err)
{
	const struct r3ring_hello_producer_message *hello = options->hello;
	int r;

	drain->ops = device_for_buffer((enum r3ring_buffer_kind)hello->buffer_kind, err);
	if (!drain->ops)
		return err->code;
	r = drain->ops->open(&drain->device, &options->device, err);
	if (r < 0) {
		drain->ops = NULL;
		return r;
	}
	return drain->ops->buffer_import(drain->device, hello, options->buffer_fd, &drain->buffer,
					 err);
}

int drain_alloc_layers(struct drain *drain)
{
	uint32_t layers = drain->geometry.layers;

	drain->layer_state = calloc(layers, sizeof(*drain->layer_state));
	drain->layer_comes = calloc(layers, sizeof(*drain->layer_comes));
	drain->missing = calloc(layers, sizeof(*drain->missing));
	return drain->layer_state && drain->layer_comes && drain->missing ? 0 : -ENOMEM;
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
	drain->imported_bytes = options->imported_bytes;
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
	r = buffer_attach(drain, options, err);
	if (r == 0 && drain_alloc_layers(drain) < 0)
		r = r3ring_error_set(err, -ENOMEM, "no memory for %u layers", schema->layers);
	return r;
}

int drain_prepare(struct drain *drain, const struct r3ring_segment *segment,
		  struct r3ring_error *err)
{
	size_t bytes;
	void *arena = r3ring_segment_arena(segment, &bytes);
	int r = drain->ops->arena_register(drain->device, arena, bytes, err);

	if (r == 0)
		drain->arena = arena;
	return r;
}

int drain_take_place(struct drain *drain, uint64_t told_step, struct stall_policy policy,
		     struct r3ring_error *err)
{
	drain->told_step = told_step;
	drain->policy = policy;
	return lanes_attach(drain, err);
}

int drain_serve_idle(struct drain *drain, struct stall_policy policy)
{
	int r;

	drain->policy = policy;
	r = publisher_serve(&drain->publisher, &drain->policy, drain_carry_on, drain);
	if (r < 0)
		return r;
	stall_end(&drain->publisher.stall);
	drain_keep(drain);
	return 0;
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

int drain_launch(struct drain *drain, struct r3ring_error *err)
{
	drain->parts_max = PARTS_MAX;
	drain->parts = calloc(drain->parts_max, sizeof(*drain->parts));
	if (!drain->parts)
		return r3ring_error_set(err, -ENOMEM, "no memory for %u records", drain->parts_max);
	drain_update_report(drain);
	return thread_start(drain, err);
}

/*
 * Of a step that was told in the ring before only this one says so, until its entry is
 * given back: what was left for it is removed. Likewise of a gap behind it how many causes
 * were told: by as many LOST of no steps.
 */
static int say_told_ahead(struct drain *drain)
{
	static const struct r3ring_lost_record told_before = {.cause = R3RING_CAUSE_QUEUE_FULL};
	struct publisher *publisher = &drain->publisher;
	uint64_t told = drain->untold_steps ? drain->untold_from - 1 : drain->told_step;
	int r;

	if (!drain->told_ahead && !drain->said.gap_records)
		return 0;
	publisher->newest_step = told;
	r = publish_keyframe(publisher);
	for (uint32_t i = 0; r == 0 && i < drain->said.gap_records; i++) {
		r = publish_lost(publisher, &told_before);
		R3RING_TEST_POINT("drain gap carried");
	}
	return r;
}

int drain_begin(struct drain *drain, struct r3ring_segment *segment,
		const struct r3ring_record *schema, struct live *carried, struct r3ring_error *err)
{
	int r;

	/* What is noted there is of another ring. */
	r3ring_store_release_u64(&drain->pages.words->said_entry, 0);
	r = publisher_open(&drain->publisher, segment, schema);
	if (r == 0)
		r = publisher_serve(&drain->publisher, &drain->policy, drain_carry_on, drain);
	if (r == 0)
		r = publish_schema(&drain->publisher, R3RING_DESC_BOUNDARY);
	if (r == 0)
		r = publish_carried(&drain->publisher, carried);
	if (r == 0)
		r = say_told_ahead(drain);
	if (r < 0)
		return r3ring_error_set(err, r, "the ring refuses the schema: %s", strerror(-r));
	/* Lossless readers read the generation before to its end, and then come here. */
	if (r3ring_segment_get_header(segment)->generation > 1) {
		drain_keep_from_the_first(drain);
		drain_hold(drain);
	}
	return 0;
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
	int r = drain_prepare(drain, publisher->segment, err);

	if (r < 0)
		return r;
	stall_resume(&publisher->stall, &drain->policy, drain_carry_on, drain);
	drain_hold(drain);
	find_said_entry(drain);
	drain->goes_on = true;
	return 0;
}

static void device_release(struct drain *drain)
{
	if (!drain->ops)
		return;
	if (drain->arena)
		drain->ops->arena_unregister(drain->device, drain->arena);
	drain->arena = NULL;
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
	drain_work_off_late(drain);
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
	free(drain->layer_comes);
	free(drain->missing);
	free(drain->parts);
	free(drain->said.layer_parts);
	if (drain->done_fd >= 0)
		close(drain->done_fd);
	pthread_mutex_destroy(&drain->report_lock);
	*drain = (struct drain){.done_fd = -1};
}
