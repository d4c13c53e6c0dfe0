/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in namespaces of their own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/apart.h"

static void die(const char *what)
{
	fprintf(stderr, "test namespaces: %s: %s\n", what, strerror(errno));
	exit(1);
}

void apart_init(struct apart *apart, int flags, const struct apart *with)
{
	*apart = (struct apart){.flags = flags, .with = with};
	apart->inside = mmap(NULL, sizeof(*apart->inside), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (apart->inside == MAP_FAILED)
		die("mmap");
}

void apart_free(struct apart *apart)
{
	if (apart->inside)
		munmap(apart->inside, sizeof(*apart->inside));
	apart->inside = NULL;
}

/* ---- going there -------------------------------------------------------- */

static int join_one(uint32_t pid, const char *name, int flag)
{
	char path[64];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	r = setns(fd, flag);
	close(fd);
	return r;
}

static int leave(const struct apart *apart)
{
	uint32_t pid;

	if (unshare(CLONE_NEWNS))
		return -1;
	if (!apart->with)
		return unshare(apart->flags & (CLONE_NEWPID | CLONE_NEWIPC));
	pid = r3ring_load_relaxed_u32(apart->with->inside);
	if ((apart->flags & CLONE_NEWIPC) && join_one(pid, "ipc", CLONE_NEWIPC))
		return -1;
	return apart->flags & CLONE_NEWPID ? join_one(pid, "pid", CLONE_NEWPID) : 0;
}

/* Programs look at /proc/self, which is to be of the namespace that they are in. */
static bool own_mounts(int flags)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	if ((flags & CLONE_NEWPID) && mount("proc", "/proc", "proc", 0, NULL))
		return false;
	return !(flags & CLONE_NEWNS) ||
	       mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777,size=64m") == 0;
}

static _Noreturn void end_as(int status)
{
	if (WIFSIGNALED(status))
		kill(getpid(), SIGKILL);
	_exit(WEXITSTATUS(status));
}

/* What was started goes on waiting for the program. */
static _Noreturn void stand_for(pid_t inside, const sigset_t *signals)
{
	for (;;) {
		int status, signal;

		if (sigwait(signals, &signal))
			_exit(125);
		if (signal != SIGCHLD)
			kill(inside, signal);
		else if (waitpid(inside, &status, WNOHANG) == inside)
			end_as(status);
	}
}

bool apart_enter(void *ctx)
{
	const struct apart *apart = ctx;
	sigset_t signals, before;
	pid_t inside;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (leave(apart))
		return false;
	sigprocmask(SIG_BLOCK, &signals, &before);
	inside = fork();
	if (inside < 0)
		return false;
	if (inside) {
		r3ring_store_relaxed_u32(apart->inside, (uint32_t)inside);
		stand_for(inside, &signals);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return own_mounts(apart->flags);
}

/* ---- for tests ---------------------------------------------------------- */

bool apart_allowed(int flags)
{
	struct apart apart;
	int status = 1;
	pid_t child;

	apart_init(&apart, flags, NULL);
	child = fork();
	if (child == 0)
		_exit(!apart_enter(&apart));
	if (child < 0)
		die("fork");
	waitpid(child, &status, 0);
	apart_free(&apart);
	return status == 0;
}

void apart_kill(const struct apart *apart, int pid)
{
	siginfo_t info;

	kill((pid_t)r3ring_load_relaxed_u32(apart->inside), SIGKILL);
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
		die("waitid");
}
