/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line and configuration file. Both know the same settings from one
 * table: `--ring-size 64M` and `ring-size = 64M` are the same.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture_daemon/log.h"
#include "capture_daemon/options.h"
#include "channel/size_text.h"
#include "channel/socket.h"
#include "channel/utf8.h"

#define CONFIG_LINE_MAX 4096

const char options_help[] =
	"usage: r3ringd [--runtime-dir DIR] [options]\n"
	"Moves captured MoE routes from producers into rings that any program may read.\n"
	"\n"
	"  --runtime-dir DIR    where the socket is (default $R3RING_RUNTIME_DIR, else\n"
	"                       $XDG_RUNTIME_DIR/r3ring, else /run/r3ring)\n"
	"  --ring-size SIZE     shared memory of a ring (default 32M, more where four of the\n"
	"                       schema's largest steps need more)\n"
	"  --buffer-size SIZE   largest capture buffer accepted from a producer (default 4G)\n"
	"  --config FILE        settings as `name = value` lines, names as here without dashes\n"
	"  --log-level LEVEL    error, warn, info (default) or debug\n"
	"  --group NAME         members of this group may connect too\n"
	"  --max-channels N     per user (default 64)\n"
	"  --max-memory SIZE    rings and host buffers, per user (default 64G)\n"
	"  --max-readers N      connections, per user (default 256)\n"
	"  --lossless-limit SIZE  how much of a ring a lossless reader may leave unread\n"
	"                       (default and at most 3/4 of the ring)\n"
	"  --stall-limit MS     how long a channel waits for lossless readers (default 500)\n"
	"  --lossless-policy P  then: demote the reader (default), or drop new steps\n"
	"  --lossless-drop PATTERNS  channels that drop whatever the policy, such as 'rl-*/*'\n"
	"  --release-gpu        lets go of a GPU when the last channel with a buffer on it ends\n"
	"                       (default: keeps its context, whose memory so never comes and "
	"goes)\n"
	"  --allow-mps          imports buffers of a GPU under MPS, where a fault in r3ringd "
	"would\n"
	"                       end the engine too\n"
	"  --help, --version\n"
	"\n"
	"SIZE: bytes, or with K, M, G, T. In the file, what takes no value here is `= yes` or\n"
	"`= no`. SIGHUP reads the file again (log level and limits).\n"
	"SIGTERM and SIGINT drain what was submitted and end. Exit: 0 ended in good order,\n"
	"1 failed, 2 usage.\n";

enum setting_kind {
	SETTING_TEXT,
	SETTING_PATTERNS,
	SETTING_SIZE,
	SETTING_RING_SIZE,
	SETTING_COUNT,
	SETTING_LEVEL,
	SETTING_POLICY,
	SETTING_SWITCH,
};

#define RING_SIZE_MIN (UINT64_C(256) << 10) /* what the smallest model's takes */
#define RING_SIZE_MAX (UINT64_C(64) << 30)

struct setting {
	const char *name;
	enum setting_kind kind;
	size_t offset;
	size_t capacity; /* texts */
};

#define TEXT_OF(name, kind, field)                                                                 \
	{                                                                                          \
		name, kind, offsetof(struct options, field), sizeof(((struct options *)0)->field)  \
	}
#define TEXT(name, field) TEXT_OF(name, SETTING_TEXT, field)
#define NUMBER(name, kind, field)                                                                  \
	{                                                                                          \
		name, kind, offsetof(struct options, field), 0                                     \
	}

static const struct setting settings[] = {
	TEXT("runtime-dir", runtime_dir),
	TEXT("config", config),
	TEXT("group", group),
	NUMBER("ring-size", SETTING_RING_SIZE, ring_size),
	NUMBER("buffer-size", SETTING_SIZE, buffer_size),
	NUMBER("max-memory", SETTING_SIZE, max_memory),
	NUMBER("max-channels", SETTING_COUNT, max_channels),
	NUMBER("max-readers", SETTING_COUNT, max_readers),
	NUMBER("lossless-limit", SETTING_SIZE, lossless_limit),
	NUMBER("stall-limit", SETTING_COUNT, stall_limit),
	NUMBER("lossless-policy", SETTING_POLICY, lossless_policy),
	TEXT_OF("lossless-drop", SETTING_PATTERNS, lossless_drop),
	NUMBER("release-gpu", SETTING_SWITCH, release_gpu),
	NUMBER("allow-mps", SETTING_SWITCH, allow_mps),
	NUMBER("log-level", SETTING_LEVEL, log_level),
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	}
	return NULL;
}

