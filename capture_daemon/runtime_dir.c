/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime directory: lock, socket, lists of segments and generations. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/runtime_dir.h"
#include "channel/generations.h"

#define DIR_MODE 0750
#define SOCKET_MODE 0660
#define LOCK_MODE 0600 /* who may read it can lock it, and keep every daemon out */
#define BACKLOG 128
#define LOCK_PATIENCE_NS (2 * NS_PER_SECOND)
#define LOCK_RETRY_NS (20 * NS_PER_MS)

static int socket_path_write(struct runtime_dir *dir, const char *path, struct r3ring_error *err)
{
	int len = snprintf(dir->socket_path, sizeof(dir->socket_path), "%s/%s", path,
			   R3RING_SOCKET_NAME);

	if ((size_t)len >= sizeof(dir->socket_path))
		return r3ring_error_set(err, -ENAMETOOLONG,
					"the socket's path %s/%s has %d bytes, a Unix socket takes "
					"at most %zu: choose a shorter --runtime-dir",
					path, R3RING_SOCKET_NAME, len,
					sizeof(dir->socket_path) - 1);
	snprintf(dir->path, sizeof(dir->path), "%s", path);
	return 0;
}

const char *runtime_dir_remedy(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
		return ": its file system is full (see df -h and df -i): make room there, or "
		       "choose another directory with --runtime-dir";
	case -EROFS:
	case -EACCES:
	case -EPERM:
		return ": choose a directory that this user may write with --runtime-dir";
	default:
		return "";
	}
}

/* Sets that what is at @name of the directory has failed with @error. */
static int failed_at(const struct runtime_dir *dir, const char *what, const char *name, int error,
		     struct r3ring_error *err)
{
	return r3ring_error_set(err, error, "%s %s/%s: %s%s", what, dir->path, name,
				strerror(-error), runtime_dir_remedy(error));
}

static int directory_make(const char *path, struct r3ring_error *err)
{
	if (mkdir(path, DIR_MODE) == 0 || errno == EEXIST)
		return 0;
	return r3ring_error_set(err, -errno, "runtime directory %s cannot be made: %s%s", path,
				strerror(errno),
				errno == ENOENT ? ": make the one above it first, or choose "
						  "another with --runtime-dir"
				: *runtime_dir_remedy(-errno) ? runtime_dir_remedy(-errno)
							      : ": choose another with "
								"--runtime-dir");
}

static int directory_open(struct runtime_dir *dir, gid_t gid, struct r3ring_error *err)
{
	struct stat status;
	int r = directory_make(dir->path, err);

	if (r < 0)
		return r;
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0 || fstat(dir->fd, &status) < 0)
		return r3ring_error_set(err, -errno, "runtime directory %s: %s", dir->path,
					strerror(errno));
	if (status.st_uid != geteuid())
		return r3ring_error_set(err, -EACCES,
					"runtime directory %s belongs to user %u, this is user %u: "
					"choose one of your own with --runtime-dir",
					dir->path, status.st_uid, geteuid());
	if (status.st_mode & 0022)
		return r3ring_error_set(
			err, -EACCES,
			"runtime directory %s may be written by others (mode %04o): "
			"chmod go-w it",
			dir->path, status.st_mode & 07777);
	if (gid != (gid_t)-1 &&
	    (fchown(dir->fd, (uid_t)-1, gid) < 0 || fchmod(dir->fd, DIR_MODE) < 0))
		return r3ring_error_set(err, -errno,
					"runtime directory %s cannot be given to group %u: %s",
					dir->path, gid, strerror(errno));
	return 0;
}

static long lock_owner(int fd)
{
	char text[32] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return 0;
	return strtol(text, NULL, 10);
}

/* A daemon that was just killed holds it until the kernel has taken it apart. */
static int lock_wait(int fd)
{
	const struct timespec pause = {.tv_nsec = LOCK_RETRY_NS};
	uint64_t deadline = clock_now_ns() + LOCK_PATIENCE_NS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || clock_now_ns() >= deadline))
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int lock_take(struct runtime_dir *dir, struct r3ring_error *err)
{
	char text[32];
	int len, r;

	dir->lock_fd = openat(dir->fd, R3RING_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			      LOCK_MODE);
	if (dir->lock_fd < 0 || fchmod(dir->lock_fd, LOCK_MODE) < 0)
		return failed_at(dir, "lock", R3RING_LOCK_NAME, -errno, err);
	r = lock_wait(dir->lock_fd);
	if (r == -EWOULDBLOCK)
		return r3ring_error_set(err, -EBUSY,
					"another r3ringd (pid %ld) serves %s: use it, or choose "
					"another --runtime-dir",
					lock_owner(dir->lock_fd), dir->path);
	if (r < 0)
		return failed_at(dir, "lock", R3RING_LOCK_NAME, r, err);
	len = snprintf(text, sizeof(text), "%d\n", getpid());
	errno = 0; /* what a short write leaves it at */
	if (ftruncate(dir->lock_fd, 0) < 0 || pwrite(dir->lock_fd, text, (size_t)len, 0) != len)
		return failed_at(dir, "lock", R3RING_LOCK_NAME, errno ? -errno : -ENOSPC, err);
	return 0;
}

