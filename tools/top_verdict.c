/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a frame: whether anything is lost, and which layer is worst. Where several
 * things are wrong, the first of these is said: no daemon, LOSING, OLD, UNEVEN. */
#include <inttypes.h>
#include <string.h>

#include "tools/quantity.h"
#include "tools/top_frame.h"

/* "3.2 %", "31 %", "< 0.1 %" */
static const char *share_text(char text[16], uint64_t part, uint64_t whole)
{
	double share = part < whole ? 100.0 * (double)part / (double)whole : 100;

	if (share < 0.1)
		snprintf(text, 16, "< 0.1 %%");
	else
		snprintf(text, 16, "%.*f %%", share < 9.95, share);
	return text;
}

/* ---- losses ---------------------------------------------------------------- */

/* Of what is lost now: the cause of most steps, and how many others there are. */
static void add_worst_cause(const struct losses_recent *recent, struct flow *flow)
{
	const char *worst = "layers missing";
	uint64_t most = recent->partial;
	uint32_t causes = most > 0;

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		causes += recent->steps_of[cause] > 0;
		if (recent->steps_of[cause] > most) {
			most = recent->steps_of[cause];
			worst = cause ? r3ring_cause_name(cause) : "other causes";
		}
	}
	if (causes > 1)
		flow_add(flow, GRID_BAD, "(%s, +%" PRIu32 ")", worst, causes - 1);
	else
		flow_add(flow, GRID_BAD, "(%s)", worst);
}

static void add_losing(const struct losses_recent *recent, struct flow *flow)
{
	uint64_t lost = recent->lost + recent->partial;
	char share[16];

	if (lost) {
		flow_add(flow, GRID_BAD, "LOSING %s of steps",
			 share_text(share, lost, recent->steps));
		add_worst_cause(recent, flow);
	} else if (recent->out_of_range) {
		flow_add(flow, GRID_BAD, "LOSING ids (out of range)");
	} else {
		flow_add(flow, GRID_BAD, "LOSING rows");
	}
}

static void add_lost(const struct top_frame *frame, struct flow *flow)
{
	const struct top_losses *losses = frame->losses;
	uint64_t steps = losses->steps.all_steps + losses->partial;
	char age[QUANTITY_TEXT];

	if (losses->readers_demoted)
		flow_add(flow, GRID_BAD, "A LOSSLESS READER LOSES");
	else if (steps)
		flow_add(flow, GRID_WARN, "lost %" PRIu64 " step%s,", steps, top_plural(steps));
	else
		flow_add(flow, GRID_WARN,
			 top_losses_doubt(losses) ? "MAY HAVE LOST," : "lost some,");
	if (steps && top_losses_doubt(losses))
		flow_add(flow, GRID_WARN, "MAY HAVE LOST MORE,");
	if (losses->newest_ns)
		flow_add(flow, GRID_WARN, "none for %s",
			 quantity_duration(age, top_loss_age(frame)));
	else if (!losses->readers_demoted)
		flow_add(flow, GRID_WARN, "before this");
}

static void add_losses(const struct top_frame *frame, struct flow *flow)
{
	struct losses_recent recent;

	if (top_is_gone(frame)) {
		flow_add(flow, GRID_BAD, "waiting: %s", picture_state_name(frame->picture->state));
		return;
	}
	if (!frame->losses->seen) {
		flow_add(flow, GRID_FAINT, "asking the daemon");
		return;
	}
	top_losses_recent(frame->losses, frame->now_ns, &recent);
	if (top_is_losing(frame))
		add_losing(&recent, flow);
	else if (top_losses_any(frame->losses))
		add_lost(frame, flow);
	else
		flow_add(flow, GRID_GOOD, "nothing lost%s",
			 frame->losses_since_ns ? " since the reset" : "");
	if (frame->losses->unbound)
		flow_add(flow, GRID_WARN, "(layers unbound)");
}

/* ---- balance --------------------------------------------------------------- */

static uint32_t count_uneven(const struct top_load *load)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < load->info.layers; i++)
		count += balance_uneven(&load->balance[i], BALANCE_UNEVEN);
	return count;
}

