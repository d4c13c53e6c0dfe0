/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of what top shows, for programs. */
#include <string.h>
#include <time.h>

#include "channel/clock.h"
#include "monitor/balance.h"
#include "tools/json_values.h"
#include "tools/left_out_json.h"
#include "tools/load_json.h"
#include "tools/top.h"

static json_t *text(const char *value)
{
	return value[0] ? json_text(value, strlen(value)) : json_string("");
}

static json_t *time_now(void)
{
	uint64_t now_ms = clock_real_ns() / 1000000u;
	time_t now = (time_t)(now_ms / 1000);
	struct tm parts;
	char seconds[32], whole[48];

	gmtime_r(&now, &parts);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(whole, sizeof(whole), "%s.%03uZ", seconds, (unsigned int)(now_ms % 1000));
	return json_string(whole);
}

/* ---- channels -------------------------------------------------------------- */

static json_t *rates_object(const struct picture_rates *rates)
{
	if (!rates->known)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "seconds", rates->seconds, "steps_per_s",
			 rates->steps, "rows_per_s", rates->rows, "records_per_s", rates->records,
			 "bytes_per_s", rates->bytes, "lost_steps_per_s", rates->lost_steps);
}

static json_t *reader_object(const struct picture_reader *reader)
{
	return json_pack("{s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "pid",
			 (json_int_t)reader->pid, "label", text(reader->label), "mode",
			 reader->lossless ? "lossless" : "lossy", "demoted", reader->demoted,
			 "cursor", json_u64(reader->cursor), "lag_records",
			 json_u64(reader->lag_records), "lag_bytes", json_u64(reader->lag_bytes),
			 "got", json_u64(reader->got), "lost", json_u64(reader->lost), "skipped",
			 json_u64(reader->skipped));
}

static json_t *readers_array(const struct picture_channel *channel)
{
	json_t *readers = json_array();

	for (size_t i = 0; i < channel->reader_count; i++)
		json_array_append_new(readers, reader_object(&channel->readers[i]));
	return readers;
}

static json_t *channel_object(const struct picture_channel *channel,
			      const struct picture_rates *rates)
{
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:I}", "channel", text(channel->name), "model",
		text(channel->model), "state", text(channel->state), "generation",
		json_u64(channel->generation), "uuid", text(channel->uuid), "crashed",
		channel->crashed, "producer_pid", (json_int_t)channel->producer_pid,
		"last_step_age_ms", (json_int_t)channel->last_step_age_ms);
	const struct {
		const char *key;
		uint64_t value;
	} totals[] = {
		{"steps", channel->steps},
		{"steps_partial", channel->steps_partial},
		{"rows", channel->rows},
		{"records", channel->records},
		{"bytes", channel->bytes},
		{"ids_missing", channel->ids_missing},
		{"ids_out_of_range", channel->ids_out_of_range},
	};

	for (size_t i = 0; i < sizeof(totals) / sizeof(*totals); i++)
		json_object_set_new(object, totals[i].key, json_u64(totals[i].value));
	json_object_set_new(object, "bound_layers",
			    json_numbers(channel->bound, channel->bound_count));
	json_object_set_new(object, "unbound_layers",
			    json_numbers(channel->unbound, channel->unbound_count));
	json_object_set_new(object, "lost",
			    json_lost(channel->lost.steps, channel->lost.rows, "other"));
	json_object_set_new(object, "rates", rates_object(rates));
	json_object_set_new(object, "readers", readers_array(channel));
	return object;
}

static json_t *channels_array(const struct top_frame *frame)
{
	json_t *channels = json_array();

	for (size_t i = 0; frame->picture && i < frame->picture->channel_count; i++)
		json_array_append_new(
			channels, channel_object(&frame->picture->channels[i], &frame->rates[i]));
	return channels;
}

static json_t *daemon_object(const struct daemon_picture *picture)
{
	if (!picture)
		return json_null();
	return json_pack("{s:s, s:o, s:I, s:o, s:o}", "state", picture_state_name(picture->state),
			 "error", text(picture->error), "pid", (json_int_t)picture->pid, "version",
			 text(picture->version), "uptime_s", json_u64(picture->uptime_s));
}

