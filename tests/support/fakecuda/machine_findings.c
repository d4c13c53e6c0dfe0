/* SPDX-License-Identifier: Apache-2.0 */
/* What was found on the machine, by any of its processes. */
#include <stdio.h>
#include <string.h>

#include "tests/support/fakecuda/machine_table.h"

void machine_add_finding(const char *text)
{
	struct machine *m = machine();
	size_t room;
	int len;

	fprintf(stderr, "fakecuda: %s\n", text);
	machine_lock(m);
	m->finding_count++;
	room = sizeof(m->findings) - m->findings_len;
	len = snprintf(m->findings + m->findings_len, room, "%s\n", text);
	if (len > 0 && (size_t)len < room)
		m->findings_len += (uint32_t)len;
	else
		m->findings[m->findings_len] = '\0';
	machine_unlock(m);
}

unsigned int fakecuda_finding_count(void)
{
	struct machine *m = machine();
	unsigned int count;

	machine_lock(m);
	count = m->finding_count;
	machine_unlock(m);
	return count;
}

const char *fakecuda_findings(void)
{
	static char text[FINDINGS_BYTES];
	struct machine *m = machine();

	machine_lock(m);
	memcpy(text, m->findings, sizeof(text));
	machine_unlock(m);
	return text;
}

bool fakecuda_found(const char *part)
{
	return strstr(fakecuda_findings(), part) != NULL;
}

void fakecuda_clear_findings(void)
{
	struct machine *m = machine();

	machine_lock(m);
	m->finding_count = 0;
	m->findings_len = 0;
	m->findings[0] = '\0';
	machine_unlock(m);
}

/* A number for a text (FNV-1a). */
static uint64_t number_of(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 1099511628211u;
	return hash;
}

bool machine_once(const char *text)
{
	struct machine *m = machine();
	uint64_t number = number_of(text);
	bool first = true;

	machine_lock(m);
	for (uint32_t i = 0; i < m->once_count; i++)
		first = first && m->once[i] != number;
	if (first && m->once_count < ONCE_MAX)
		m->once[m->once_count++] = number;
	machine_unlock(m);
	return first;
}
