/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: what the kernel offers, and what a sandbox leaves of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/doctor.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15
#define URING_ENTRIES 8
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO of linux/proc_ns.h */

/* ---- release ---------------------------------------------------------- */

void doctor_judge_kernel(struct doctor_finding *finding, const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		doctor_lacks(finding, DOCTOR_WARN, "Linux 5.15 or later is needed",
			     "release '%s' is not understood", release);
	else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		doctor_lacks(finding, DOCTOR_WARN, "run Linux 5.15 or later",
			     "Linux %s is older than r3ring is tested with", release);
	else
		doctor_ok(finding, "Linux %s", release);
}

void doctor_check_kernel(struct doctor_finding *finding)
{
	struct utsname name;

	if (uname(&name))
		doctor_lacks(finding, DOCTOR_WARN, "", "uname: %s", strerror(errno));
	else
		doctor_judge_kernel(finding, name.release);
}

/* ---- io_uring --------------------------------------------------------- */

void doctor_check_io_uring(struct doctor_finding *finding)
{
	struct io_uring ring;
	int code = io_uring_queue_init(URING_ENTRIES, &ring, 0);

	if (!code) {
		io_uring_queue_exit(&ring);
		doctor_ok(finding, "usable");
		return;
	}
	doctor_lacks(finding, DOCTOR_WARN,
		     "sysctl kernel.io_uring_disabled=0; in containers a seccomp profile that "
		     "allows io_uring_setup, io_uring_enter and io_uring_register",
		     "refused (%s): the daemon's control loop runs on epoll instead",
		     strerror(-code));
}

/* ---- memfd and pidfd -------------------------------------------------- */

static int try_seals(void)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd = memfd_create("r3ring-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int code = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 1) || fcntl(fd, F_ADD_SEALS, seals))
		code = -errno;
	else if (fcntl(fd, F_GET_SEALS) != seals)
		code = -ENOTSUP;
	close(fd);
	return code;
}

void doctor_check_sealed_memory(struct doctor_finding *finding)
{
	int code = try_seals();

	if (!code)
		doctor_ok(finding, "memfd with seals");
	else
		doctor_lacks(finding, DOCTOR_FAIL,
			     "allow memfd_create and fcntl F_ADD_SEALS in the sandbox's profile",
			     "no sealed memfd (%s): producers cannot share pages with the daemon",
			     strerror(-code));
}

void doctor_check_pidfd(struct doctor_finding *finding)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		close(fd);
		doctor_ok(finding, "usable");
		return;
	}
	doctor_lacks(finding, DOCTOR_WARN, "allow pidfd_open in the sandbox's profile",
		     "refused (%s): a peer's death is seen by its hang-up only", strerror(errno));
}

/* ---- PID namespace ---------------------------------------------------- */

void doctor_check_pid_namespace(struct doctor_finding *finding)
{
	struct stat namespace;

	if (stat("/proc/self/ns/pid", &namespace))
		doctor_lacks(finding, DOCTOR_WARN, "mount /proc", "/proc/self/ns/pid: %s",
			     strerror(errno));
	else if (namespace.st_ino == FIRST_PID_NAMESPACE)
		doctor_ok(finding, "the machine's own");
	else
		doctor_ok(finding, "a container's: what that means for buffers on a GPU is below");
}