static json_t *recent_object(const struct losses_recent *recent)
{
	return json_pack("{s:o, s:o, s:o}", "steps", json_u64(recent->steps), "steps_lost",
			 json_u64(recent->lost), "steps_partial", json_u64(recent->partial));
}

static json_t *losses_object(const struct top_frame *frame)
{
	const struct top_losses *losses = frame->losses;
	struct losses_recent recent;

	top_losses_recent(losses, frame->now_ns, &recent);
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o}", "anything",
			 top_losses_any(losses), "causes",
			 json_lost(losses->steps.steps, losses->steps.rows, "other"),
			 "steps_partial", json_u64(losses->partial), "ids_out_of_range",
			 json_u64(losses->out_of_range), "records_of_readers",
			 json_u64(losses->readers_lost), "readers_demoted",
			 (int)losses->readers_demoted, "channels_crashed", (int)losses->crashed,
			 "channels_unbound", (int)losses->unbound, "ends_unfollowed",
			 json_u64(losses->unfollowed), "recent", recent_object(&recent));
}

/* ---- load ------------------------------------------------------------------ */

static json_t *uneven_array(const struct top_load *load)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < load->info.layers; i++) {
		const struct balance_layer *layer = &load->balance[i];

		if (!balance_uneven(layer, BALANCE_UNEVEN))
			continue;
		json_array_append_new(
			array, json_pack("{s:i, s:f, s:f, s:i, s:f}", "layer", (int)layer->layer,
					 "max_to_mean", layer->figures.max_to_mean, "by_chance",
					 layer->chance, "expert", (int)layer->figures.most, "share",
					 layer->share));
	}
	return array;
}

static json_t *hottest_array(const struct top_load *load)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < load->hottest_count; i++) {
		const struct balance_expert *expert = &load->hottest[i];

		json_array_append_new(array,
				      json_pack("{s:i, s:i, s:f, s:f}", "layer", (int)expert->layer,
						"expert", (int)expert->expert, "to_mean",
						expert->ratio, "share", expert->share));
	}
	return array;
}

static json_t *gpus_object(const struct gpus *gpus)
{
	json_t *loads;

	if (!gpus)
		return json_null();
	loads = json_array();
	for (uint32_t i = 0; i < gpus->count; i++)
		json_array_append_new(loads, json_real(gpus_to_mean(gpus, i)));
	return json_pack("{s:o, s:f, s:f, s:b, s:i, s:i, s:o}", "epoch", json_u64(gpus->epoch),
			 "max_to_mean", gpus->worst, "by_chance", gpus->chance, "uneven",
			 gpus_uneven(gpus), "layer", (int)gpus->worst_layer, "gpu",
			 (int)gpus->worst_gpu, "load", loads);
}

static json_t *load_object(const struct top_load *load, bool counts)
{
	json_t *object;

	if (!load || load->code)
		return json_null();
	object = load_json(&load->info, counts);
	json_object_set_new(object, "window", json_string(top_window_name(load->window)));
	json_object_set_new(object, "seconds", json_real(load->seconds));
	json_object_set_new(object, "uneven", uneven_array(load));
	json_object_set_new(object, "hottest", hottest_array(load));
	json_object_set_new(object, "gpus", gpus_object(load->gpus));
	return object;
}

static json_t *follower_object(const struct top_frame *frame)
{
	if (!frame->instance[0])
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "instance",
			 text(frame->instance), "model", text(frame->follower.model), "left_out",
			 left_out_json(frame->left_out, frame->left_outs), "state",
			 tail_state_name(frame->follower.tail.state), "error",
			 text(frame->follower.tail.error), "records",
			 json_u64(frame->follower.tail.records), "gaps",
			 json_u64(frame->follower.tail.gaps), "ends_unfollowed",
			 json_u64(frame->follower.ends_unfollowed));
}

json_t *top_json(const struct top_frame *frame, bool counts)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "time", time_now(), "daemon",
			 daemon_object(frame->picture), "channels", channels_array(frame), "lost",
			 losses_object(frame), "followed", follower_object(frame), "load",
			 load_object(frame->load, counts));
}
