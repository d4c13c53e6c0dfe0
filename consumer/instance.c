/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of an instance: opening, reading in turns, accounts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/reader_label.h"
#include "consumer/instance_internal.h"
#include "consumer/options.h"

#define LIST_TIMEOUT_MS 5000
#define NAMES_TEXT 160 /* of channels, in a message */

/* Options before there were starts. */
#define OPTIONS_LEAST offsetof(struct r3ring_instance_options, limit_bytes)

int instance_say(struct r3ring_error *err, const struct instance_channel *channel, int code,
		 const char *text)
{
	return r3ring_error_set(err, code, "%s: %.400s", channel->text,
				text[0] ? text : strerror(-code));
}

/* ---- opening ----------------------------------------------------------- */

static bool is_channel(const char *name)
{
	struct r3ring_channel_name parsed;

	return name && channel_name_parse(&parsed, name, NULL) == 0;
}

static int check_starts(const struct r3ring_instance_options *options, struct r3ring_error *err)
{
	if (options->start_count && !options->starts)
		return r3ring_error_set(err, -EINVAL, "starts is NULL, but start_count is %u",
					options->start_count);
	for (uint32_t i = 0; i < options->start_count; i++) {
		if (!is_channel(options->starts[i].channel))
			return r3ring_error_set(err, -EINVAL, "starts[%u] names no channel", i);
	}
	return 0;
}

static int check_only(const struct r3ring_instance_options *options, struct r3ring_error *err)
{
	for (size_t i = 0; options->only && options->only[i]; i++) {
		if (!is_channel(options->only[i]))
			return r3ring_error_set(err, -EINVAL, "only: \"%.64s\" names no channel",
						options->only[i]);
	}
	return 0;
}

static int check_options(const struct r3ring_instance_options *options, struct r3ring_error *err)
{
	int rc = options_check_start(options->mode, options->from, err);

	if (!rc)
		rc = options_check_switch("stay", options->stay, err);
	if (rc)
		return rc;
	if (!options->instance)
		return r3ring_error_set(err, -EINVAL, "no instance named");
	if (options->from == R3RING_FROM_SEQ)
		return r3ring_error_set(err, -EINVAL,
					"an instance cannot be read from a sequence number: each "
					"channel has its own");
	if ((unsigned int)options->models > R3RING_ALL_CHANNELS)
		return r3ring_error_set(err, -EINVAL, "models %u is none of the known choices",
					(unsigned int)options->models);
	rc = check_starts(options, err);
	if (!rc)
		rc = check_only(options, err);
	if (rc == 0 && options->label)
		rc = reader_label_check(options->label, err);
	return rc ? rc : channel_instance_check(options->instance, err);
}

static int copy_options(struct r3ring_instance *instance,
			const struct r3ring_instance_options *options, struct r3ring_error *err)
{
	instance->options = *options;
	instance->options.instance = strdup(options->instance);
	if (options->runtime_dir)
		instance->options.runtime_dir = strdup(options->runtime_dir);
	listing_init(&instance->listing, instance->options.runtime_dir, instance->options.instance);
	if (!instance->options.instance || (options->runtime_dir && !instance->options.runtime_dir))
		return r3ring_error_set(err, -ENOMEM, "out of memory for an instance's reader");
	return 0;
}

static bool none_attached(const struct r3ring_instance *instance)
{
	for (uint32_t i = 0; i < instance->count; i++) {
		if (instance->channels[i]->reader)
			return false;
	}
	return true;
}

/* "fr/0, fr/1, ...": @name once more, as far as there is room. */
static void add_name(char text[NAMES_TEXT], const char *name)
{
	static const char more[] = ", ...";
	const size_t used = strlen(text), left = NAMES_TEXT - used;

	if (used + strlen(", ") + strlen(name) + sizeof(more) <= NAMES_TEXT)
		snprintf(text + used, left, "%s%s", used ? ", " : "", name);
	else if (used < strlen(more) || strcmp(text + used - strlen(more), more) != 0)
		snprintf(text + used, left, "%s", more);
}

