/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring gc: removes the segments that a dead daemon left.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/proto.h>

#include "channel/leftover.h"
#include "channel/namespaces.h"
#include "channel/socket.h"
#include "ring/identity.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/json_values.h"
#include "tools/output.h"

static const char usage[] =
	"usage: r3ring gc [--runtime-dir DIR] [--dry-run] [--force] [--json]\n"
	"\n"
	"Removes the segments of a daemon that died and was not started again. Only those that\n"
	"are listed in the runtime directory, belong to this user, and are nobody's any more.\n"
	"What readers have not read of them is lost. One whose engine still runs is kept: a next\n"
	"daemon goes on in it, and loses nothing.\n"
	"\n"
	"  --runtime-dir DIR  the daemon's, otherwise as for other commands\n"
	"  --force            also those whose engines run: their requests lose their names\n"
	"  --dry-run          removes nothing, says what it would remove\n"
	"  --json             one object with \"runtime_dir\", \"daemon_pid\" and \"segments\"\n"
	"  --help             this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 usage, 3 there is no such runtime directory\n";

struct collection {
	char dir[PATH_MAX];
	int dir_fd, lock_fd, list_fd;
	long daemon_pid; /* of the daemon that runs there; 0: none */
	bool dry_run, json, force;
	bool failed;
	uint64_t pid_namespace; /* of this process */
	uint64_t removed;
	uint64_t spared;  /* their engines run */
	uint64_t unended; /* of these: not noted as ended, an engine may go on in it */
	json_t *segments;
};

/* ---- the directory ------------------------------------------------------ */

static int complain(const struct collection *collection, const char *what)
{
	fprintf(stderr, "r3ring gc: %s%s: %s\n", collection->dir, what, strerror(errno));
	return TOOL_FAILED;
}

