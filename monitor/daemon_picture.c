/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "channel/clock.h"
#include "monitor/daemon_picture.h"
#include "monitor/daemon_status.h"

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static void copy_text(char *to, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(to, size, "%s", text ? text : "");
}

/* ---- a channel ------------------------------------------------------------ */

static bool read_layers(const json_t *list, int32_t **layers, size_t *count)
{
	size_t size = json_array_size(list);

	*count = 0;
	*layers = calloc(size ? size : 1, sizeof(**layers));
	if (!*layers)
		return false;
	for (; *count < size; (*count)++)
		(*layers)[*count] = (int32_t)json_integer_value(json_array_get(list, *count));
	return true;
}

static uint32_t cause_of(const char *name)
{
	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++) {
		if (strcmp(r3ring_cause_name(cause), name) == 0)
			return cause;
	}
	return R3RING_CAUSE_NONE;
}

static void read_lost(const json_t *object, struct picture_lost *lost)
{
	json_t *causes = json_object_get(object, "lost");
	const char *name;
	json_t *counts;

	json_object_foreach (causes, name, counts) {
		uint32_t cause = cause_of(name);

		lost->steps[cause] += number(counts, "steps");
		lost->rows[cause] += number(counts, "rows");
		lost->all_steps += number(counts, "steps");
		lost->all_rows += number(counts, "rows");
	}
}

static void read_reader(const json_t *object, uint64_t tail, struct picture_reader *reader)
{
	const char *mode = json_string_value(json_object_get(object, "mode"));

	*reader = (struct picture_reader){
		.pid = json_integer_value(json_object_get(object, "pid")),
		.lossless = mode && strcmp(mode, "lossless") == 0,
		.demoted = flag(object, "demoted"),
		.lag_records = number(object, "lag_records"),
		.lag_bytes = number(object, "lag_bytes"),
		.got = number(object, "got"),
		.lost = number(object, "lost"),
		.skipped = number(object, "skipped"),
		.demoted_from = number(object, "demoted_from"),
		.demoted_to = number(object, "demoted_to"),
	};
	copy_text(reader->label, sizeof(reader->label), object, "label");
	if (tail + 1 > reader->lag_records)
		reader->cursor = tail + 1 - reader->lag_records;
}

static bool read_readers(const json_t *object, struct picture_channel *channel)
{
	const json_t *list = json_object_get(object, "readers");
	size_t size = json_array_size(list);

	channel->readers = calloc(size ? size : 1, sizeof(*channel->readers));
	if (!channel->readers)
		return false;
	for (size_t i = 0; i < size; i++)
		read_reader(json_array_get(list, i), channel->records, &channel->readers[i]);
	channel->reader_count = size;
	return true;
}

static void read_totals(const json_t *object, struct picture_channel *channel)
{
	const json_t *age = json_object_get(object, "last_step_age_ms");

	channel->steps = number(object, "steps");
	channel->steps_complete = number(object, "steps_complete");
	channel->steps_partial = number(object, "steps_partial");
	channel->rows = number(object, "rows");
	channel->records = number(json_object_get(object, "ring"), "tail_seq");
	channel->bytes = number(object, "bytes");
	channel->ids_missing = number(object, "ids_missing");
	channel->ids_out_of_range = number(object, "ids_out_of_range");
	channel->steps_per_s = json_number_value(json_object_get(object, "steps_per_s"));
	channel->last_step_age_ms = json_is_integer(age) ? json_integer_value(age) : -1;
	channel->attached_readers = number(object, "attached_readers");
	channel->waits_for_readers = number(object, "waits_for_readers");
	channel->waited_for_readers_ms = number(object, "waited_for_readers_ms");
	channel->readers_demoted = number(object, "readers_demoted");
	read_lost(object, &channel->lost);
}

static struct r3ring_coordinate coordinate(const json_t *rank, const char *key)
{
	const json_t *pair = json_object_get(rank, key);
	const json_int_t index = json_integer_value(json_array_get(pair, 0));
	const json_int_t size = json_integer_value(json_array_get(pair, 1));

	if (index < 0 || index >= size || size > UINT16_MAX)
		return (struct r3ring_coordinate){0};
	return (struct r3ring_coordinate){(uint16_t)index, (uint16_t)size};
}

static struct r3ring_coordinates coordinates(const json_t *rank)
{
	return (struct r3ring_coordinates){
		.dp = coordinate(rank, "dp"),
		.tp = coordinate(rank, "tp"),
		.sp = coordinate(rank, "sp"),
		.pp = coordinate(rank, "pp"),
		.ep = coordinate(rank, "ep"),
		.cp = coordinate(rank, "cp"),
	};
}

