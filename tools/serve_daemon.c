/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tools/absent_channels.h"
#include "tools/json_values.h"
#include "tools/serve_daemon.h"

#define DRAFT ".draft"

/* "INSTANCE/RANK": a name of the instance's. */
static bool is_of(const struct picture_channel *channel, const char *instance)
{
	size_t len = strlen(instance);

	return strncmp(channel->name, instance, len) == 0 && channel->name[len] == '/';
}

static bool is_draft(const struct picture_channel *channel)
{
	size_t len = strlen(channel->name);

	return len > strlen(DRAFT) && strcmp(channel->name + len - strlen(DRAFT), DRAFT) == 0;
}

static json_t *readers_of(const struct picture_channel *channel)
{
	json_t *list = json_array();

	for (size_t i = 0; i < channel->reader_count; i++) {
		const struct picture_reader *reader = &channel->readers[i];

		json_array_append_new(
			list,
			json_pack("{s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "pid",
				  (json_int_t)reader->pid, "label",
				  json_text(reader->label, strlen(reader->label)), "mode",
				  reader->lossless ? "lossless" : "lossy", "demoted",
				  reader->demoted, "lag_records", json_u64(reader->lag_records),
				  "lag_bytes", json_u64(reader->lag_bytes), "got",
				  json_u64(reader->got), "lost", json_u64(reader->lost), "skipped",
				  json_u64(reader->skipped)));
	}
	return list;
}

static json_t *channel_of(const struct picture_channel *channel, const struct picture_rates *rates,
			  const struct picture_lost *just_now)
{
	json_t *age = channel->last_step_age_ms < 0
			      ? json_null()
			      : json_integer((json_int_t)channel->last_step_age_ms);

	return json_pack(
		"{s:s, s:o, s:s, s:b, s:b, s:b, s:I, s:f, s:f, s:f, s:o, s:i, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o}",
		"channel", channel->name, "model",
		json_text(channel->model, strlen(channel->model)), "state", channel->state, "draft",
		is_draft(channel), "crashed", channel->crashed, "producer_died",
		channel->producer_died, "generation", (json_int_t)channel->generation,
		"steps_per_s", rates->steps, "rows_per_s", rates->rows, "bytes_per_s", rates->bytes,
		"last_step_age_ms", age, "bound_layers", (int)channel->captured_count,
		"unbound_layers", json_numbers(channel->unbound, channel->unbound_count), "steps",
		json_u64(channel->steps), "steps_partial", json_u64(channel->steps_partial),
		"ids_out_of_range", json_u64(channel->ids_out_of_range), "lost",
		json_lost(channel->lost.steps, channel->lost.rows, "other"), "lost_just_now",
		json_lost(just_now->steps, just_now->rows, "other"), "readers",
		readers_of(channel));
}

static json_t *channels_of(const struct daemon_picture *before, const struct daemon_picture *now,
			   const struct daemon_picture *told, const char *instance)
{
	json_t *channels = json_array();

	for (size_t i = 0; now && i < now->channel_count; i++) {
		struct picture_rates rates, since;

		if (!is_of(&now->channels[i], instance))
			continue;
		picture_rates(before, now, &now->channels[i], &rates);
		picture_rates(told ? told : before, now, &now->channels[i], &since);
		json_array_append_new(
			channels, channel_of(&now->channels[i], &rates, &since.lost_in_between));
	}
	return channels;
}

/* In words; null where it is not known. */
static json_t *absent_of(const struct daemon_picture *now, const char *instance)
{
	struct archive_absent_ranks absent;
	char text[ARCHIVE_RANK_TEXT];
	json_t *told;

	if (!now || absent_channels_find(now, instance, &absent) < 0)
		return json_null();
	told = json_array();
	for (uint32_t i = 0; i < absent.told; i++) {
		archive_absent_rank_text(text, &absent.rank[i]);
		json_array_append_new(told, json_string(text));
	}
	return json_pack("{s:o, s:o}", "ranks", json_u64(absent.count), "told", told);
}

json_t *daemon_tell(struct daemon_watch *watch, const char *instance, struct daemon_picture **told)
{
	struct daemon_picture *before, *now;
	json_t *answer;

	daemon_watch_look(watch, &before, &now);
	answer = json_pack(
		"{s:s, s:s, s:o, s:o}", "daemon", now ? picture_state_name(now->state) : "unknown",
		"reason", now ? now->error : "", "channels",
		channels_of(before, now, *told, instance), "absent", absent_of(now, instance));
	if (now && now->state == PICTURE_LIVE) {
		daemon_picture_put(*told);
		*told = daemon_picture_get(now);
	}
	daemon_picture_put(before);
	daemon_picture_put(now);
	return answer;
}
