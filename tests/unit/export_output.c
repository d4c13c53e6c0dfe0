/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs where the file system has no files without names, nor copies by itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_output, .init = trial_open, .fini = trial_close);

#define NAMELESS (O_TMPFILE & ~O_DIRECTORY)

/* From now on openat() refuses O_TMPFILE and copy_file_range() everything. */
static void be_an_old_file_system(void)
{
	const uint32_t flags =
		(uint32_t)offsetof(struct seccomp_data, args[0]) + 2 * (uint32_t)sizeof(uint64_t);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_copy_file_range, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMELESS, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		cr_skip_test("the kernel takes no seccomp filter");
	cr_assert_eq(open(trial.dir, O_TMPFILE | O_RDWR, 0600), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
}

Test(export_output, without_nameless_files_it_is_whole_all_the_same)
{
	be_an_old_file_system();
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0);
	cr_assert_gt(trial_files(), 0, "it has nameless files");
	trial_finish();
	trial_read();
	for (uint32_t row = 0; row < 3; row++)
		cr_assert(trial_is("routes", row, 2, 1, row, 2));
}

Test(export_output, without_nameless_files_nothing_is_left_of_one_that_fails)
{
	be_an_old_file_system();
	trial_begin("safetensors");
	trial_gapped_request(1, "a", 1);
	trial_refused(-ENODATA, "ring_full");
}

/* The routes are moved, by hand. */
Test(export_output, without_copies_by_the_kernel_they_are_made_by_hand)
{
	be_an_old_file_system();
	trial.options.position_end = 3;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert(trial_is("routes", 2, 1, 1, 2, 1));
}
