/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: the runtime directory and the daemon behind it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "channel/socket.h"
#include "monitor/daemon_status.h"
#include "tools/doctor.h"

#define SOCKET_PATH_MAX 107 /* sun_path without its NUL, unix(7) */

/* ---- runtime directory ------------------------------------------------ */

static void judge_mode(struct doctor_finding *finding, const char *dir, const struct stat *status)
{
	if (!S_ISDIR(status->st_mode))
		doctor_lacks(finding, DOCTOR_FAIL, "set R3RING_RUNTIME_DIR to a directory",
			     "%.300s is no directory", dir);
	else if (access(dir, X_OK))
		doctor_lacks(finding, DOCTOR_FAIL,
			     "join the daemon's group (r3ringd --group), or run as its user",
			     "%.300s may not be entered by this user: %s", dir, strerror(errno));
	else if (status->st_mode & S_IWOTH)
		doctor_lacks(finding, DOCTOR_FAIL, "chmod o-w it; r3ringd makes it with 0750",
			     "%.300s may be written to by everybody", dir);
	else
		doctor_ok(finding, "%.300s, mode %04o", dir,
			  (unsigned int)(status->st_mode & 07777));
}

void doctor_check_runtime_dir(struct doctor_finding *finding)
{
	char dir[PATH_MAX];
	struct stat status;

	if (socket_default_dir(dir, sizeof(dir)) ||
	    strlen(dir) + strlen("/" R3RING_SOCKET_NAME) > SOCKET_PATH_MAX)
		doctor_lacks(finding, DOCTOR_FAIL, "set R3RING_RUNTIME_DIR to a shorter path",
			     "the path is too long: a socket's takes %d bytes", SOCKET_PATH_MAX);
	else if (!stat(dir, &status))
		judge_mode(finding, dir, &status);
	else if (errno == ENOENT)
		doctor_lacks(finding, DOCTOR_WARN, "start r3ringd, which makes it",
			     "%.300s is not there", dir);
	else
		doctor_lacks(finding, DOCTOR_FAIL, "set R3RING_RUNTIME_DIR to a directory",
			     "%.300s: %s", dir, strerror(errno));
}

/* ---- daemon ----------------------------------------------------------- */

static void judge_answer(struct doctor_finding *finding, const json_t *status)
{
	const json_t *daemon = json_object_get(status, "daemon");
	const char *version = json_string_value(json_object_get(daemon, "version"));
	size_t channels = json_array_size(json_object_get(status, "channels"));

	if (!version)
		doctor_lacks(finding, DOCTOR_WARN, "use r3ring and r3ringd of one release",
			     "it answers, but does not tell its version");
	else if (strcmp(version, R3RING_VERSION) != 0)
		doctor_lacks(finding, DOCTOR_WARN, "use r3ring and r3ringd of one release",
			     "r3ringd %.64s, while this is r3ring " R3RING_VERSION, version);
	else
		doctor_ok(finding, "r3ringd %s, process %lld, %zu channel%s", version,
			  (long long)json_integer_value(json_object_get(daemon, "pid")), channels,
			  channels == 1 ? "" : "s");
}

void doctor_check_daemon(struct doctor_finding *finding)
{
	struct r3ring_error err = {0};
	json_t *status;
	int code = daemon_status_get(&status, &err);

	if (!code) {
		judge_answer(finding, status);
		json_decref(status);
	} else if (code == -ECONNREFUSED) {
		doctor_lacks(finding, DOCTOR_WARN, "start r3ringd, or set R3RING_RUNTIME_DIR", "%s",
			     err.text);
	} else {
		doctor_lacks(finding, DOCTOR_FAIL, "see the daemon's log, and its --group", "%s",
			     err.text[0] ? err.text : strerror(-code));
	}
}
