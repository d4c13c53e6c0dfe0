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
#define RECORD_BYTES (1u << 20)
#define SHOWN 5 /* of what is wrong */

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

static struct ledger_step *step_of(struct ledger_generation *generation, uint64_t step)
{
	if (step > LEDGER_STEPS)
		die("too many steps");
	if (step > generation->newest_step)
		generation->newest_step = step;
	if (!generation->first_step || step < generation->first_step)
		generation->first_step = step;
	return &generation->steps[step];
}

/* Generations between this one and @last, but for numbers that none of the channel had: a daemon
 * was killed before its ring had told anything. */
static uint64_t jumped_over(const struct ledger *ledger, uint64_t last, uint64_t number)
{
	uint64_t between = number - last - 1;
	struct r3ring_reader_stats stats;

	r3ring_reader_get_stats(ledger->reader, &stats);
	return stats.untaken < between ? between - stats.untaken : 0;
}

static struct ledger_generation *generation_of(struct ledger *ledger, uint64_t number)
{
	struct ledger_generation *generation = ledger_newest(ledger);

	if (ledger->count && generation->number == number)
		return generation;
	if (ledger->count == LEDGER_GENERATIONS)
		die("too many generations");
	if (ledger->count && ledger->torn) {
		step_of(generation, generation->newest_step)->torn = true;
		ledger->torn = false;
	}
	if (ledger->count)
		ledger->jumped += jumped_over(ledger, generation->number, number);
	generation = &ledger->generations[ledger->count++];
	generation->number = number;
	ledger->sums = (struct ledger_sums){.wrong = ledger->sums.wrong};
	ledger->passed = 0;
	generation->steps = calloc(LEDGER_STEPS + 1, sizeof(*generation->steps));
	if (!generation->steps)
		die("no memory");
	return generation;
}

/* ---- records ------------------------------------------------------------ */

static uint32_t layer_bit(int32_t layer_id)
{
	return 1u << (uint32_t)(layer_id - ENGINE_FIRST_LAYER);
}

/* Of the steps around a gap of this reader not all need have come. */
static void tear(struct ledger *ledger, struct ledger_generation *generation, uint64_t step)
{
	uint64_t first = generation->newest_step ? generation->newest_step : step;

	if (!ledger->torn || !step)
		return;
	for (uint64_t torn = first; torn <= step; torn++)
		step_of(generation, torn)->torn = true;
	ledger->torn = false;
}

static void show(const struct ledger *ledger, const struct ledger_generation *generation,
		 uint64_t number, const char *what)
{
	const struct ledger_step *step = &generation->steps[number];

	if (ledger->wrong + ledger->twice <= SHOWN)
		fprintf(stderr,
			"ledger: record %" PRIu64 " of generation %" PRIu64 ": step %" PRIu64
			" %s: announced %u, %u rows, complete %u, partial %u, lost %u, layers "
			"%#x%s\n",
			ledger->stats.now.cursor - 1, generation->number, number, what,
			step->announced, step->rows, step->complete, step->partial, step->lost,
			step->layers, step->torn ? ", torn" : "");
}

static void note_wrong(struct ledger *ledger, const struct ledger_generation *generation,
		       uint64_t number, const char *what)
{
	ledger->wrong++;
	show(ledger, generation, number, what);
}

static void check_step(struct ledger *ledger, const struct ledger_generation *generation,
		       uint64_t number)
{
	if (ledger_step_fits(&generation->steps[number]))
		return;
	ledger->twice++;
	show(ledger, generation, number, "has two fates");
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
	if ((head->rows != step->rows && !step->torn) || (step->layers & layer_bit(head->layer_id)))
		note_wrong(ledger, generation, head->step, "has a layer that does not fit");
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
	check_step(ledger, generation, head->step);
	step->rows = head->total_rows;
	if (ledger->rows_of && ledger->rows_of(head->step) != step->rows)
		note_wrong(ledger, generation, head->step, "has other rows");
	for (uint32_t i = 0; i < head->spans; i++)
		note_span(ledger, generation, &record->u.step.spans[i]);
}

static void note_end(struct ledger *ledger, struct ledger_generation *generation,
		     const struct r3ring_record *record)
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
	check_step(ledger, generation, head->step);
}

/* A range of which each step was lost. */
static void note_lost_range(struct ledger *ledger, struct ledger_generation *generation,
			    const struct r3ring_lost_record *lost)
{
	uint64_t rows = 0;

	for (uint64_t number = lost->from_step; number <= lost->to_step; number++) {
		struct ledger_step *step = step_of(generation, number);

		step->lost++;
		check_step(ledger, generation, number);
		rows += ledger->rows_of ? ledger->rows_of(number) : 0;
	}
	if (ledger->rows_of && rows != lost->rows)
		note_wrong(ledger, generation, lost->to_step, "is lost with other rows");
}

