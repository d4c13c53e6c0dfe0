/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer/channel_losses.h"

#include <string.h>

/* What is known now is the ground of what comes; @base is filled in by the caller. */
static void begin_anew(struct channel_losses *losses)
{
	memset(losses->told_steps, 0, sizeof(losses->told_steps));
	memset(losses->told_rows, 0, sizeof(losses->told_rows));
	losses->gaps = losses->gaps_counted = 0;
}

void channel_losses_generation(struct channel_losses *losses, uint64_t number, bool whole)
{
	begin_anew(losses);
	/* Of a daemon that counts anew. */
	if (losses->end.generation == number)
		losses->end = (struct open_end){0};
	if (losses->passed.generation == number)
		losses->passed = (struct open_end){0};
	losses->generation = losses->former = number;
	memset(losses->base_steps, 0, sizeof(losses->base_steps));
	memset(losses->base_rows, 0, sizeof(losses->base_rows));
	losses->based = whole;
}

void channel_losses_gap(struct channel_losses *losses, bool counts)
{
	losses->gaps++;
	losses->gaps_counted += counts;
	losses->account.unproved += counts; /* up to the keyframe behind it */
}

void channel_losses_late(struct channel_losses *losses)
{
	losses->based = false;
}

static void take_lost(struct channel_losses *losses, const struct r3ring_lost_record *lost,
		      bool counts)
{
	losses->told_steps[lost->cause] += lost->steps;
	losses->told_rows[lost->cause] += lost->rows;
	if (!counts)
		return;
	losses->account.steps[lost->cause] += lost->steps;
	losses->account.rows[lost->cause] += lost->rows;
}

/* What totals rose by beyond what was told. */
static void prove(uint64_t *sum, uint64_t *unheard, uint64_t base, uint64_t told, uint64_t said)
{
	if (said <= base || said - base <= told)
		return;
	*sum += said - base - told;
	*unheard += said - base - told;
}

static void take_keyframe(struct channel_losses *losses, const struct r3ring_totals *totals,
			  bool counts)
{
	struct lost_account *account = &losses->account;

	if (losses->gaps)
		counts = losses->gaps_counted > 0;
	for (uint32_t cause = 0; losses->based && counts && cause < R3RING_CAUSE_COUNT; cause++) {
		prove(&account->steps[cause], &account->unheard_steps[cause],
		      losses->base_steps[cause], losses->told_steps[cause],
		      totals->lost_steps[cause]);
		prove(&account->rows[cause], &account->unheard_rows[cause],
		      losses->base_rows[cause], losses->told_rows[cause], totals->lost_rows[cause]);
	}
	if (losses->based)
		account->unproved -= losses->gaps_counted;
	begin_anew(losses);
	memcpy(losses->base_steps, totals->lost_steps, sizeof(losses->base_steps));
	memcpy(losses->base_rows, totals->lost_rows, sizeof(losses->base_rows));
	losses->based = true;
}

/* A generation of whose engine that died before its welcome nothing came goes on from the
 * same one as the next: both are behind what is open. */
static void follow(struct channel_losses *losses, struct open_end *end)
{
	if (!end->generation || end->generation == losses->generation ||
	    (losses->former != end->generation && losses->former != end->former))
		return;
	losses->account.unfollowed -= end->counts;
	*end = (struct open_end){0};
}

static void take_schema(struct channel_losses *losses, const struct r3ring_schema_record *schema)
{
	if (!schema->continues || schema->continues >= losses->generation)
		return;
	losses->former = losses->generation - schema->continues;
	follow(losses, &losses->end);
	follow(losses, &losses->passed);
}

/* What of the generation before is open still was another engine's. */
static void pass_end(struct channel_losses *losses)
{
	if (losses->end.generation && losses->end.generation != losses->generation)
		losses->passed = losses->end;
	losses->end = (struct open_end){0};
}

/* Once a generation, whatever says so, and how often. */
static void leave_open(struct channel_losses *losses, bool counts)
{
	if (losses->end.generation && losses->end.generation == losses->generation)
		return;
	pass_end(losses);
	losses->end = (struct open_end){losses->generation, losses->former, counts, false};
	losses->account.unfollowed += counts;
}

void channel_losses_unfollowed(struct channel_losses *losses, bool counts)
{
	const bool told = losses->end.generation == losses->generation;

	leave_open(losses, counts);
	losses->end.of_reader |= !told;
}

void channel_losses_more(struct channel_losses *losses)
{
	if (!losses->end.of_reader || losses->end.generation != losses->generation)
		return;
	losses->account.unfollowed -= losses->end.counts;
	losses->end = (struct open_end){0};
}

static void take_closed(struct channel_losses *losses, const struct r3ring_closed_record *closed,
			bool counts)
{
	if (closed->reason == R3RING_CLOSED_CRASHED || closed->engine_lives)
		leave_open(losses, counts);
	else
		pass_end(losses);
}

/* The engine did not come back. */
static bool says_untold(const struct r3ring_lost_record *lost)
{
	return lost->cause == R3RING_CAUSE_DAEMON_RESTART && !lost->steps && lost->spans_unknown;
}

bool channel_losses_takes(uint16_t type)
{
	return type == R3RING_LOST || type == R3RING_KEYFRAME || type == R3RING_SCHEMA ||
	       type == R3RING_CLOSED;
}

void channel_losses_record(struct channel_losses *losses, const struct r3ring_record *record,
			   bool counts)
{
	switch (record->type) {
	case R3RING_LOST:
		take_lost(losses, &record->u.lost, counts);
		if (says_untold(&record->u.lost))
			leave_open(losses, counts);
		break;
	case R3RING_KEYFRAME:
		take_keyframe(losses, &record->u.keyframe.totals, counts);
		break;
	case R3RING_SCHEMA:
		take_schema(losses, &record->u.schema.head);
		break;
	case R3RING_CLOSED:
		take_closed(losses, &record->u.closed, counts);
		break;
	default:
		break;
	}
}

void lost_account_add(struct lost_account *to, const struct lost_account *from)
{
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		to->steps[cause] += from->steps[cause];
		to->rows[cause] += from->rows[cause];
		to->unheard_steps[cause] += from->unheard_steps[cause];
		to->unheard_rows[cause] += from->unheard_rows[cause];
	}
	to->unproved += from->unproved;
	to->unfollowed += from->unfollowed;
}

static uint64_t sum_of(const uint64_t counts[R3RING_CAUSE_COUNT])
{
	uint64_t sum = 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		sum += counts[cause];
	return sum;
}

uint64_t lost_account_steps(const struct lost_account *account)
{
	return sum_of(account->steps);
}

uint64_t lost_account_unheard(const struct lost_account *account)
{
	return sum_of(account->unheard_steps);
}

bool lost_account_more(const struct lost_account *account)
{
	return account->unproved || account->unfollowed;
}
