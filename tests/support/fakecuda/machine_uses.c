/* SPDX-License-Identifier: Apache-2.0 */
/* Which process has which memory open, and which memory is being read or written. */
#include <string.h>
#include <unistd.h>

#include "tests/support/fakecuda/machine_table.h"

/* ---- imports ------------------------------------------------------------ */

void machine_import_add(uint64_t identity)
{
	struct machine *m = machine();
	const uint32_t own = machine_process_number();
	bool added = false;

	machine_lock(m);
	for (unsigned int i = 0; i < IMPORTS_MAX && !added; i++) {
		struct machine_import *import = &m->imports[i];

		if (!import->pid || machine_is_dead(import->number)) {
			*import = (struct machine_import){
				.identity = identity, .pid = getpid(), .number = own};
			added = true;
		}
	}
	machine_unlock(m);
}

void machine_import_remove(uint64_t identity)
{
	struct machine *m = machine();
	const uint32_t own = machine_process_number();

	machine_lock(m);
	for (unsigned int i = 0; i < IMPORTS_MAX; i++) {
		if (m->imports[i].pid && m->imports[i].number == own &&
		    m->imports[i].identity == identity) {
			m->imports[i].pid = 0;
			break;
		}
	}
	machine_unlock(m);
}

pid_t machine_import_of(uint64_t identity)
{
	struct machine *m = machine();
	const uint32_t own = machine_process_number();
	pid_t found = 0;

	machine_lock(m);
	for (unsigned int i = 0; i < IMPORTS_MAX && !found; i++) {
		const struct machine_import *import = &m->imports[i];

		if (import->pid && import->number != own && import->identity == identity &&
		    !machine_is_dead(import->number))
			found = import->pid;
	}
	machine_unlock(m);
	return found;
}

/* ---- accesses ----------------------------------------------------------- */

static bool conflicts(const struct machine_access *a, const struct machine_access *b)
{
	return a->pid && a->number != b->number && a->identity == b->identity &&
	       (a->write || b->write) && a->from < b->to && b->from < a->to;
}

pid_t machine_access_begin(const struct machine_access *access, uint32_t *entry, char *other)
{
	struct machine *m = machine();
	struct machine_access mine = *access;
	pid_t found = 0;

	mine.pid = getpid();
	mine.number = machine_process_number();
	*entry = 0;
	machine_lock(m);
	for (uint32_t i = 0; i <= m->accesses_used && i < ACCESSES_MAX; i++) {
		struct machine_access *at = &m->accesses[i];

		if (conflicts(at, &mine)) {
			if (machine_is_dead(at->number)) {
				at->pid = 0;
			} else if (!found) {
				found = at->pid;
				memcpy(other, at->what, sizeof(at->what));
			}
		}
		if (!at->pid && !*entry) {
			*at = mine;
			*entry = i + 1;
		}
	}
	if (*entry > m->accesses_used)
		m->accesses_used = *entry;
	machine_unlock(m);
	return found;
}

void machine_access_end(uint32_t entry)
{
	struct machine *m = machine();

	if (!entry)
		return;
	machine_lock(m);
	m->accesses[entry - 1].pid = 0;
	while (m->accesses_used && !m->accesses[m->accesses_used - 1].pid)
		m->accesses_used--;
	machine_unlock(m);
}
