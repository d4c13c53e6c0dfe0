/* SPDX-License-Identifier: Apache-2.0 */
/* The account of every step of a channel. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/engine.h"
#include "tests/support/ledger.h"

#define DEADLINE_MS 20000
#define ALL_LAYERS ((1u << ENGINE_LAYERS) - 1)
#define RECORD_BYTES (1u << 20)
#define SHOWN 5 /* steps that are not right */

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void die(const char *what)
{
	fprintf(stderr, "ledger: %s\n", what);
	exit(1);
}

/* ---- places ------------------------------------------------------------- */

struct ledger_generation *ledger_newest(const struct ledger *ledger)
{
	static struct ledger_generation none;

	if (!ledger->count)
		return &none;
	return (struct ledger_generation *)(uintptr_t)&ledger->generations[ledger->count - 1];
}

static struct ledger_generation *generation_of(struct ledger *ledger, uint64_t number)
{
	struct ledger_generation *generation = ledger_newest(ledger);

	if (ledger->count && generation->number == number)
		return generation;
	if (ledger->count == LEDGER_GENERATIONS)
		die("too many generations");
	generation = &ledger->generations[ledger->count++];
	generation->number = number;
	generation->steps = calloc(LEDGER_STEPS + 1, sizeof(*generation->steps));
	if (!generation->steps)
		die("no memory");
	return generation;
}

static struct ledger_step *step_of(struct ledger_generation *generation, uint64_t step)
{
	if (step > LEDGER_STEPS)
		die("too many steps");
	if (step > generation->newest_step)
		generation->newest_step = step;
	return &generation->steps[step];
}

/* ---- records ------------------------------------------------------------ */

static uint32_t layer_bit(int32_t layer_id)
{
	return 1u << (uint32_t)(layer_id - ENGINE_FIRST_LAYER);
}

static void note_layer(struct ledger *ledger, struct ledger_generation *generation,
		       const struct r3ring_layer_record *head, const uint16_t *ids)
{
	struct ledger_step *step = step_of(generation, head->step);

	for (uint32_t row = 0; row < head->rows; row++) {
		for (uint32_t k = 0; k < head->top_k; k++)
			ledger->wrong +=
				ids[row * head->top_k + k] !=
				engine_id(head->step, head->layer_index, head->row + row, k);
	}
	/* The steps of these tests have one record a layer. */
	ledger->wrong += head->rows != step->rows || (step->layers & layer_bit(head->layer_id));
	step->layers |= layer_bit(head->layer_id);
}

static void note_span(struct ledger *ledger, struct ledger_generation *generation,
		      const struct r3ring_span *span)
{
	const char *id = r3ring_requests_id(ledger->requests, span->request);
	uint64_t number, place;

	if (!id)
		return;
	generation->attributed++;
	/* "g2-17": the 17th request of an engine whose generation is the second. */
	if (sscanf(id, "g%" SCNu64 "-%" SCNu64, &number, &place) != 2)
		return;
	generation->foreign += number != generation->number;
	generation->newest_attributed = place;
}

static void note_step(struct ledger *ledger, struct ledger_generation *generation,
		      const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	struct ledger_step *step = step_of(generation, head->step);

	step->announced++;
	step->rows = head->total_rows;
	for (uint32_t i = 0; i < head->spans; i++)
		note_span(ledger, generation, &record->u.step.spans[i]);
}

static void note_end(struct ledger_generation *generation, const struct r3ring_record *record)
{
	const struct r3ring_step_end_record *head = &record->u.step_end.head;
	struct ledger_step *step = step_of(generation, head->step);
	bool complete = head->status == R3RING_STEP_COMPLETE;

	step->complete += complete;
	step->partial += !complete;
	generation->complete += complete;
	generation->partial += !complete;
	for (uint32_t i = 0; i < head->missing; i++) {
		const struct r3ring_missing_layer *missing = &record->u.step_end.missing[i];

		step->missing |= layer_bit(missing->layer_id);
		generation->missing_layers[missing->cause]++;
	}
}

static void note_lost(struct ledger_generation *generation, const struct r3ring_lost_record *lost)
{
	generation->lost_steps[lost->cause] += lost->steps;
	generation->lost_rows[lost->cause] += lost->rows;
	generation->lost_layer_rows[lost->cause] += lost->layer_rows;
	if (!lost->steps)
		return;
	if (lost->to_step - lost->from_step + 1 != lost->steps) {
		generation->vague_steps += lost->steps;
		step_of(generation, lost->to_step);
		return;
	}
	for (uint64_t step = lost->from_step; step <= lost->to_step; step++)
		step_of(generation, step)->lost++;
}

static void note_request(struct ledger_generation *generation, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	if (head->event == R3RING_REQUEST_BEGIN) {
		generation->begun++;
		generation->disordered += head->handle < generation->begun;
	}
	generation->aborted += head->reason == R3RING_END_ABORTED;
}

static void note(struct ledger *ledger, struct ledger_generation *generation,
		 const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_LAYER:
		note_layer(ledger, generation, &record->u.layer.head, record->u.layer.ids);
		break;
	case R3RING_STEP:
		note_step(ledger, generation, record);
		break;
	case R3RING_STEP_END:
		note_end(generation, record);
		break;
	case R3RING_LOST:
		note_lost(generation, &record->u.lost);
		break;
	case R3RING_REQUEST:
		note_request(generation, record);
		break;
	case R3RING_CLOSED:
		generation->closed = record->u.closed.reason;
		generation->next = record->u.closed.next_generation;
		break;
	default:
		break;
	}
}