/* As the daemon does, so that neither meets the other at work. */
static int take_lock(struct collection *collection)
{
	char text[32] = "";

	collection->lock_fd = openat(collection->dir_fd, R3RING_LOCK_NAME,
				     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (collection->lock_fd < 0)
		return complain(collection, "/" R3RING_LOCK_NAME);
	if (flock(collection->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return TOOL_DONE;
	if (errno != EWOULDBLOCK)
		return complain(collection, "/" R3RING_LOCK_NAME);
	if (pread(collection->lock_fd, text, sizeof(text) - 1, 0) > 0)
		collection->daemon_pid = strtol(text, NULL, 10);
	if (!collection->daemon_pid)
		collection->daemon_pid = -1;
	return TOOL_DONE;
}

static int open_dir(struct collection *collection)
{
	struct stat status;

	collection->dir_fd = open(collection->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (collection->dir_fd < 0) {
		complain(collection, "");
		return errno == ENOENT ? TOOL_NO_DAEMON : TOOL_FAILED;
	}
	if (fstat(collection->dir_fd, &status) < 0)
		return complain(collection, "");
	if (status.st_uid != geteuid()) {
		fprintf(stderr,
			"r3ring gc: %s belongs to user %u, this is user %u: run it as that user\n",
			collection->dir, status.st_uid, geteuid());
		return TOOL_FAILED;
	}
	return take_lock(collection);
}

/* ---- segments ----------------------------------------------------------- */

static const char *const verdicts[] = {
	[LEFTOVER_GONE] = "gone",
	[LEFTOVER_UNOWNED] = "removed",
	[LEFTOVER_HELD] = "removed",
	[LEFTOVER_ALIVE] = "kept: its writer lives",
	[LEFTOVER_FOREIGN] = "kept: of another user or daemon",
};

static bool is_unowned(enum leftover_state state)
{
	return state == LEFTOVER_UNOWNED || state == LEFTOVER_HELD;
}

/* False also where its number means nothing here. */
static bool is_running(const struct collection *collection, const struct leftover_process *process)
{
	return process->pid && process->pid <= INT32_MAX && process->start_time &&
	       process->pid_namespace && process->pid_namespace == collection->pid_namespace &&
	       identity_start_time((uint32_t)process->pid) == process->start_time;
}

/* Returns what became of it, in words. */
static const char *collect(struct collection *collection, const char *name,
			   enum leftover_state state)
{
	if (is_unowned(state) && collection->dry_run)
		return "would be removed";
	if (is_unowned(state) && shm_unlink(name) < 0 && errno != ENOENT) {
		fprintf(stderr, "r3ring gc: %s: %s\n", name, strerror(errno));
		collection->failed = true;
		return "not removed";
	}
	if (!collection->dry_run && (is_unowned(state) || state == LEFTOVER_GONE))
		leftover_unlist(collection->list_fd, name);
	return verdicts[state];
}

static void look_at(void *ctx, const char *name)
{
	struct collection *collection = ctx;
	enum leftover_state state = leftover_look(collection->list_fd, name);
	const struct leftover_entry listed = leftover_read(collection->list_fd, name);
	const bool ended = listed.end != LEFTOVER_GOES_ON;
	const bool spared = is_unowned(state) && !ended && !collection->force &&
			    is_running(collection, &listed.producer);
	const char *verdict = spared ? "kept: its engine runs" : collect(collection, name, state);

	collection->spared += spared;
	collection->removed += is_unowned(state) && !spared;
	collection->unended += is_unowned(state) && !spared && !ended;
	if (collection->json)
		json_array_append_new(collection->segments,
				      json_pack("{s:s, s:s, s:b}", "name", name, "verdict", verdict,
						"ended", ended));
	else
		printf("%s: %s\n", name, verdict);
}

static int collect_all(struct collection *collection)
{
	int r;

	if (collection->daemon_pid)
		return TOOL_DONE;
	collection->list_fd = openat(collection->dir_fd, "segments",
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (collection->list_fd < 0)
		return errno == ENOENT ? TOOL_DONE : complain(collection, "/segments");
	r = leftover_each(collection->list_fd, look_at, collection);
	close(collection->list_fd);
	if (r < 0) {
		errno = -r;
		return complain(collection, "/segments");
	}
	return collection->failed ? TOOL_FAILED : TOOL_DONE;
}

/* ---- the command -------------------------------------------------------- */

static void print_text(const struct collection *collection)
{
	if (collection->daemon_pid)
		printf("%s: r3ringd (pid %ld) runs there, its segments are its own\n",
		       collection->dir, collection->daemon_pid);
	else if (!collection->removed)
		printf("%s: nothing to remove\n", collection->dir);
	if (collection->spared)
		printf("%" PRIu64 " kept: a next r3ringd goes on in them, and loses nothing "
		       "(--force removes them, too)\n",
		       collection->spared);
	if (collection->unended)
		printf("%" PRIu64 " of these had not ended: what readers have not read of them %s "
		       "(lossless readers are told it, as unkept); an engine that still runs tells "
		       "its live requests and maps to no next r3ringd again\n",
		       collection->unended, collection->dry_run ? "would be lost" : "is lost");
}

static json_t *report_object(const struct collection *collection)
{
	return json_pack("{s:o, s:I, s:b, s:O}", "runtime_dir",
			 json_text(collection->dir, strlen(collection->dir)), "daemon_pid",
			 (json_int_t)collection->daemon_pid, "dry_run", collection->dry_run,
			 "segments", collection->segments);
}

static int report(const struct collection *collection)
{
	if (collection->json)
		return output_json("r3ring gc", report_object(collection));
	print_text(collection);
	return TOOL_DONE;
}

static int run(struct collection *collection)
{
	int code;

	if (!collection->dir[0] && socket_default_dir(collection->dir, sizeof(collection->dir))) {
		fputs("r3ring gc: the runtime directory's path is too long\n", stderr);
		return TOOL_FAILED;
	}
	collection->pid_namespace = namespaces_of_this_process().pid;
	collection->segments = json_array();
	code = open_dir(collection);
	if (code == TOOL_DONE) {
		code = collect_all(collection);
		if (report(collection) != TOOL_DONE)
			code = TOOL_FAILED;
	}
	if (collection->lock_fd >= 0)
		close(collection->lock_fd);
	if (collection->dir_fd >= 0)
		close(collection->dir_fd);
	json_decref(collection->segments);
	return code;
}

static bool take_option(struct collection *collection, int option)
{
	switch (option) {
	case 'r':
		if (strlen(optarg) >= sizeof(collection->dir)) {
			fputs("r3ring gc: --runtime-dir is too long\n", stderr);
			return false;
		}
		memcpy(collection->dir, optarg, strlen(optarg) + 1);
		return true;
	case 'n':
		collection->dry_run = true;
		return true;
	case 'f':
		collection->force = true;
		return true;
	case 'j':
		collection->json = true;
		return true;
	default:
		return false;
	}
}

int cmd_gc(int argc, char **argv)
{
	static const struct option options[] = {
		{"runtime-dir", required_argument, NULL, 'r'},
		{"dry-run", no_argument, NULL, 'n'},
		{"force", no_argument, NULL, 'f'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct collection collection = {.dir_fd = -1, .lock_fd = -1, .list_fd = -1};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return TOOL_DONE;
		}
		if (!take_option(&collection, option))
			return arguments_refuse(argv[0], NULL);
	}
	return optind == argc ? run(&collection) : arguments_refuse(argv[0], argv[optind]);
}
