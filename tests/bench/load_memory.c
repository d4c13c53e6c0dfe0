/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a channel's load, and of a request's signature. */
#include <errno.h>

#include <r3ring/load.h>
#include <r3ring/signature.h>

#include "tests/bench/bench.h"
#include "tests/bench/load_records.h"

#define STEPS 400u
#define STEP_NS 20000000ull

static int feed_plain(int (*feed)(void *, const struct r3ring_view *, const struct r3ring_record *),
		      void *to, struct r3ring_record *records, uint32_t count, uint64_t *seq)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < count; i++) {
		const struct r3ring_view view = {
			.seq = ++*seq, .generation = 1, .type = records[i].type};

		rc = feed(to, &view, &records[i]);
	}
	return rc;
}

static int feed_load(void *load, const struct r3ring_view *view, const struct r3ring_record *record)
{
	return r3ring_load_feed(load, 0, view, record);
}

static int feed_signatures(void *signatures, const struct r3ring_view *view,
			   const struct r3ring_record *record)
{
	return r3ring_signatures_feed(signatures, 0, view, record);
}

/* Steps of maps that change, until the windows have all that they are to have. */
static int fill_windows(struct r3ring_load *load, const struct made_shape *shape, uint64_t *seq)
{
	int rc = 0;

	for (uint64_t step = 1; !rc && step <= STEPS; step++) {
		struct r3ring_record records[] = {made_step(shape, step), made_step_end(step)};

		records[0].u.step.head.eplb_epoch = step / 16;
		records[1].u.step_end.head.publish_ns = step * STEP_NS;
		rc = feed_plain(feed_load, load, records, 2, seq);
	}
	return rc;
}

static int channel_memory(const struct bench_row *row, double *value)
{
	const struct made_shape *shape = made_shape_of(row);
	struct r3ring_layer_entry layers[128];
	struct r3ring_record schema = made_schema(shape, layers);
	struct r3ring_load *load = NULL;
	struct r3ring_load_stats stats;
	uint64_t seq = 0;
	int rc = r3ring_load_create(&load, NULL, NULL);

	rc = rc ? rc : r3ring_load_channel(load, "bench/0");
	rc = rc ? rc : feed_plain(feed_load, load, &schema, 1, &seq);
	rc = rc ? rc : fill_windows(load, shape, &seq);
	if (!rc) {
		r3ring_load_get_stats(load, &stats);
		*value = (double)stats.bytes / (1 << 20);
	}
	r3ring_load_destroy(load);
	return rc;
}

/* A request with a row in its prompt and one behind it: both phases are there. */
static int feed_request(struct r3ring_signatures *signatures, struct made_shape shape)
{
	struct r3ring_layer_entry layers[128];
	struct r3ring_span span = {.request = 1, .rows = 2};
	uint16_t ids[2 * 16] = {0};
	struct r3ring_record begin[3] = {made_schema(&shape, layers), {.type = R3RING_REQUEST}};
	struct r3ring_record end = made_step_end(1);
	uint64_t seq = 0;
	int rc;

	shape.rows = 2;
	begin[1].u.request.head = (struct r3ring_request_record){
		.handle = 1, .prompt_tokens = 1, .event = R3RING_REQUEST_BEGIN, .id_len = 1};
	begin[1].u.request.id = "a";
	begin[1].u.request.session = begin[1].u.request.turn = begin[1].u.request.sample = "";
	begin[2] = made_step(&shape, 1);
	begin[2].u.step.head.spans = 1;
	begin[2].u.step.spans = &span;
	rc = feed_plain(feed_signatures, signatures, begin, 3, &seq);
	for (uint32_t layer = 0; !rc && layer < shape.layers; layer++) {
		struct r3ring_record record = made_layer(&shape, 1, layer, ids);

		rc = feed_plain(feed_signatures, signatures, &record, 1, &seq);
	}
	return rc ? rc : feed_plain(feed_signatures, signatures, &end, 1, &seq);
}

static int request_memory(const struct bench_row *row, double *value)
{
	struct r3ring_signatures *signatures = NULL;
	struct r3ring_signatures_stats stats;
	int rc = r3ring_signatures_create(&signatures, NULL, NULL);

	rc = rc ? rc : r3ring_signatures_channel(signatures, "bench/0");
	rc = rc ? rc : feed_request(signatures, *made_shape_of(row));
	if (!rc) {
		r3ring_signatures_get_stats(signatures, &stats);
		rc = stats.rows == 2 ? 0 : -EBADMSG;
		*value = (double)stats.bytes / 1024;
	}
	r3ring_signatures_destroy(signatures);
	return rc;
}

static const struct bench_row rows[] = {
	{.name = "memory of the load, a Kimi-K3 channel, its windows full",
	 .unit = "MiB",
	 .measured = channel_memory,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 12,
	 .size = 92},
	{.name = "memory of a signature, a Kimi-K3 request",
	 .unit = "KiB",
	 .measured = request_memory,
	 .kind = BENCH_VALUE_AT_MOST,
	 .target = 330,
	 .size = 92},
};

const struct bench_group bench_load_memory = {"load", rows, sizeof(rows) / sizeof(*rows)};