/* What was asked for: the channels, or "of instance NAME". */
static void wanted_text(const struct r3ring_instance_options *options, char text[NAMES_TEXT])
{
	text[0] = '\0';
	for (size_t i = 0; options->only && options->only[i]; i++)
		add_name(text, options->only[i]);
	if (!options->only)
		snprintf(text, NAMES_TEXT, "of instance %s", options->instance);
}

static void unwanted_text(const struct r3ring_instance *instance, char text[NAMES_TEXT])
{
	const struct listing *listing = &instance->listing;
	char name[CHANNEL_NAME_TEXT];

	text[0] = '\0';
	for (size_t i = 0; i < listing->count; i++) {
		channel_name_format(&listing->names[i], name);
		if (!instance_wants(instance, &listing->names[i]))
			add_name(text, name);
	}
}

static int say_none(const struct r3ring_instance *instance, struct r3ring_error *err)
{
	static const char *const models[] = {
		[R3RING_TARGET_CHANNELS] = "of a target model ",
		[R3RING_DRAFT_CHANNELS] = "of a draft model ",
		[R3RING_ALL_CHANNELS] = "",
	};
	const struct r3ring_instance_options *options = &instance->options;
	char wanted[NAMES_TEXT], there[NAMES_TEXT];

	wanted_text(options, wanted);
	unwanted_text(instance, there);
	if (there[0])
		return r3ring_error_set(err, -ENOENT, "there is no channel %s%s, but %s",
					options->only ? "" : models[options->models], wanted,
					there);
	return r3ring_error_set(
		err, -ENOENT,
		"there is no channel %s: it is there once a producer has opened one "
		"(r3ring status lists them)",
		wanted);
}

static int attach_all(struct r3ring_instance *instance, struct r3ring_error *err)
{
	int rc = listing_ask(&instance->listing, err);

	if (!rc)
		rc = listing_take(&instance->listing, LIST_TIMEOUT_MS, err);
	if (!rc)
		rc = instance_join(instance, instance->options.from, err);
	return !rc && none_attached(instance) ? say_none(instance, err) : rc;
}

int r3ring_instance_open(struct r3ring_instance **instance,
			 const struct r3ring_instance_options *given, struct r3ring_error *err)
{
	struct r3ring_instance_options all = {0};
	const struct r3ring_instance_options *options = &all;
	struct r3ring_instance *opened;
	int rc;

	if (!instance || !given)
		return r3ring_error_set(err, -EINVAL, "r3ring_instance_open: %s is NULL",
					instance ? "options" : "instance");
	/* What an older caller does not know of is zero. */
	rc = options_copy_known(&all, sizeof(all), OPTIONS_LEAST, given, err);
	if (!rc)
		rc = check_options(options, err);
	if (rc)
		return rc;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return r3ring_error_set(err, -ENOMEM, "out of memory for an instance's reader");
	rc = copy_options(opened, options, err);
	if (!rc)
		rc = attach_all(opened, err);
	if (rc) {
		r3ring_instance_close(opened);
		return rc;
	}
	*instance = opened;
	return 0;
}

void r3ring_instance_close(struct r3ring_instance *instance)
{
	if (!instance)
		return;
	for (uint32_t i = 0; i < instance->count; i++) {
		r3ring_reader_close(instance->channels[i]->reader);
		free(instance->channels[i]);
	}
	free(instance->channels);
	free(instance->polled);
	listing_release(&instance->listing);
	free((void *)(uintptr_t)instance->options.instance);
	free((void *)(uintptr_t)instance->options.runtime_dir);
	free(instance);
}

/* ---- reading ----------------------------------------------------------- */

/* How one channel is read: in place, or into a buffer. */
struct reading {
	struct r3ring_view *view;
	void *buffer; /* NULL: in place */
	size_t capacity;
};

static int read_channel(struct instance_channel *channel, const struct reading *reading)
{
	if (reading->buffer)
		return r3ring_reader_read(channel->reader, reading->view, reading->buffer,
					  reading->capacity);
	return r3ring_reader_next(channel->reader, reading->view);
}

static bool is_failure(int rc)
{
	return rc < 0 && rc != -EMSGSIZE && rc != -EOVERFLOW;
}