static int parse_number(const char *text, char **end, uint64_t *value)
{
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, end, 10);
	return errno ? -errno : 0;
}

/* What any model's ring may have; whether this model's fits is known when it opens. */
static int parse_ring_size(const char *text, uint64_t *value)
{
	uint64_t size;
	int r = size_text_parse(text, &size);

	if (r < 0)
		return r;
	if (size < RING_SIZE_MIN || size > RING_SIZE_MAX)
		return -ERANGE;
	*value = size;
	return 0;
}

static int parse_count(const char *text, uint64_t *value)
{
	uint64_t number;
	char *end;
	int r = parse_number(text, &end, &number);

	if (r < 0)
		return r;
	if (*end || number == 0 || number > 1000000)
		return -EINVAL;
	*value = number;
	return 0;
}

static int parse_level(const char *text, uint64_t *value)
{
	enum r3ring_log_level level;
	int r = log_level_parse(text, &level);

	if (r == 0)
		*value = level;
	return r;
}

static int parse_policy(const char *text, uint64_t *value)
{
	if (strcmp(text, "demote") == 0)
		*value = LOSSLESS_DEMOTE;
	else if (strcmp(text, "drop") == 0)
		*value = LOSSLESS_DROP;
	else
		return -EINVAL;
	return 0;
}

/* On the command line its name alone says yes. */
static int parse_switch(const char *text, uint64_t *value)
{
	if (!text || strcmp(text, "yes") == 0)
		*value = 1;
	else if (strcmp(text, "no") == 0)
		*value = 0;
	else
		return -EINVAL;
	return 0;
}

static int parse_text(const char *text, char *to, size_t capacity)
{
	size_t len = strlen(text);

	if (len == 0 || len >= capacity)
		return -EINVAL;
	memcpy(to, text, len + 1);
	return 0;
}

static int parse_patterns(const char *text, char *to, size_t capacity)
{
	char parsed[PATTERNS_TEXT];
	int r = parse_text(text, parsed, sizeof(parsed));

	if (r < 0 || !patterns_valid(parsed))
		return -EINVAL;
	return parse_text(parsed, to, capacity);
}

#define PATTERNS_ALLOWED                                                                           \
	"patterns parted by commas, none empty, with each '[' closed, such as rl-*/*,eval/0"

static const char *setting_allowed(const struct setting *setting)
{
	static const char *const allowed[] = {
		[SETTING_TEXT] = "a text that is not empty and not that long",
		[SETTING_PATTERNS] = PATTERNS_ALLOWED,
		[SETTING_SIZE] = "a size such as 33554432, 32M or 1G",
		[SETTING_RING_SIZE] = "a size from 256K to 64G, such as 32M",
		[SETTING_COUNT] = "a number from 1 to 1000000",
		[SETTING_LEVEL] = "error, warn, info or debug",
		[SETTING_POLICY] = "demote or drop",
		[SETTING_SWITCH] = "yes or no",
	};

	return allowed[setting->kind];
}

static int setting_apply(const struct setting *setting, struct options *options, const char *text)
{
	void *field = (char *)options + setting->offset;

	switch (setting->kind) {
	case SETTING_TEXT:
		return parse_text(text, field, setting->capacity);
	case SETTING_PATTERNS:
		return parse_patterns(text, field, setting->capacity);
	case SETTING_SIZE:
		return size_text_parse(text, field);
	case SETTING_RING_SIZE:
		return parse_ring_size(text, field);
	case SETTING_COUNT:
		return parse_count(text, field);
	case SETTING_LEVEL:
		return parse_level(text, field);
	case SETTING_POLICY:
		return parse_policy(text, field);
	case SETTING_SWITCH:
		return parse_switch(text, field);
	}
	return -EINVAL;
}

