/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a daemon for its channels. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/channel_status.h"
#include "tools/daemon_status.h"

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