/* Of an engine that announces maps; another one has none to miss. */
static void add_gpus(const struct top_load *load, struct flow *flow)
{
	const struct gpus *gpus = load->gpus;
	char ratio[16];

	if (!gpus && !load->info.epoch)
		return;
	flow_clause(flow);
	if (!gpus) {
		flow_add(flow, GRID_FAINT, "GPUs: map %" PRIu64 " not known", load->info.epoch);
		return;
	}
	top_ratio(ratio, gpus->worst);
	if (gpus_uneven(gpus))
		flow_add(flow, GRID_WARN, "GPUs UNEVEN: %s", ratio);
	else if (gpus->worst > BALANCE_GPUS_UNEVEN)
		flow_add(flow, GRID_FAINT, "GPUs: too few tokens");
	else
		flow_add(flow, GRID_GOOD, "GPUs even: %s", ratio);
	if (load->info.epoch != load->info.epoch_oldest)
		flow_add(flow, GRID_WARN, "(ranks at maps %" PRIu64 " to %" PRIu64 ")",
			 load->info.epoch_oldest, load->info.epoch);
}

static void add_uneven(const struct top_load *load, uint32_t uneven, struct flow *flow)
{
	const struct balance_layer *worst = &load->balance[0];
	bool bad = worst->figures.max_to_mean > 2 * BALANCE_UNEVEN;
	enum grid_style style = bad ? GRID_BAD : GRID_WARN;
	char ratio[16];

	flow_add(flow, style, "worst layer %" PRId32 ": %s mean,", worst->layer,
		 top_ratio(ratio, worst->figures.max_to_mean));
	flow_add(flow, style, "%" PRIu32 " of %" PRIu32 " UNEVEN", uneven, load->info.layers);
}

static void add_layers(const struct top_load *load, struct flow *flow)
{
	uint32_t uneven = count_uneven(load);
	char text[16];

	if (uneven)
		add_uneven(load, uneven, flow);
	else if (load->balance[0].figures.max_to_mean > BALANCE_UNEVEN)
		flow_add(flow, GRID_FAINT, "too few tokens to call a layer uneven");
	else
		flow_add(flow, GRID_GOOD, "layers even; worst layer %" PRId32 ": %s mean",
			 load->balance[0].layer,
			 top_ratio(text, load->balance[0].figures.max_to_mean));
}

/* Engines of the daemon but the one whose load is shown. */
static uint32_t other_engines(const struct top_frame *frame)
{
	const struct daemon_picture *picture = frame->lived;
	uint32_t others = 0;

	for (size_t i = 0; picture && i < picture->channel_count; i++) {
		const char *name = picture->channels[i].name;
		size_t length = strcspn(name, "/"), earlier = 0;

		if (strlen(frame->instance) == length && !strncmp(name, frame->instance, length))
			continue;
		while (earlier < i && strncmp(picture->channels[earlier].name, name, length + 1))
			earlier++;
		others += earlier == i;
	}
	return others;
}

/* Losses are of all engines, the balance is of one: where there are others, of which. */
static void add_whose(const struct top_frame *frame, struct flow *flow)
{
	if (frame->instance[0] && other_engines(frame))
		flow_add(flow, GRID_PLAIN, "%s:", frame->instance);
}

static void add_others(const struct top_frame *frame, struct flow *flow)
{
	uint32_t others = other_engines(frame);

	if (!frame->instance[0] || !others)
		return;
	flow_clause(flow);
	flow_add(flow, GRID_FAINT, "%" PRIu32 " other engine%s%s", others, top_plural(others),
		 frame->keys ? " (key i)" : "");
}

/* What is being lost goes before what is old: a balance of steps before it says nothing then. */
static void add_balance(const struct top_frame *frame, struct flow *flow)
{
	const struct top_load *load = frame->load;
	const char *past;
	char age[QUANTITY_TEXT];

	if (!load || load->code || !load->info.layers) {
		flow_add(flow, GRID_FAINT, frame->ended ? "engine ended" : "no load yet");
		return;
	}
	past = top_is_past(frame);
	quantity_duration(age, top_load_age(frame));
	if (past && !frame->ended && top_is_losing(frame)) {
		flow_add(flow, GRID_FAINT, "no load for %s", age);
		return;
	}
	/* The first is the one that is furthest from even: none has anything. */
	if (!(load->balance[0].figures.sum > 0)) {
		flow_add(flow, GRID_FAINT, "no load in this window");
		return;
	}
	if (past)
		flow_add(flow, GRID_WARN, "%s (%s):", past, age);
	add_layers(load, flow);
	add_gpus(load, flow);
}

void top_verdict(const struct top_frame *frame, struct flow *flow)
{
	add_losses(frame, flow);
	flow_clause(flow);
	add_whose(frame, flow);
	add_balance(frame, flow);
	add_others(frame, flow);
}
