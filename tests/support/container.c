/* SPDX-License-Identifier: Apache-2.0 */
/* What a plain container is like. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/container.h"

static int refused(const char *what, char *why, size_t capacity)
{
	int error = errno;

	snprintf(why, capacity, "the kernel refuses %s: %s", what, strerror(error));
	return -error;
}

/* ---- io_uring ----------------------------------------------------------- */

/* The architecture is not looked at: this is no fence, its programs are ours. */
static int refuse_io_uring(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned int)error & 0xffff)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (!error)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* ---- /dev/shm ----------------------------------------------------------- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);
	bool written;

	if (fd < 0)
		return -1;
	written = write(fd, text, (size_t)len) == len;
	close(fd);
	return written ? 0 : -1;
}

/* In the new user namespace everybody keeps his number. */
static int map_identity(uid_t uid, gid_t gid)
{
	char uids[64], gids[64];

	snprintf(uids, sizeof(uids), "%u %u 1", uid, uid);
	snprintf(gids, sizeof(gids), "%u %u 1", gid, gid);
	if (write_file("/proc/self/uid_map", uids) || write_file("/proc/self/setgroups", "deny"))
		return -1;
	return write_file("/proc/self/gid_map", gids);
}

static int own_mounts(char *why, size_t capacity)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (!unshare(CLONE_NEWNS))
		return 0;
	if (errno != EPERM)
		return refused("a mount namespace", why, capacity);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return refused("a user namespace", why, capacity);
	if (map_identity(uid, gid))
		return refused("a mapping of this user", why, capacity);
	return 0;
}

static int own_shm(const char *size, char *why, size_t capacity)
{
	char options[64];
	int code = own_mounts(why, capacity);

	if (code)
		return code;
	snprintf(options, sizeof(options), "mode=1777,size=%s", size);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return refused("private mounts", why, capacity);
	if (mount("tmpfs", "/dev/shm", "tmpfs", 0, options))
		return refused("a tmpfs on /dev/shm", why, capacity);
	return 0;
}

int container_enter(const struct container *container, char *why, size_t capacity)
{
	int code = container->shm_size ? own_shm(container->shm_size, why, capacity) : 0;

	if (!code && refuse_io_uring(container->io_uring_error))
		return refused("a seccomp filter", why, capacity);
	return code;
}

bool container_prepare(void *container)
{
	char why[128];

	if (!container_enter(container, why, sizeof(why)))
		return true;
	fprintf(stderr, "%s\n", why);
	return false;
}

/* ---- for others --------------------------------------------------------- */

/* Says how it went, and then waits for its end. */
static _Noreturn void keep(const struct container *container, int fd)
{
	const struct container only_shm = {.shm_size = container->shm_size};
	char why[128] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (container_enter(&only_shm, why, sizeof(why)))
		_exit(write(fd, why, strlen(why)) < 0);
	if (write(fd, "", 1) == 1)
		pause();
	_exit(1);
}

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, flags | O_CLOEXEC);
}

static bool is_same_file(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Open descriptors keep it alive. To join one's own user namespace is an error. */
static int open_all(struct container *container, pid_t keeper)
{
	container->user_fd = open_of(keeper, "ns/user", O_RDONLY);
	container->mount_fd = open_of(keeper, "ns/mnt", O_RDONLY);
	container->root_fd = open_of(keeper, "root", O_PATH | O_DIRECTORY);
	container->cwd_fd = open_of(keeper, "cwd", O_PATH | O_DIRECTORY);
	if (container->user_fd < 0 || container->mount_fd < 0 || container->root_fd < 0 ||
	    container->cwd_fd < 0)
		return -1;
	if (is_same_file(container->user_fd, "/proc/self/ns/user")) {
		close(container->user_fd);
		container->user_fd = -1;
	}
	return 0;
}

int container_make(struct container *container, char *why, size_t capacity)
{
	int pipe_fds[2], code = -EPERM;
	ssize_t len;
	pid_t keeper;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return refused("a pipe", why, capacity);
	keeper = fork();
	if (keeper < 0)
		return refused("a process", why, capacity);
	if (keeper == 0)
		keep(container, pipe_fds[1]);
	close(pipe_fds[1]);
	len = read(pipe_fds[0], why, capacity - 1);
	close(pipe_fds[0]);
	why[len > 0 ? len : 0] = '\0';
	if (len == 1 && why[0] == '\0')
		code = open_all(container, keeper) ? refused("to show it", why, capacity) : 0;
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	return code;
}

bool container_join(void *ctx)
{
	const struct container *container = ctx;

	if (container->user_fd >= 0 && setns(container->user_fd, CLONE_NEWUSER))
		return false;
	/* Joining leaves root and directory at the top of its mounts. */
	return setns(container->mount_fd, CLONE_NEWNS) == 0 && fchdir(container->root_fd) == 0 &&
	       chroot(".") == 0 && fchdir(container->cwd_fd) == 0 &&
	       refuse_io_uring(container->io_uring_error) == 0;
}