/* ---- configuration file ------------------------------------------------ */

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r\n");
	len = strlen(text);
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* What is no text is not repeated to a terminal. */
static int check_text(const char *file, unsigned int number, const char *line, size_t bytes,
		      struct r3ring_error *err)
{
	size_t at = 0;

	while (at < bytes) {
		size_t next = utf8_bytes((const uint8_t *)line + at);
		bool space = strchr(" \t\r\n", line[at]) && line[at];

		if (!next || (!space && utf8_steers((const uint8_t *)line + at, next)))
			return r3ring_error_set(err, -EINVAL,
						"%s:%u: byte 0x%02x in column %zu is no text: name "
						"a file of `name = value` lines",
						file, number, (unsigned char)line[at], at + 1);
		at += next;
	}
	return 0;
}

/* The file as far as it was read. */
struct config {
	const char *file;
	unsigned int number;          /* of the line */
	unsigned int given[SETTINGS]; /* the line that each setting is on; 0: none */
};

static int config_line(struct options *options, struct config *config, char *line,
		       struct r3ring_error *err)
{
	const unsigned int number = config->number;
	const char *file = config->file;
	const struct setting *setting;
	unsigned int *given;
	char *equals, *name, *value;

	line[strcspn(line, "#")] = '\0';
	name = trim(line);
	if (!*name)
		return 0;
	equals = strchr(name, '=');
	if (!equals)
		return r3ring_error_set(err, -EINVAL, "%s:%u: '%s' is no `name = value` line", file,
					number, name);
	*equals = '\0';
	name = trim(name);
	value = trim(equals + 1);
	setting = setting_find(name);
	if (!setting || strcmp(name, "config") == 0)
		return r3ring_error_set(err, -EINVAL,
					"%s:%u: no setting is called '%s' (see r3ringd --help)",
					file, number, name);
	given = &config->given[setting - settings];
	if (*given)
		return r3ring_error_set(
			err, -EINVAL, "%s:%u: %s was given in line %u already: keep one of the two",
			file, number, name, *given);
	*given = number;
	if (setting_apply(setting, options, value) < 0)
		return r3ring_error_set(err, -EINVAL, "%s:%u: %s = '%s': must be %s", file, number,
					name, value, setting_allowed(setting));
	return 0;
}

static FILE *config_open(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat status;

	if (file && fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode)) {
		fclose(file);
		errno = EISDIR;
		return NULL;
	}
	return file;
}

/* @bytes: of the line, in which there may be zeros. */
static bool next_line(char line[CONFIG_LINE_MAX], size_t *bytes, FILE *file)
{
	/* The last zero is then the one behind the line. */
	memset(line, '\n', CONFIG_LINE_MAX);
	if (!fgets(line, CONFIG_LINE_MAX, file))
		return false;
	*bytes = (size_t)((char *)memrchr(line, '\0', CONFIG_LINE_MAX) - line);
	return true;
}

static int config_read(struct options *options, struct r3ring_error *err)
{
	struct config config = {.file = options->config};
	char line[CONFIG_LINE_MAX];
	size_t bytes;
	FILE *file;
	int r = 0;

	file = config_open(options->config);
	if (!file)
		return r3ring_error_set(err, -EINVAL,
					"--config %s: %s: name a file of `name = value` lines",
					options->config, strerror(errno));
	while (r == 0 && next_line(line, &bytes, file)) {
		config.number++;
		if (line[bytes - 1] != '\n' && !feof(file))
			r = r3ring_error_set(err, -EINVAL, "%s:%u: line longer than %d bytes",
					     config.file, config.number, CONFIG_LINE_MAX - 2);
		else
			r = check_text(config.file, config.number, line, bytes, err);
		if (r == 0)
			r = config_line(options, &config, line, err);
	}
	if (r == 0 && ferror(file))
		r = r3ring_error_set(err, -EINVAL, "--config %s: cannot be read", options->config);
	fclose(file);
	return r;
}

