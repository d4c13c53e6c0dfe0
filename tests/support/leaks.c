/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where LeakSanitizer looks. The process of Criterion that starts the tests and
 * counts them leaks what it notes of a test that outlasts a later suite; its tests
 * run in processes of their own, which are looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/leaks.h"

#define TEST_PROCESS "BXFI_MAP" /* Criterion sets it for them */

static int looks_away;

void leaks_look_away(void)
{
	looks_away = 1;
}

int __lsan_is_turned_off(void);

/* LeakSanitizer asks at the end of each process. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return looks_away ||
	       (strncmp(program_invocation_short_name, "run-", 4) == 0 && !getenv(TEST_PROCESS));
}
