/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: the GPUs, their driver, and how buffers on them reach the daemon.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "channel/namespaces.h"
#include "channel/socket.h"
#include "tools/doctor_gpu.h"

#define DRIVER_NEEDED 12000
#define ANSWER_TIMEOUT_MS 2000

#define SHARE_REMEDY "start engine and daemon with --pid=host --ipc=host (pods: hostPID, hostIPC)"
#define NEITHER_REMEDY                                                                             \
	"use device 'host', or a GPU (a slice, a virtualisation) that has one of them"

/* ---- driver, runtime, devices ----------------------------------------- */

static void judge_absence(struct doctor_finding *finding, const struct doctor_gpus *gpus)
{
	if (gpus->device_file)
		doctor_lacks(finding, DOCTOR_FAIL,
			     "install the NVIDIA driver's libcuda; in containers the NVIDIA "
			     "container toolkit and --gpus all",
			     "a GPU is there, but libcuda.so.1 cannot be loaded");
	else
		doctor_ok(finding, "none: models run, and are captured, on the 'host' device");
}

/* "; 0 NVIDIA H200 GPU-..." for each; what does not fit is only counted. */
static void list_gpus(const struct doctor_gpus *gpus, char *text, size_t capacity)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < gpus->count && i < DOCTOR_GPUS_MAX; i++) {
		int len = snprintf(text + at, capacity - at, "; %d: %s %s", i, gpus->gpu[i].name,
				   gpus->gpu[i].uuid);

		if (len < 0 || (size_t)len >= capacity - at) {
			text[at] = '\0';
			return;
		}
		at += (size_t)len;
	}
}

void doctor_judge_gpus(struct doctor_finding *finding, const struct doctor_gpus *gpus)
{
	const int driver = gpus->driver_version, built = gpus->built_version;
	char list[400];

	list_gpus(gpus, list, sizeof(list));
	if (!gpus->driver)
		judge_absence(finding, gpus);
	else if (gpus->error)
		doctor_lacks(finding, DOCTOR_WARN,
			     "look at 'nvidia-smi'; in containers start with --gpus all",
			     "the CUDA driver is there but gives error %d: no GPU can be used",
			     gpus->error);
	else if (driver < DRIVER_NEEDED)
		doctor_lacks(finding, DOCTOR_FAIL, "install a driver for CUDA 12.0 or later",
			     "the driver is for CUDA %d.%d", driver / 1000, driver % 1000 / 10);
	else if (!built)
		doctor_lacks(finding, DOCTOR_WARN, "build r3ring where the CUDA toolkit's nvcc is",
			     "%d, driver for CUDA %d.%d, but this build has no CUDA%s", gpus->count,
			     driver / 1000, driver % 1000 / 10, list);
	else if (built / 1000 > driver / 1000)
		doctor_lacks(finding, DOCTOR_FAIL,
			     "install a driver for that CUDA, or build with an older toolkit",
			     "driver for CUDA %d.%d, older than the runtime %d.%d of this build",
			     driver / 1000, driver % 1000 / 10, built / 1000, built % 1000 / 10);
	else
		doctor_ok(finding, "%d, driver for CUDA %d.%d, runtime %d.%d%s", gpus->count,
			  driver / 1000, driver % 1000 / 10, built / 1000, built % 1000 / 10, list);
}

void doctor_check_gpu(struct doctor_finding *finding)
{
	struct doctor_gpus gpus;

	doctor_look_at_gpus(&gpus);
	doctor_judge_gpus(finding, &gpus);
}

/* ---- buffers ---------------------------------------------------------- */

static bool any_mps(const struct doctor_gpus *gpus)
{
	for (int i = 0; i < gpus->count && i < DOCTOR_GPUS_MAX; i++) {
		if (gpus->gpu[i].mps)
			return true;
	}
	return false;
}

static bool all_export_descriptors(const struct doctor_gpus *gpus)
{
	for (int i = 0; i < gpus->count && i < DOCTOR_GPUS_MAX; i++) {
		if (!gpus->gpu[i].descriptors)
			return false;
	}
	return true;
}

static bool all_have_handles(const struct doctor_gpus *gpus)
{
	for (int i = 0; i < gpus->count && i < DOCTOR_GPUS_MAX; i++) {
		if (!gpus->gpu[i].handles)
			return false;
	}
	return true;
}

