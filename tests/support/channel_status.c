/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon says of a channel. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/daemon_status.h"
#include "tests/support/channel_status.h"

#define LOOKS 4000
#define LOOK_MS 5

json_t *channel_status(const char *dir, const char *channel)
{
	json_t *status, *object, *found = NULL;
	size_t i;

	setenv("R3RING_RUNTIME_DIR", dir, 1);
	if (daemon_status_get(&status, NULL) < 0)
		return NULL;
	json_array_foreach (json_object_get(status, "channels"), i, object) {
		if (strcmp(json_string_value(json_object_get(object, "channel")), channel) == 0)
			found = json_incref(object);
	}
	json_decref(status);
	return found;
}

int64_t channel_figure(const char *dir, const char *channel, const char *key)
{
	json_t *object = channel_status(dir, channel);
	json_t *figure = json_object_get(object, key);
	int64_t value = json_is_integer(figure) ? json_integer_value(figure) : -1;

	json_decref(object);
	return value;
}

int channel_readers(const char *dir, const char *channel)
{
	json_t *object = channel_status(dir, channel);
	int count = object ? (int)json_array_size(json_object_get(object, "readers")) : -1;

	json_decref(object);
	return count;
}

bool status_becomes(const char *dir, const char *channel,
		    bool (*done)(const json_t *channel, long argument), long argument)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		json_t *object = channel_status(dir, channel);
		bool is_so = object && done(object, argument);

		json_decref(object);
		if (is_so)
			return true;
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

bool status_is_there(const json_t *channel, long unused)
{
	(void)unused;
	return channel;
}

bool status_has_readers(const json_t *channel, long count)
{
	return json_integer_value(json_object_get(channel, "attached_readers")) == count;
}

bool status_has_ended(const json_t *channel, long unused)
{
	(void)unused;
	return !strcmp(json_string_value(json_object_get(channel, "state")), "ended");
}
