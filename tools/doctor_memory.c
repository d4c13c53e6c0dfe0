/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: memory.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/abi.h>

#include "monitor/daemon_status.h"
#include "tools/doctor.h"
#include "tools/quantity.h"

#define SHM_DIR "/dev/shm"
#define CHANNEL_BYTES 19005440ull       /* the default ring of one channel, as r3ringd makes it */
#define CONTAINER_DEFAULT (64ull << 20) /* what container runtimes give when not asked */
#define LOCKED_FOR_URING (64ull << 10)

/* ---- rings ------------------------------------------------------------ */

/* As the daemon that runs makes them, whose --ring-size nobody else knows. */
static uint64_t ring_bytes(void)
{
	json_t *status = NULL;
	json_int_t bytes = 0;

	if (daemon_status_get(&status, NULL) == 0)
		bytes = json_integer_value(
			json_object_get(json_object_get(status, "daemon"), "ring_bytes"));
	json_decref(status);
	return bytes > 0 ? (uint64_t)bytes : CHANNEL_BYTES;
}

/* ---- /dev/shm --------------------------------------------------------- */

void doctor_judge_shared_memory(struct doctor_finding *finding, uint64_t size, uint64_t available,
				uint64_t needed)
{
	char size_text[QUANTITY_TEXT], available_text[QUANTITY_TEXT], needed_text[QUANTITY_TEXT];

	quantity_bytes(size_text, size);
	quantity_bytes(available_text, available);
	quantity_bytes(needed_text, needed);
	if (available < needed)
		doctor_lacks(finding, DOCTOR_FAIL,
			     "make room there, 'mount -o remount,size=8G /dev/shm', in containers "
			     "--shm-size=8g or --ipc=host, or give r3ringd a smaller --ring-size",
			     "%s free of %s in " SHM_DIR ", but the ring of one channel needs %s",
			     available_text, size_text, needed_text);
	else if (size <= CONTAINER_DEFAULT)
		doctor_lacks(finding, DOCTOR_WARN,
			     "for more channels or larger steps: --shm-size=8g or --ipc=host",
			     "%s free of %s in " SHM_DIR ", a container's default: room for %u "
			     "rings of %s",
			     available_text, size_text, (unsigned int)(available / needed),
			     needed_text);
	else
		doctor_ok(finding, "%s free of %s in " SHM_DIR "; a channel's ring needs %s",
			  available_text, size_text, needed_text);
}

void doctor_check_shared_memory(struct doctor_finding *finding)
{
	struct statvfs fs;

	if (statvfs(SHM_DIR, &fs))
		doctor_lacks(finding, DOCTOR_FAIL, "mount -t tmpfs tmpfs /dev/shm", SHM_DIR ": %s",
			     strerror(errno));
	else if (access(SHM_DIR, R_OK | W_OK | X_OK))
		doctor_lacks(finding, DOCTOR_FAIL, "chmod 1777 /dev/shm",
			     SHM_DIR " may not be written to: %s", strerror(errno));
	else
		doctor_judge_shared_memory(finding, fs.f_blocks * fs.f_frsize,
					   fs.f_bavail * fs.f_frsize, ring_bytes());
}

/* ---- RLIMIT_MEMLOCK --------------------------------------------------- */

void doctor_judge_locked_memory(struct doctor_finding *finding, uint64_t limit, uint64_t needed)
{
	char limit_text[QUANTITY_TEXT], needed_text[QUANTITY_TEXT];

	if (limit == UINT64_MAX) {
		doctor_ok(finding, "no limit");
		return;
	}
	quantity_bytes(limit_text, limit);
	quantity_bytes(needed_text, needed);
	if (limit >= needed)
		doctor_ok(finding, "up to %s may be locked; %s are needed", limit_text,
			  needed_text);
	else
		doctor_lacks(finding, DOCTOR_WARN,
			     "'ulimit -l unlimited', LimitMEMLOCK=infinity in the unit, in "
			     "containers --ulimit memlock=-1",
			     "only %s may be locked, %s are needed: for io_uring before Linux "
			     "5.12, and for pinning a ring where a GPU copies into it",
			     limit_text, needed_text);
}

void doctor_check_locked_memory(struct doctor_finding *finding)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		doctor_lacks(finding, DOCTOR_WARN, "", "the limit cannot be read: %s",
			     strerror(errno));
	else
		doctor_judge_locked_memory(
			finding,
			limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur,
			doctor_has_cuda() ? ring_bytes() : LOCKED_FOR_URING);
}

/* ---- pages ------------------------------------------------------------ */

void doctor_check_page_size(struct doctor_finding *finding)
{
	long bytes = sysconf(_SC_PAGESIZE);
	char text[QUANTITY_TEXT];

	if (bytes < 0)
		doctor_lacks(finding, DOCTOR_FAIL, "", "the page size cannot be read: %s",
			     strerror(errno));
	else if (bytes > R3RING_REGION_ALIGN)
		doctor_lacks(finding, DOCTOR_FAIL, "run a kernel with pages of 64 KiB or less",
			     "pages of %s: rings are made for 64 KiB at most",
			     quantity_bytes(text, (uint64_t)bytes));
	else
		doctor_ok(finding, "%s", quantity_bytes(text, (uint64_t)bytes));
}
