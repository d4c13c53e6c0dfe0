/* SPDX-License-Identifier: Apache-2.0 */
/* Holding a system call of another program. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel/socket.h"
#include "tests/support/held_call.h"

#define DEADLINE_MS 10000

static void die(const char *what)
{
	fprintf(stderr, "held call: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Returns the supervisor's descriptor, or -1. The architecture is not looked at: this is
 * no fence, its programs are ours. */
static int install(const struct held_call *call)
{
	const uint32_t argument = (uint32_t)offsetof(struct seccomp_data, args[0]) +
				  call->argument * (uint32_t)sizeof(uint64_t);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, call->from, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, call->to, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

bool held_call_possible(char *why, size_t capacity)
{
	const struct held_call nothing = {.number = SYS_fallocate, .from = 1, .to = 0};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(install(&nothing) < 0 ? errno : 0);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (pid > 0 && status == 0)
		return true;
	snprintf(why, capacity, "the kernel refuses a seccomp filter with a supervisor: %s",
		 strerror(WIFEXITED(status) ? WEXITSTATUS(status) : errno));
	return false;
}

void held_call_make(struct held_call *call)
{
	call->supervisor = -1;
	call->held = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, call->ends))
		die("socketpair");
}

void held_call_close(struct held_call *call)
{
	close(call->ends[0]);
	close(call->ends[1]);
	if (call->supervisor >= 0)
		close(call->supervisor);
}

bool held_call_prepare(void *ctx)
{
	struct r3ring_message message = {.type = R3RING_MSG_WAKE};
	const struct held_call *call = ctx;
	int fd = install(call);

	return fd >= 0 &&
	       socket_send(call->ends[1], &message, sizeof(message), NULL, 0, &fd, 1) == 0;
}

static void take_supervisor(struct held_call *call)
{
	static struct socket_inbox inbox;

	if (socket_receive(call->ends[0], &inbox, DEADLINE_MS) || inbox.fd_count != 1)
		die("the supervisor's descriptor");
	call->supervisor = inbox.fds[0];
}

bool held_call_await(struct held_call *call)
{
	struct seccomp_notif notice = {0};
	struct pollfd polled;

	if (call->supervisor < 0)
		take_supervisor(call);
	polled = (struct pollfd){.fd = call->supervisor, .events = POLLIN};
	if (poll(&polled, 1, DEADLINE_MS) != 1 ||
	    ioctl(call->supervisor, SECCOMP_IOCTL_NOTIF_RECV, &notice))
		return false;
	call->held = notice.id;
	for (int i = 0; i < 6; i++)
		call->values[i] = notice.data.args[i];
	return true;
}

void held_call_release(struct held_call *call)
{
	struct seccomp_notif_resp response = {
		.id = call->held,
		.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
	};

	if (ioctl(call->supervisor, SECCOMP_IOCTL_NOTIF_SEND, &response))
		die("the call cannot be let go");
	call->held = 0;
}
