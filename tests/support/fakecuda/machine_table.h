/* SPDX-License-Identifier: Apache-2.0 */
/* The table behind machine.h, for the files that keep it. */
#ifndef FAKECUDA_MACHINE_TABLE_H
#define FAKECUDA_MACHINE_TABLE_H

#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/fakecuda/machine.h"

#define PROCESSES_MAX 64u
#define EVENTS_MAX 256u
#define IMPORTS_MAX 256u
#define ACCESSES_MAX 512u
#define FINDINGS_BYTES 32768u
#define ONCE_MAX 64u

struct machine {
	pthread_mutex_t lock;
	uint32_t made;
	uint32_t process_number;
	struct machine_process processes[PROCESSES_MAX];
	struct machine_event events[EVENTS_MAX];
	struct machine_import imports[IMPORTS_MAX];
	struct machine_access accesses[ACCESSES_MAX];
	uint32_t accesses_used; /* none is in use behind so many */
	uint64_t once[ONCE_MAX];
	uint32_t once_count;
	struct fakecuda_work work;
	uint32_t finding_count;
	uint32_t findings_len;
	char findings[FINDINGS_BYTES];
};

/* The lock of all of it. */
void machine_lock(struct machine *m);
void machine_unlock(struct machine *m);

/* Whether the process of that number has ended; with the lock. */
bool machine_is_dead(uint32_t number);

#endif