static int list_open(struct runtime_dir *dir, const char *name, int *fd, struct r3ring_error *err)
{
	if (mkdirat(dir->fd, name, DIR_MODE) < 0 && errno != EEXIST)
		goto failed;
	*fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd >= 0)
		return 0;
failed:
	return failed_at(dir, "directory", name, -errno, err);
}

/* The lock is held: a socket that lies there belongs to a dead daemon. Nothing else does. */
static int old_socket_remove(const struct runtime_dir *dir, struct r3ring_error *err)
{
	struct stat status;

	if (fstatat(dir->fd, R3RING_SOCKET_NAME, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
	} else if (!S_ISSOCK(status.st_mode)) {
		return r3ring_error_set(err, -EEXIST,
					"%s is there and is no socket: move it away, or choose "
					"another --runtime-dir",
					dir->socket_path);
	} else if (unlinkat(dir->fd, R3RING_SOCKET_NAME, 0) == 0) {
		return 0;
	}
	return r3ring_error_set(err, -errno, "socket %s: %s", dir->socket_path, strerror(errno));
}

static int listen_open(struct runtime_dir *dir, gid_t gid, struct r3ring_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	int r;

	memcpy(address.sun_path, dir->socket_path, sizeof(address.sun_path));
	r = old_socket_remove(dir, err);
	if (r < 0)
		return r;
	dir->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dir->listen_fd < 0 ||
	    bind(dir->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(dir->fd, R3RING_SOCKET_NAME, SOCKET_MODE, 0) < 0)
		goto failed;
	if (gid != (gid_t)-1 && fchownat(dir->fd, R3RING_SOCKET_NAME, (uid_t)-1, gid, 0) < 0)
		goto failed;
	if (fstatat(dir->fd, R3RING_SOCKET_NAME, &status, AT_SYMLINK_NOFOLLOW) < 0)
		goto failed;
	dir->socket_ino = status.st_ino;
	if (listen(dir->listen_fd, BACKLOG) == 0)
		return 0;
failed:
	return failed_at(dir, "socket", R3RING_SOCKET_NAME, -errno, err);
}

static void descriptor_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool runtime_dir_has_socket(const struct runtime_dir *dir)
{
	struct stat status;

	return fstatat(dir->fd, R3RING_SOCKET_NAME, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_ino == dir->socket_ino;
}

int runtime_dir_listen_again(struct runtime_dir *dir, gid_t gid, struct r3ring_error *err)
{
	int r;

	descriptor_close(&dir->listen_fd);
	r = listen_open(dir, gid, err);
	if (r < 0)
		descriptor_close(&dir->listen_fd);
	return r;
}

static void runtime_dir_release(struct runtime_dir *dir)
{
	descriptor_close(&dir->listen_fd);
	descriptor_close(&dir->segments_fd);
	descriptor_close(&dir->generations_fd);
	descriptor_close(&dir->fd);
	descriptor_close(&dir->lock_fd); /* last: the lock covers the rest */
}

int runtime_dir_open(struct runtime_dir *dir, const char *path, gid_t gid, struct r3ring_error *err)
{
	int r;

	*dir = (struct runtime_dir){
		.fd = -1, .lock_fd = -1, .listen_fd = -1, .segments_fd = -1, .generations_fd = -1};
	r = socket_path_write(dir, path, err);
	if (r == 0)
		r = directory_open(dir, gid, err);
	if (r == 0)
		r = lock_take(dir, err);
	if (r == 0)
		r = list_open(dir, "segments", &dir->segments_fd, err);
	if (r == 0)
		r = list_open(dir, GENERATIONS_DIR, &dir->generations_fd, err);
	if (r == 0)
		r = listen_open(dir, gid, err);
	if (r < 0)
		runtime_dir_release(dir);
	return r;
}

void runtime_dir_close(struct runtime_dir *dir)
{
	if (dir->lock_fd < 0)
		return;
	unlinkat(dir->fd, R3RING_SOCKET_NAME, 0);
	runtime_dir_release(dir);
}

/* ---- generations -------------------------------------------------------- */

uint64_t runtime_dir_last_generation(struct runtime_dir *dir,
				     const struct r3ring_channel_name *channel)
{
	char file[NAME_MAX + 1];

	generations_file(channel, "", file, sizeof(file));
	return generations_read(dir->generations_fd, file);
}

int runtime_dir_store_generation(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
				 uint64_t generation)
{
	char file[NAME_MAX + 1], fresh[NAME_MAX + 1], text[32];
	int fd, len, r = 0;

	generations_file(channel, "", file, sizeof(file));
	generations_file(channel, "~", fresh, sizeof(fresh));
	fd = openat(dir->generations_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%" PRIu64 "\n", generation);
	errno = 0; /* what a short write leaves it at */
	if (write(fd, text, (size_t)len) != len)
		r = errno ? -errno : -ENOSPC;
	close(fd);
	R3RING_TEST_POINT("generation written");
	if (r == 0 && renameat(dir->generations_fd, fresh, dir->generations_fd, file) < 0)
		r = -errno;
	R3RING_TEST_POINT("generation stored");
	return r;
}
