/* SPDX-License-Identifier: Apache-2.0 */
/* The fake machine of a test. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"

static char dir[64];
static pid_t owner;

static void remove_machine(void)
{
	char path[80];

	if (getpid() != owner)
		return;
	snprintf(path, sizeof(path), "%s/machine", dir);
	unlink(path);
	rmdir(dir);
}

void machine_make(void)
{
	snprintf(dir, sizeof(dir), "/tmp/r3ring-test.%d.XXXXXX", getpid());
	cr_assert(mkdtemp(dir));
	owner = getpid();
	atexit(remove_machine);
	setenv("FAKECUDA_DIR", dir, 1);
	setenv("FAKECUDA_COPIES_ONLY", "r3ringd", 1);
}

bool machine_is_real(void)
{
	return false;
}

void machine_check(void)
{
	const char *seed = getenv("FAKECUDA_SEED");

	cr_expect_eq(fakecuda_finding_count(), 0, "with seed %s:\n%s", seed ? seed : "1",
		     fakecuda_findings());
}

void machine_expect(const char *part)
{
	cr_expect(fakecuda_found(part), "\"%s\" was not found, but:\n%s", part,
		  fakecuda_findings());
	fakecuda_clear_findings();
}