/* ---- command line ------------------------------------------------------ */

#define OPTION_HELP 1000
#define OPTION_VERSION 1001

static void long_options_fill(struct option long_options[SETTINGS + 3])
{
	memset(long_options, 0, (SETTINGS + 3) * sizeof(*long_options));
	for (size_t i = 0; i < SETTINGS; i++) {
		long_options[i].name = settings[i].name;
		long_options[i].has_arg = settings[i].kind == SETTING_SWITCH ? no_argument
									     : required_argument;
		long_options[i].val = (int)i + 1;
	}
	long_options[SETTINGS] = (struct option){"help", no_argument, NULL, OPTION_HELP};
	long_options[SETTINGS + 1] = (struct option){"version", no_argument, NULL, OPTION_VERSION};
}

/* One pass over the arguments; -EINVAL with a message, or enum options_result. */
static int arguments_apply(struct options *options, int argc, char *const argv[],
			   struct r3ring_error *err)
{
	struct option long_options[SETTINGS + 3];
	int c;

	long_options_fill(long_options);
	optind = 0;
	while ((c = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		if (c == OPTION_HELP)
			return OPTIONS_HELP;
		if (c == OPTION_VERSION)
			return OPTIONS_VERSION;
		if (c == ':')
			return r3ring_error_set(err, -EINVAL, "%s needs a value (see --help)",
						argv[optind - 1]);
		if (c == '?')
			return r3ring_error_set(err, -EINVAL, "unknown option %s (see --help)",
						argv[optind - 1]);
		if (setting_apply(&settings[c - 1], options, optarg) < 0)
			return r3ring_error_set(err, -EINVAL, "--%s '%s': must be %s",
						settings[c - 1].name, optarg,
						setting_allowed(&settings[c - 1]));
	}
	if (optind < argc)
		return r3ring_error_set(err, -EINVAL, "unexpected argument '%s' (see --help)",
					argv[optind]);
	return OPTIONS_RUN;
}

static void options_defaults(struct options *options)
{
	*options = (struct options){
		.buffer_size = 4ull << 30,
		.max_channels = 64,
		.max_memory = 64ull << 30,
		.max_readers = 256,
		.stall_limit = 500,
		.log_level = R3RING_LOG_INFO,
	};
}

int options_parse(struct options *options, int argc, char *const argv[], struct r3ring_error *err)
{
	struct options parsed;
	int r;

	options_defaults(&parsed);
	r = arguments_apply(&parsed, argc, argv, err);
	if (r != OPTIONS_RUN)
		return r;
	if (parsed.config[0]) {
		char config[PATH_MAX];

		memcpy(config, parsed.config, sizeof(config));
		options_defaults(&parsed);
		memcpy(parsed.config, config, sizeof(config));
		r = config_read(&parsed, err);
		if (r == 0)
			r = arguments_apply(&parsed, argc, argv, err);
		if (r < 0)
			return r;
	}
	if (!parsed.runtime_dir[0] &&
	    socket_default_dir(parsed.runtime_dir, sizeof(parsed.runtime_dir)) < 0)
		return r3ring_error_set(err, -EINVAL,
					"the default runtime directory's path is too "
					"long: give --runtime-dir");
	*options = parsed;
	return OPTIONS_RUN;
}

static bool setting_differs(const struct setting *setting, const struct options *a,
			    const struct options *b)
{
	const char *one = (const char *)a + setting->offset;
	const char *other = (const char *)b + setting->offset;

	if (setting->capacity)
		return strcmp(one, other) != 0;
	return memcmp(one, other, sizeof(uint64_t)) != 0;
}

size_t options_differences(const struct options *a, const struct options *b, char *text,
			   size_t capacity)
{
	size_t count = 0, len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < SETTINGS; i++) {
		if (!setting_differs(&settings[i], a, b))
			continue;
		if (len < capacity)
			len += (size_t)snprintf(text + len, capacity - len, "%s%s",
						count ? ", " : "", settings[i].name);
		count++;
	}
	return count;
}