static const char *slices(const struct doctor_gpus *gpus)
{
	for (int i = 0; i < gpus->count && i < DOCTOR_GPUS_MAX; i++) {
		if (gpus->gpu[i].mig)
			return "; MIG: the daemon must see the engine's slice";
	}
	return "";
}

static const char *way_together(const struct doctor_gpus *gpus)
{
	if (all_have_handles(gpus))
		return "by CUDA IPC";
	return all_export_descriptors(gpus) ? "by descriptor" : "not at all";
}

static void judge_together(struct doctor_finding *finding, const struct doctor_gpus *gpus)
{
	if (all_have_handles(gpus))
		doctor_ok(finding, "by CUDA IPC: the daemon shares PID and IPC namespace%s",
			  slices(gpus));
	else if (all_export_descriptors(gpus))
		doctor_ok(finding, "by descriptor: a GPU has no CUDA IPC%s", slices(gpus));
	else
		doctor_lacks(finding, DOCTOR_FAIL, NEITHER_REMEDY,
			     "a GPU has no CUDA IPC, and one exports no memory as a descriptor");
}

static void judge_apart(struct doctor_finding *finding, const struct doctor_gpus *gpus,
			const char *namespace)
{
	if (all_export_descriptors(gpus))
		doctor_ok(finding, "by descriptor: the daemon is in another %s namespace%s",
			  namespace, slices(gpus));
	else
		doctor_lacks(finding, DOCTOR_FAIL,
			     all_have_handles(gpus) ? SHARE_REMEDY : NEITHER_REMEDY,
			     "the daemon is in another %s namespace, where CUDA IPC does not work, "
			     "and a GPU exports no memory as a descriptor",
			     namespace);
}

void doctor_judge_gpu_buffers(struct doctor_finding *finding, const struct doctor_gpus *gpus,
			      enum doctor_sharing sharing)
{
	if (!gpus->driver || gpus->error || !gpus->count) {
		doctor_ok(finding, "no GPU, none needed");
		return;
	}
	if (any_mps(gpus)) {
		doctor_lacks(finding, DOCTOR_WARN,
			     "start r3ringd outside of MPS, or with --allow-mps",
			     "a GPU is under MPS, where a fault of one process ends all: r3ringd "
			     "refuses its buffers");
		return;
	}
	switch (sharing) {
	case DOCTOR_SHARES_NAMESPACES:
		judge_together(finding, gpus);
		return;
	case DOCTOR_OTHER_PID_NAMESPACE:
		judge_apart(finding, gpus, "PID");
		return;
	case DOCTOR_OTHER_IPC_NAMESPACE:
		judge_apart(finding, gpus, "IPC");
		return;
	case DOCTOR_NO_DAEMON:
		doctor_lacks(
			finding, DOCTOR_WARN, "start r3ringd, then look again",
			"no daemon: %s to one that shares PID and IPC namespace, %s to others%s",
			way_together(gpus),
			all_export_descriptors(gpus) ? "by descriptor" : "not at all",
			slices(gpus));
		return;
	}
}

static enum doctor_sharing sharing_with_daemon(void)
{
	const struct namespaces own = namespaces_of_this_process();
	struct r3ring_message whois = {.type = R3RING_MSG_WHOIS};
	const struct r3ring_identity_message *identity;
	struct socket_inbox inbox;
	int fd = socket_connect(NULL, NULL);
	int code;

	if (fd < 0)
		return DOCTOR_NO_DAEMON;
	code = socket_ask(fd, &whois, sizeof(whois), NULL, 0, NULL, 0, &inbox, R3RING_MSG_IDENTITY,
			  sizeof(*identity), ANSWER_TIMEOUT_MS, NULL);
	close(fd);
	if (code)
		return DOCTOR_NO_DAEMON;
	socket_inbox_close_fds(&inbox);
	identity = (const void *)inbox.u.bytes;
	if (!own.pid || identity->pid_namespace != own.pid)
		return DOCTOR_OTHER_PID_NAMESPACE;
	if (!own.ipc || identity->ipc_namespace != own.ipc)
		return DOCTOR_OTHER_IPC_NAMESPACE;
	return DOCTOR_SHARES_NAMESPACES;
}

void doctor_check_gpu_buffers(struct doctor_finding *finding)
{
	struct doctor_gpus gpus;

	doctor_look_at_gpus(&gpus);
	doctor_judge_gpu_buffers(finding, &gpus, sharing_with_daemon());
}