static void note_lost(struct ledger *ledger, struct ledger_generation *generation,
		      const struct r3ring_lost_record *lost)
{
	generation->lost_steps[lost->cause] += lost->steps;
	generation->lost_rows[lost->cause] += lost->rows;
	generation->lost_layer_rows[lost->cause] += lost->layer_rows;
	if (!lost->steps)
		return;
	if (lost->layer_rows != lost->rows * ENGINE_LAYERS) {
		fprintf(stderr,
			"ledger: LOST %s, steps %" PRIu64 " to %" PRIu64 " (%" PRIu64 "): %" PRIu64
			" rows, %" PRIu64 " rows x layers\n",
			r3ring_cause_name(lost->cause), lost->from_step, lost->to_step, lost->steps,
			lost->rows, lost->layer_rows);
		note_wrong(ledger, generation, lost->to_step, "is lost with other layers");
	}
	if (lost->to_step - lost->from_step + 1 == lost->steps) {
		note_lost_range(ledger, generation, lost);
		return;
	}
	generation->vague_steps += lost->steps;
	generation->vague_rows += lost->rows;
	step_of(generation, lost->from_step);
	step_of(generation, lost->to_step);
}

static void note_request(struct ledger_generation *generation, const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	if (head->event == R3RING_REQUEST_BEGIN) {
		generation->begun++;
		generation->disordered += head->handle <= generation->newest_begun;
		generation->newest_begun = head->handle;
	}
	generation->aborted += head->reason == R3RING_END_ABORTED;
	generation->ends_unknown += head->reason == R3RING_END_UNKNOWN;
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
		note_end(ledger, generation, record);
		break;
	case R3RING_LOST:
		note_lost(ledger, generation, &record->u.lost);
		break;
	case R3RING_REQUEST:
		note_request(generation, record);
		break;
	case R3RING_CLOSED:
		generation->closed = record->u.closed.reason;
		generation->engine_lived = record->u.closed.engine_lives;
		generation->next = record->u.closed.next_generation;
		break;
	default:
		break;
	}
}

/* ---- sums --------------------------------------------------------------- */

static void take_stats(struct ledger *ledger)
{
	const struct r3ring_cursor_stats *now = &ledger->stats.now;

	r3ring_reader_get_stats(ledger->reader, &ledger->stats);
	ledger->sums.wrong += now->got + now->lost + now->skipped != now->cursor - now->start;
}

/* What came, was lost and was skipped is what the writer says was published. */
static void check_sums(struct ledger *ledger, const struct r3ring_view *view, uint64_t units)
{
	const struct r3ring_cursor_stats *now = &ledger->stats.now;
	struct ledger_sums *sums = &ledger->sums;
	uint64_t passed = now->lost_units + now->skipped_units;

	if (!sums->begun)
		sums->before = view->units - units - passed;
	sums->begun = true;
	sums->units += units;
	if (sums->before + sums->units + passed == view->units)
		return;
	if (sums->wrong++ < SHOWN)
		fprintf(stderr,
			"ledger: record %" PRIu64 " of generation %" PRIu64
			" (type %u, step %" PRIu64 ", flags %#x, %" PRIu64 " units): %" PRIu64
			" units before, %" PRIu64 " came, %" PRIu64 " passed, %" PRIu64
			" published\n",
			view->seq, view->generation, view->type, view->step, view->flags, units,
			sums->before, sums->units, passed, view->units);
}

static void take(struct ledger *ledger, const struct r3ring_view *view)
{
	struct ledger_generation *generation = generation_of(ledger, view->generation);
	struct r3ring_record record;
	uint64_t passed;

	take_stats(ledger);
	ledger->sums.wrong += ledger->jumped != ledger->stats.missed;
	passed = ledger->stats.now.lost + ledger->stats.now.skipped;
	ledger->torn |= passed != ledger->passed;
	ledger->passed = passed;
	generation->passed = passed;
	generation->units = view->units;
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0) {
		ledger->wrong++;
		return;
	}
	check_sums(ledger, view, view->type == R3RING_LAYER ? record.u.layer.head.valid_rows : 0);
	r3ring_requests_feed(ledger->requests, view, &record);
	tear(ledger, generation, view->step);
	if (!(view->flags & R3RING_DESC_REPEATED))
		note(ledger, generation, &record);
}

/* ---- reading ------------------------------------------------------------ */

int ledger_try_open(struct ledger *ledger, const struct r3ring_reader_options *options,
		    struct r3ring_error *err)
{
	int r;

	memset(ledger, 0, sizeof(*ledger));
	ledger->requests = r3ring_requests_create();
	if (!ledger->requests)
		die("no memory");
	r = r3ring_reader_open(&ledger->reader, options, err);
	if (r < 0) {
		r3ring_requests_destroy(ledger->requests);
		ledger->requests = NULL;
		return r;
	}
	r3ring_reader_get_stats(ledger->reader, &ledger->stats);
	ledger->torn = ledger->stats.now.start > 1;
	return 0;
}

void ledger_open(struct ledger *ledger, const char *dir, const char *channel)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = dir,
		.channel = channel,
	};
	struct r3ring_error err;

	if (ledger_try_open(ledger, &options, &err) < 0)
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

		if (r == 1) {
			take(ledger, &view);
		} else if (r == -EOVERFLOW) {
			ledger->gaps++;
			take_stats(ledger);
			r3ring_requests_gap(ledger->requests);
		} else if (r == -EBADMSG || r == -EMSGSIZE) {
			die(r3ring_reader_error(ledger->reader));
		} else {
			r3ring_reader_wait(ledger->reader, 20);
		}
		if (now_ms() > deadline)
			return false;
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
