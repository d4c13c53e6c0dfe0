/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `r3ring doctor`. Each looks at one thing of this machine and
 * says what it found and, unless all is well, what to do about it.
 *
 * Looking and judging are apart where the judgement is a rule of its own.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_WARN, /* works, but slower or with less */
	DOCTOR_FAIL, /* something will not work */
};

struct doctor_finding {
	enum doctor_verdict verdict;
	char detail[512];
	char remedy[256]; /* "" when there is nothing to do */
};

void doctor_ok(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets verdict and remedy; the detail follows as with printf. */
void doctor_lacks(struct doctor_finding *finding, enum doctor_verdict verdict, const char *remedy,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* doctor_memory.c */
void doctor_check_shared_memory(struct doctor_finding *finding);
void doctor_check_locked_memory(struct doctor_finding *finding);
void doctor_check_page_size(struct doctor_finding *finding);

/* Judges /dev/shm: its size, what is free, and what one channel needs. */
void doctor_judge_shared_memory(struct doctor_finding *finding, uint64_t size, uint64_t available,
				uint64_t needed);
/* Judges RLIMIT_MEMLOCK; UINT64_MAX is unlimited. */
void doctor_judge_locked_memory(struct doctor_finding *finding, uint64_t limit, uint64_t needed);

/* doctor_kernel.c */
void doctor_check_kernel(struct doctor_finding *finding);
void doctor_check_io_uring(struct doctor_finding *finding);
void doctor_check_sealed_memory(struct doctor_finding *finding);
void doctor_check_pidfd(struct doctor_finding *finding);
void doctor_check_pid_namespace(struct doctor_finding *finding);

/* Judges a kernel release such as "6.1.0-18-amd64". */
void doctor_judge_kernel(struct doctor_finding *finding, const char *release);

/* doctor_daemon.c */
void doctor_check_runtime_dir(struct doctor_finding *finding);
void doctor_check_daemon(struct doctor_finding *finding);

/* doctor_gpu.c */
void doctor_check_gpu(struct doctor_finding *finding);
void doctor_check_gpu_buffers(struct doctor_finding *finding);

/* doctor_driver.c */
/* Whether the CUDA driver's library is there. */
bool doctor_has_cuda(void);

#endif