static void take(struct ledger *ledger, const struct r3ring_view *view)
{
	struct ledger_generation *generation = generation_of(ledger, view->generation);
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0) {
		ledger->wrong++;
		return;
	}
	r3ring_requests_feed(ledger->requests, view, &record);
	if (!(view->flags & R3RING_DESC_REPEATED))
		note(ledger, generation, &record);
}

/* ---- reading ------------------------------------------------------------ */

int ledger_try_open(struct ledger *ledger, const char *dir, const char *channel,
		    struct r3ring_error *err)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.channel = channel,
	};
	int r;

	memset(ledger, 0, sizeof(*ledger));
	ledger->requests = r3ring_requests_create();
	if (!ledger->requests)
		die("no memory");
	r = r3ring_reader_open(&ledger->reader, &options, err);
	if (r < 0) {
		r3ring_requests_destroy(ledger->requests);
		ledger->requests = NULL;
	}
	return r;
}

void ledger_open(struct ledger *ledger, const char *dir, const char *channel)
{
	struct r3ring_error err;

	if (ledger_try_open(ledger, dir, channel, &err) < 0)
		die(err.text);
}

void ledger_close(struct ledger *ledger)
{
	r3ring_reader_close(ledger->reader);
	r3ring_requests_destroy(ledger->requests);
	for (unsigned int i = 0; i < ledger->count; i++)
		free(ledger->generations[i].steps);
	memset(ledger, 0, sizeof(*ledger));
}

bool ledger_read_until(struct ledger *ledger,
		       bool (*done)(const struct ledger *ledger, uint64_t argument),
		       uint64_t argument)
{
	static _Alignas(64) uint8_t buffer[RECORD_BYTES];
	long long deadline = now_ms() + DEADLINE_MS;
	struct r3ring_view view;

	while (!done(ledger, argument)) {
		int r = r3ring_reader_read(ledger->reader, &view, buffer, sizeof(buffer));

		if (now_ms() > deadline)
			return false;
		if (r == 1) {
			take(ledger, &view);
		} else if (r == -EOVERFLOW) {
			ledger->gaps++;
			r3ring_requests_gap(ledger->requests);
		} else if (r == -EBADMSG || r == -EMSGSIZE) {
			die(r3ring_reader_error(ledger->reader));
		} else {
			r3ring_reader_wait(ledger->reader, 20);
		}
	}
	return true;
}

bool ledger_has_closed(const struct ledger *ledger, uint64_t reason)
{
	return ledger_newest(ledger)->closed == reason;
}

bool ledger_has_ended_step(const struct ledger *ledger, uint64_t step)
{
	const struct ledger_generation *generation = ledger_newest(ledger);

	return generation->newest_step >= step &&
	       (generation->steps[step].complete || generation->steps[step].partial);
}

bool ledger_has_generations(const struct ledger *ledger, uint64_t count)
{
	return ledger->count >= count;
}

/* ---- the account -------------------------------------------------------- */

static bool has_one_fate(const struct ledger_step *step)
{
	if (step->announced > 1 || step->complete + step->partial > 1 || step->lost > 1)
		return false;
	if (step->complete && (step->lost || step->layers != ALL_LAYERS))
		return false;
	if (step->partial &&
	    (step->layers & step->missing || (step->layers | step->missing) != ALL_LAYERS))
		return false;
	return true;
}

static bool is_right(const struct ledger *ledger, uint64_t number)
{
	unsigned int complete = 0;
	bool told = false;

	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_step *step = &ledger->generations[i].steps[number];

		if (!has_one_fate(step))
			return false;
		complete += step->complete;
		told |= step->complete || step->partial || step->lost;
	}
	return told && complete <= 1;
}

static void show(const struct ledger *ledger, uint64_t number)
{
	for (unsigned int i = 0; i < ledger->count; i++) {
		const struct ledger_step *step = &ledger->generations[i].steps[number];

		fprintf(stderr,
			"ledger: step %" PRIu64 " in generation %" PRIu64 ": announced %u, "
			"complete %u, partial %u, lost %u, layers %#x, missing %#x\n",
			number, ledger->generations[i].number, step->announced, step->complete,
			step->partial, step->lost, step->layers, step->missing);
	}
}

uint64_t ledger_unaccounted(const struct ledger *ledger, uint64_t steps)
{
	uint64_t count = 0;

	for (uint64_t step = 1; step <= steps && step <= LEDGER_STEPS; step++) {
		if (is_right(ledger, step))
			continue;
		if (count++ < SHOWN)
			show(ledger, step);
	}
	return count;
}

static void show_step(const char *what, uint64_t number, const struct ledger_step *step)
{
	fprintf(stderr,
		"ledger: step %" PRIu64 " %s: announced %u, complete %u, partial %u, lost %u, "
		"layers %#x, missing %#x\n",
		number, what, step->announced, step->complete, step->partial, step->lost,
		step->layers, step->missing);
}

uint64_t ledger_double(const struct ledger_generation *generation)
{
	uint64_t count = 0;

	for (uint64_t number = 1; number <= generation->newest_step; number++) {
		const struct ledger_step *step = &generation->steps[number];

		if (has_one_fate(step))
			continue;
		if (count++ < SHOWN)
			show_step("has two fates", number, step);
	}
	return count;
}

uint64_t ledger_untold(const struct ledger_generation *generation, uint64_t steps)
{
	uint64_t untold = 0;

	for (uint64_t number = 1; number <= steps && number <= LEDGER_STEPS; number++) {
		const struct ledger_step *step = &generation->steps[number];

		if (step->complete || step->partial || step->lost)
			continue;
		if (untold++ < SHOWN && !generation->vague_steps)
			show_step("has no fate", number, step);
	}
	return untold > generation->vague_steps ? untold - generation->vague_steps
						: generation->vague_steps - untold;
}