static bool read_channel(const json_t *object, struct picture_channel *channel)
{
	copy_text(channel->name, sizeof(channel->name), object, "channel");
	copy_text(channel->model, sizeof(channel->model), object, "model");
	copy_text(channel->uuid, sizeof(channel->uuid), object, "uuid");
	copy_text(channel->state, sizeof(channel->state), object, "state");
	channel->generation = number(object, "generation");
	channel->producer_pid = (int64_t)number(object, "producer_pid");
	channel->rank = coordinates(json_object_get(object, "rank"));
	channel->crashed = flag(object, "crashed");
	channel->producer_died = flag(object, "producer_died");
	read_totals(object, channel);
	if (!read_layers(json_object_get(object, "bound_layers"), &channel->bound,
			 &channel->bound_count))
		return false;
	channel->captured_count =
		channel->bound_count + json_array_size(json_object_get(object, "called_layers"));
	return read_layers(json_object_get(object, "unbound_layers"), &channel->unbound,
			   &channel->unbound_count) &&
	       read_readers(object, channel);
}

/* ---- the whole ------------------------------------------------------------ */

static struct daemon_picture *make(void)
{
	struct daemon_picture *picture = calloc(1, sizeof(*picture));

	if (!picture)
		return NULL;
	picture->references = 1;
	picture->taken_ns = clock_now_ns();
	return picture;
}

struct daemon_picture *daemon_picture_of(const json_t *status)
{
	const json_t *daemon = json_object_get(status, "daemon");
	const json_t *channels = json_object_get(status, "channels");
	size_t size = json_array_size(channels);
	struct daemon_picture *picture = make();

	if (!picture)
		return NULL;
	picture->pid = (int64_t)number(daemon, "pid");
	picture->pid_namespace = number(daemon, "pid_namespace");
	picture->uptime_s = number(daemon, "uptime_s");
	copy_text(picture->version, sizeof(picture->version), daemon, "version");
	picture->channels = calloc(size ? size : 1, sizeof(*picture->channels));
	for (size_t i = 0; picture->channels && i < size; i++) {
		picture->channel_count++;
		if (read_channel(json_array_get(channels, i), &picture->channels[i]))
			continue;
		daemon_picture_put(picture);
		return NULL;
	}
	if (picture->channels)
		return picture;
	daemon_picture_put(picture);
	return NULL;
}

struct daemon_picture *daemon_picture_take(const char *runtime_dir, int timeout_ms)
{
	struct r3ring_error err = {0};
	struct daemon_picture *picture;
	json_t *status;
	int code = daemon_status_ask(runtime_dir, timeout_ms, &status, &err);

	if (code == 0) {
		picture = daemon_picture_of(status);
		json_decref(status);
		return picture;
	}
	picture = make();
	if (!picture)
		return NULL;
	picture->state = daemon_is_missing(code) ? PICTURE_NO_DAEMON : PICTURE_NO_ANSWER;
	snprintf(picture->error, sizeof(picture->error), "%s",
		 err.text[0] ? err.text : strerror(-code));
	return picture;
}

struct daemon_picture *daemon_picture_get(struct daemon_picture *picture)
{
	if (picture)
		r3ring_fetch_add_u32(&picture->references, 1);
	return picture;
}

void daemon_picture_put(struct daemon_picture *picture)
{
	/* A read-modify-write orders whatever others did with it before the freeing. */
	if (!picture || r3ring_fetch_add_u32(&picture->references, UINT32_MAX) != 1)
		return;
	for (size_t i = 0; i < picture->channel_count; i++) {
		free(picture->channels[i].bound);
		free(picture->channels[i].unbound);
		free(picture->channels[i].readers);
	}
	free(picture->channels);
	free(picture);
}

const struct picture_channel *daemon_picture_find(const struct daemon_picture *picture,
						  const char *name)
{
	for (size_t i = 0; picture && i < picture->channel_count; i++) {
		if (strcmp(picture->channels[i].name, name) == 0)
			return &picture->channels[i];
	}
	return NULL;
}

const char *picture_state_name(enum picture_state state)
{
	static const char *const names[] = {
		[PICTURE_LIVE] = "live",
		[PICTURE_NO_DAEMON] = "no daemon",
		[PICTURE_NO_ANSWER] = "no answer",
	};

	return names[state];
}
