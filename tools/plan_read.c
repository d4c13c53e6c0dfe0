/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: the load of what a ring still has, or of an archive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/instance.h>

#include "archive/reader.h"
#include "channel/clock.h"
#include "tools/plan.h"

#define ALIGNMENT 64
#define WAIT_MS 100
/* Where an engine is faster than this reads, the end is never seen. */
#define CATCH_UP_NS UINT64_C(5000000000)

/*
 * A channel that has ended counts as well: what it ran is what there is to plan from.
 * @record: NULL where a recorder left it out.
 */
static int feed(struct r3ring_load *load, const char *channel, const struct r3ring_view *view,
		const struct r3ring_record *record, struct r3ring_error *err)
{
	int index = r3ring_load_channel(load, channel);
	int r = index;

	if (r >= 0 && !record)
		r = r3ring_load_skip(load, (uint32_t)index, view);
	else if (r >= 0 && record->type != R3RING_CLOSED)
		r = r3ring_load_feed(load, (uint32_t)index, view, record);
	if (r == -EPROTO)
		return r3ring_error_set(err, r,
					"%s: another model, or other sizes, than the channels "
					"before; a plan is for one model",
					channel);
	return r < 0 ? r3ring_error_set(err, r, "%s: %s", channel, strerror(-r)) : 0;
}

/* ---- an instance ---------------------------------------------------------- */

struct reading {
	struct r3ring_instance *instance;
	struct r3ring_load *load;
	struct r3ring_error *err;
	void *buffer;
	size_t capacity;
};

static int grow(struct reading *reading)
{
	size_t need = r3ring_instance_max_record(reading->instance);

	if (need <= reading->capacity)
		return 0;
	free(reading->buffer);
	reading->capacity = (need + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	reading->buffer = aligned_alloc(ALIGNMENT, reading->capacity);
	return reading->buffer ? 0 : r3ring_error_set(reading->err, -ENOMEM, "no memory");
}

static int take(struct reading *reading, const struct r3ring_view *view)
{
	struct r3ring_record record;
	const char *channel = r3ring_instance_channel(reading->instance,
						      r3ring_instance_current(reading->instance));

	/* What cannot be decoded is noticed by its number, as what was not read is. */
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0)
		return 0;
	return feed(reading->load, channel, view, &record, reading->err);
}

/* Returns 1 (go on), 0 (nothing more just now), or a negative errno. */
static int read_one(struct reading *reading)
{
	struct r3ring_view view;
	int r = grow(reading);

	if (r < 0)
		return r;
	r = r3ring_instance_read(reading->instance, &view, reading->buffer, reading->capacity);
	if (r == -EOVERFLOW || r == -EBADMSG || r == -EMSGSIZE)
		return 1; /* the load sees the numbers that are missing */
	if (r == -EPIPE)
		return 0;
	if (r < 0)
		return r3ring_error_set(reading->err, r, "%s",
					r3ring_instance_error(reading->instance));
	if (r == 0)
		return 0;
	r = take(reading, &view);
	return r < 0 ? r : 1;
}

static int read_until(struct reading *reading, uint64_t watch_ns)
{
	uint64_t end = clock_now_ns() + (watch_ns ? watch_ns : CATCH_UP_NS);
	int r;

	for (;;) {
		r = read_one(reading);
		if (r < 0 || (r == 0 && !watch_ns) || clock_now_ns() >= end)
			return r < 0 ? r : 0;
		if (r == 0)
			r3ring_instance_wait(reading->instance, WAIT_MS);
	}
}

int plan_read_instance(const struct plan_options *options, struct r3ring_load *load,
		       struct r3ring_error *err)
{
	const struct r3ring_instance_options open = {
		.size = sizeof(open),
		.instance = options->instance,
		.from = R3RING_FROM_OLDEST,
		.stay = !options->watch_ns,
		.label = "plan",
	};
	struct reading reading = {.load = load, .err = err};
	int r = r3ring_instance_open(&reading.instance, &open, err);

	if (r == 0)
		r = read_until(&reading, options->watch_ns);
	free(reading.buffer);
	r3ring_instance_close(reading.instance);
	return r;
}

/* ---- an archive -------------------------------------------------------------- */

static int take_item(struct r3ring_load *load, const struct archive_item *item,
		     struct r3ring_error *err)
{
	struct r3ring_record record;

	if (item->kind == ARCHIVE_SKIPPED)
		return feed(load, item->name, &item->view, NULL, err);
	if (item->kind != ARCHIVE_RECORD || !item->name ||
	    r3ring_record_decode(&record, item->view.type, item->view.data, item->view.len, NULL) <
		    0)
		return 0;
	return feed(load, item->name, &item->view, &record, err);
}

int plan_read_archive(const struct plan_options *options, struct r3ring_load *load,
		      uint64_t *damaged, struct r3ring_error *err)
{
	struct archive_reader *reader;
	struct archive_item item;
	struct r3ring_error said = {0};
	int r = archive_reader_open(&reader, options->archive, err);

	if (r < 0)
		return r;
	while ((r = archive_reader_next(reader, &item, &said)) != 0) {
		*damaged += r == -EBADMSG;
		if (r == 1)
			r = take_item(load, &item, err);
		else if (r != -EBADMSG)
			r = r3ring_error_set(err, r, "%s", said.text);
		if (r < 0 && r != -EBADMSG)
			break;
	}
	archive_reader_close(reader);
	return r;
}