/* Each channel once, beginning with the one whose turn it is. */
static int read_in_turns(struct r3ring_instance *instance, const struct reading *reading)
{
	uint32_t reading_on = 0, ended = 0;

	for (uint32_t i = 0; i < instance->count; i++) {
		uint32_t index = instance->turn;
		struct instance_channel *channel = instance->channels[index];
		int rc = channel->reader ? read_channel(channel, reading) : 0;

		instance->turn = (index + 1) % instance->count;
		channel->ended = rc == -EPIPE;
		reading_on += channel->reader != NULL;
		ended += channel->ended;
		if (rc == 0 || channel->ended)
			continue;
		instance->current = index;
		if (rc == -EMSGSIZE)
			instance->turn = index;
		if (is_failure(rc))
			instance_say(&instance->err, channel, rc,
				     r3ring_reader_error(channel->reader));
		return rc;
	}
	return reading_on && ended == reading_on ? -EPIPE : 0;
}

static int read_next(struct r3ring_instance *instance, const struct reading *reading)
{
	int rc = instance->refusal ? instance->refusal : instance_look(instance);

	instance->refusal = 0;
	return rc ? rc : read_in_turns(instance, reading);
}

int r3ring_instance_next(struct r3ring_instance *instance, struct r3ring_view *view)
{
	return read_next(instance, &(struct reading){.view = view});
}

int r3ring_instance_check(struct r3ring_instance *instance)
{
	struct r3ring_reader *reader = instance->channels[instance->current]->reader;

	return reader ? r3ring_reader_check(reader) : -EINVAL;
}

int r3ring_instance_read(struct r3ring_instance *instance, struct r3ring_view *view, void *buffer,
			 size_t capacity)
{
	/* No buffer has room for nothing, and only that. */
	static char nothing;
	const struct reading reading = {
		.view = view,
		.buffer = buffer ? buffer : &nothing,
		.capacity = buffer ? capacity : 0,
	};

	return read_next(instance, &reading);
}

/* ---- accounts ---------------------------------------------------------- */

uint32_t r3ring_instance_channels(const struct r3ring_instance *instance)
{
	return instance->count;
}

uint32_t r3ring_instance_current(const struct r3ring_instance *instance)
{
	return instance->current;
}

const char *r3ring_instance_channel(const struct r3ring_instance *instance, uint32_t index)
{
	return index < instance->count ? instance->channels[index]->text : NULL;
}

const char *r3ring_instance_segment(const struct r3ring_instance *instance, uint32_t index)
{
	const struct r3ring_reader *reader =
		index < instance->count ? instance->channels[index]->reader : NULL;

	return reader ? r3ring_reader_segment(reader) : NULL;
}

size_t r3ring_instance_max_record(const struct r3ring_instance *instance)
{
	size_t most = 0;

	for (uint32_t i = 0; i < instance->count; i++) {
		const struct r3ring_reader *reader = instance->channels[i]->reader;
		size_t bytes = reader ? r3ring_reader_max_record(reader) : 0;

		if (bytes > most)
			most = bytes;
	}
	return most;
}

int r3ring_instance_get_stats(const struct r3ring_instance *instance, uint32_t index,
			      struct r3ring_reader_stats *stats)
{
	if (index >= instance->count)
		return -EINVAL;
	if (!instance->channels[index]->reader)
		return -ENOTCONN;
	r3ring_reader_get_stats(instance->channels[index]->reader, stats);
	return 0;
}

void r3ring_instance_get_sums(const struct r3ring_instance *instance,
			      struct r3ring_instance_sums *sums)
{
	struct r3ring_reader_stats stats;

	*sums = (struct r3ring_instance_sums){.channels = instance->count};
	for (uint32_t i = 0; i < instance->count; i++) {
		if (r3ring_instance_get_stats(instance, i, &stats))
			continue;
		sums->got += stats.now.got + stats.got_before;
		sums->lost += stats.now.lost + stats.lost_before;
		sums->skipped += stats.now.skipped + stats.skipped_before;
		sums->corrupt += stats.corrupt;
	}
}

const char *r3ring_instance_error(const struct r3ring_instance *instance)
{
	return instance->err.text;
}
